"""The cache of simulation builds: what makes a build whole, and what happens to one that is not."""

import contextlib
import errno
import json
import multiprocessing
import os
import subprocess
import time

import pytest

from poblano_flow.build_cache import MARKER, BuildError, build_root, cached, recipe_key
from poblano_golden.errors import PoblanoError


@pytest.fixture(autouse=True)
def own_root(monkeypatch, tmp_path):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "builds"))


class Maker:
    """Makes a build of one file, and counts."""

    def __init__(self, text="program"):
        self.text = text
        self.calls = 0

    def __call__(self, folder):
        self.calls += 1
        assert not list(folder.iterdir())
        (folder / "model").write_text(self.text)
        return [folder / "model"]


def test_build_is_made_once():
    make = Maker()
    first = cached("icarus", "top", {"a": 1}, make)
    second = cached("icarus", "top", {"a": 1}, make)
    assert make.calls == 1
    assert (first.fresh, second.fresh) == (True, False)
    assert first.folder == second.folder
    assert first.folder.parent == build_root() / "sim" / "icarus"
    assert second.seconds == pytest.approx(first.seconds)


def test_every_part_of_the_recipe_counts():
    make = Maker()
    recipes = [{"a": 1}, {"a": 2}, {"a": 1, "b": 1}, {"a": {"b": 1}}]
    folders = {cached("icarus", "top", recipe, make).folder for recipe in recipes}
    assert len(folders) == make.calls == len(recipes)
    assert recipe_key({"a": 1, "b": 2}) == recipe_key({"b": 2, "a": 1})


def killed(folder):
    """Do half of a build, and die."""
    (folder / "model").write_text("half")
    os._exit(9)


def test_killed_build_is_made_again():
    process = multiprocessing.Process(target=cached, args=("icarus", "top", {}, killed))
    process.start()
    process.join()
    assert process.exitcode == 9
    (left,) = [path for path in (build_root() / "sim" / "icarus").iterdir() if path.is_dir()]
    assert (left / "model").read_text() == "half"
    entry = cached("icarus", "top", {}, Maker())
    assert entry.folder == left
    assert entry.fresh
    assert (left / "model").read_text() == "program"


def damage_product(folder):
    (folder / "model").write_text("progra")


def remove_product(folder):
    (folder / "model").unlink()


def cut_marker(folder):
    (folder / MARKER).write_text((folder / MARKER).read_text()[:-20])


def empty_marker(folder):
    (folder / MARKER).write_text("[]")


def strange_marker(folder):
    (folder / MARKER).write_text(json.dumps({"products": {"model": 3}, "seconds": 1}))


@pytest.mark.parametrize(
    "damage", [damage_product, remove_product, cut_marker, empty_marker, strange_marker]
)
def test_damaged_build_is_made_again(damage):
    make = Maker()
    damage(cached("icarus", "top", {}, make).folder)
    entry = cached("icarus", "top", {}, make)
    assert entry.fresh
    assert make.calls == 2
    assert (entry.folder / "model").read_text() == "program"
    assert not cached("icarus", "top", {}, make).fresh


def test_failed_build_is_not_whole():
    def fail(folder):
        (folder / "model").write_text("half")
        raise BuildError("c++: a build must end with exit status 0; got 1")

    with pytest.raises(BuildError, match="got 1"):
        cached("icarus", "top", {}, fail)
    assert cached("icarus", "top", {}, Maker()).fresh


def slow(folder):
    """Note every call in a file beside all builds."""
    with (build_root() / "calls").open("a") as file:
        file.write("call\n")
    time.sleep(0.5)
    (folder / "model").write_text("program")
    return [folder / "model"]


def test_processes_share_one_build():
    build_root().mkdir(parents=True)
    processes = [
        multiprocessing.Process(target=cached, args=("icarus", "top", {}, slow)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert (build_root() / "calls").read_text() == "call\n"
    assert not cached("icarus", "top", {}, slow).fresh


def test_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "file" / "builds"))
    with pytest.raises(PoblanoError, match="the build folder must be writable; got not a dir"):
        cached("icarus", "top", {}, Maker())


def test_disk_that_a_tool_finds_full():
    def fail(_folder):
        raise BuildError("c++: got 1\n  as: x.o: No space left on device")

    with pytest.raises(PoblanoError, match="needs room on the disk; got no space left") as error:
        cached("icarus", "top", {}, fail)
    assert "\n" not in str(error.value)
    assert not [path for path in (build_root() / "sim" / "icarus").iterdir() if path.is_dir()]


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """A file system of 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no small disk to fill: {mounted.stderr.strip()}")
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(place))
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_full_disk(small_disk):
    with pytest.raises(PoblanoError, match="needs room on the disk; got no space left"):
        cached("icarus", "top", {}, Maker("x" * 100_000))
    assert not list(small_disk.rglob("model"))
    assert cached("icarus", "top", {}, Maker()).fresh


def test_tool_that_fails_on_a_full_disk_without_saying_so(small_disk):
    def fail(folder):
        with (folder / "filler").open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1000))
                file.flush()
        raise BuildError("verilator: got 1\n  cannot write Vtop.cpp")

    with pytest.raises(PoblanoError, match="needs room on the disk"):
        cached("icarus", "top", {}, fail)
    assert not list(small_disk.rglob("filler"))


def test_other_faults_of_the_disk_keep_their_name():
    def fail(_folder):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with pytest.raises(PoblanoError, match="must be writable; got read-only file system"):
        cached("icarus", "top", {}, fail)

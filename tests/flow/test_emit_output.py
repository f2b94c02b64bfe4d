"""An output folder is whole or not there, and nobody else's files are lost."""

import json
import os
import subprocess

import pytest

from poblano_flow.output import check_replaceable, digests, is_whole, write_folder
from poblano_golden.errors import PoblanoError

FILES = {"rtl/a.v": "module a; endmodule\n", "filelist.f": "rtl/a.v\n"}


def whole(extra=None):
    files = {**FILES, **(extra or {})}
    return {**files, "manifest.json": json.dumps({"files": digests(files)})}


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_written_whole_with_usual_permissions(tmp_path):
    write_folder(tmp_path / "deep" / "out", whole())
    assert listing(tmp_path / "deep") == [
        "out", "out/filelist.f", "out/manifest.json", "out/rtl", "out/rtl/a.v",
    ]  # fmt: skip
    assert is_whole(tmp_path / "deep" / "out")
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "deep" / "out").stat().st_mode & 0o777 == 0o777 & ~umask


def test_earlier_emission_is_replaced(tmp_path):
    folder = tmp_path / "out"
    write_folder(folder, whole({"rtl/old.v": "old"}))
    write_folder(folder, whole())
    assert listing(tmp_path) == [
        "out", "out/filelist.f", "out/manifest.json", "out/rtl", "out/rtl/a.v",
    ]  # fmt: skip


def test_empty_folder_is_taken(tmp_path):
    (tmp_path / "out").mkdir()
    write_folder(tmp_path / "out", whole())
    assert is_whole(tmp_path / "out")


def test_foreign_folder_is_refused_unless_forced(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "thesis.txt").write_text("words")
    message = (
        f"{folder}: the output folder must be new, empty or an earlier emission; "
        "got thesis.txt in it (--force replaces the folder)"
    )
    with pytest.raises(PoblanoError) as caught:
        write_folder(folder, whole())
    assert str(caught.value) == message
    assert listing(tmp_path) == ["out", "out/thesis.txt"]
    write_folder(folder, whole(), force=True)
    assert "out/thesis.txt" not in listing(tmp_path)


def test_foreign_file_in_an_earlier_emission_is_refused(tmp_path):
    folder = tmp_path / "out"
    write_folder(folder, whole())
    (folder / "rtl" / "mine.v").write_text("module mine; endmodule")
    with pytest.raises(PoblanoError, match=r"got rtl/mine\.v in it"):
        write_folder(folder, whole())
    assert (folder / "rtl" / "mine.v").read_text() == "module mine; endmodule"


def test_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("words")
    with pytest.raises(PoblanoError, match="the output must be a folder; got a file"):
        check_replaceable(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "words"


def test_current_folder_is_refused_even_by_force(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    for folder in (tmp_path, tmp_path / "inner"):
        with pytest.raises(PoblanoError, match="must not be the current folder or one above it"):
            check_replaceable(folder, force=True)


def test_failure_leaves_nothing_and_keeps_the_old(tmp_path):
    folder = tmp_path / "out"
    broken = {"filelist.f": "x", "filelist.f/b.v": "a file cannot be a folder"}
    with pytest.raises(FileExistsError):
        write_folder(folder, broken)
    assert listing(tmp_path) == []
    write_folder(folder, whole())
    with pytest.raises(FileExistsError):
        write_folder(folder, broken)
    assert is_whole(folder)
    assert listing(tmp_path)[0] == "out"
    assert len(list(tmp_path.iterdir())) == 1


def test_changed_or_missing_file_is_noticed(tmp_path):
    folder = tmp_path / "out"
    write_folder(folder, whole())
    (folder / "rtl" / "a.v").write_text("module a; wire x; endmodule\n")
    assert not is_whole(folder)
    (folder / "rtl" / "a.v").unlink()
    assert not is_whole(folder)
    assert not is_whole(tmp_path / "absent")


def test_full_disk_leaves_nothing(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        with pytest.raises(OSError, match="No space left on device") as caught:
            write_folder(disk / "out", whole({"rtl/big.v": "x" * 200_000}))
        assert caught.value.filename == str(disk / "out")
        assert listing(disk) == []
        write_folder(disk / "out", whole())
        with pytest.raises(OSError, match="No space left on device"):
            write_folder(disk / "out", whole({"rtl/big.v": "x" * 200_000}))
        assert is_whole(disk / "out")
        assert len(list(disk.iterdir())) == 1
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_interruption_leaves_nothing(tmp_path, monkeypatch):
    written = []
    write_bytes = type(tmp_path).write_bytes

    def interrupt(path, content):
        if written:
            raise KeyboardInterrupt
        written.append(path)
        write_bytes(path, content)

    monkeypatch.setattr(type(tmp_path), "write_bytes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "out", whole())
    assert len(written) == 1
    assert listing(tmp_path) == []


def test_folder_inside_a_file_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("words")
    with pytest.raises(NotADirectoryError) as caught:
        check_replaceable(tmp_path / "file" / "out")
    assert caught.value.filename == str(tmp_path / "file")


def test_unwritable_folder_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError) as caught:
        check_replaceable(tmp_path / "deep" / "out")
    assert (caught.value.strerror, caught.value.filename) == ("Permission denied", str(tmp_path))

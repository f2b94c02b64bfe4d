"""Sweeps: what is varied and asked, what is kept, what a fault of a point or of a worker does."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from toy_liberty import TOY

from poblano_flow.cli import main
from poblano_flow.sweep import evaluate as evaluation
from poblano_flow.sweep import run as running
from poblano_flow.sweep.evaluate import Outcome, evaluate
from poblano_flow.sweep.expression import Expression
from poblano_flow.sweep.report import pareto_front
from poblano_flow.sweep.run import repeat, run_sweep
from poblano_flow.sweep.search import feasible_grid, strategy
from poblano_flow.sweep.spec import Sweep, load_sweep
from poblano_golden.errors import PoblanoError

SMALL = {
    "name": "small",
    "base": "tiny",
    "parameters": {
        "slice.tensor.rows": [1, 2, 4],
        "slice.tensor.cols": {"from": 2, "to": 4, "factor": 2},
    },
    "objectives": {"derived.tensor_units": "minimise", "product.cycles": "minimise"},
    "product": {"m": 8, "n": 32, "k": 64},
}


@pytest.fixture(autouse=True)
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "build"))
    return tmp_path / "build"


def sweep(**changes):
    return Sweep.model_validate({**SMALL, **changes})


def written(folder, **changes):
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}, sort_keys=False))
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"parameters": {"slice.tensor.rowz": [1]}},
            "parameters.slice.tensor.rowz: a parameter must be a dotted name of the configuration",
        ),
        ({"parameters": {"slice.tensor": [1]}}, "a parameter must be a dotted name"),
        ({"parameters": {"slice.tensor.rows": []}}, "a parameter must have a value; got none"),
        ({"objectives": {"area.kgf": "minimise"}}, "objectives: a figure must be a parameter, one"),
        ({"constraints": ["rows < 3"]}, "constraints: 'rows < 3': a figure must be a parameter"),
        ({"constraints": ["2 +"]}, "an expression must be arithmetic; got '2 +'"),
        ({"metrics": {"x": "exit()"}}, "an expression must be arithmetic; got 'exit()'"),
        ({"metrics": {"x": "y", "y": "1"}}, "metrics.x: a figure must be a parameter"),
        ({"product": None}, "product: a product must be given for its cycles; got none"),
        ({"base": "tinny"}, "base: a preset must be one of"),
        ({"colour": 1}, "colour: Extra inputs are not permitted; got 1"),
        ({"search": {"method": "random"}}, "must say how many points"),
        ({"parameters": {"frequency": {"from": 2, "to": 1, "step": 1}}}, "a range must go up"),
    ],
)
def test_a_sweep_file_that_cannot_be_taken_is_told(tmp_path, changes, message):
    path = written(tmp_path, **changes)
    with pytest.raises(PoblanoError) as error:
        load_sweep(path)
    assert message in str(error.value)


def test_files_that_are_no_sweep_are_told(tmp_path):
    path = tmp_path / "bad.yaml"
    with pytest.raises(PoblanoError, match=r"bad\.yaml: a sweep must be readable; got No such"):
        load_sweep(path)
    path.write_text("a: [1")
    with pytest.raises(PoblanoError, match=r"bad\.yaml: a sweep must be YAML; got "):
        load_sweep(path)


def test_expressions():
    names = {"a.b": 6, "c": 4}
    assert Expression("a.b * (c - 1) // 2 % 5").value(names) == 4
    assert Expression("a.b > c > 3 and not c == 5").value(names) is True
    assert Expression("min(a.b, ceil(c / 3)) + log2(c)").value(names) == 4
    assert Expression("a.b + c").names == {"a.b", "c"}
    with pytest.raises(PoblanoError, match=r"^'c / 0' must have a value; got division by zero$"):
        Expression("c / 0").value(names)


def test_a_grid_leaves_out_what_constraints_forbid():
    wanted = sweep(constraints=["slice.tensor.rows * slice.tensor.cols <= 8"])
    pairs = [tuple(point.values()) for point in feasible_grid(wanted)]
    assert pairs == [(1, 2), (1, 4), (2, 2), (2, 4), (4, 2)]
    with pytest.raises(PoblanoError, match=r"^constraints must leave a point of the parameters"):
        strategy(sweep(constraints=["slice.tensor.rows > 4"]), 1)


def points_of(wanted):
    return [tuple(p.values()) for batch in strategy(wanted, 2).batches() for p in batch]


def test_a_random_search_repeats_and_has_no_point_twice():
    found = points_of(sweep(search={"method": "random", "points": 4, "seed": 3}))
    assert found == points_of(sweep(search={"method": "random", "points": 4, "seed": 3}))
    assert len(set(found)) == 4
    everything = points_of(sweep(search={"method": "random", "points": 99}))
    assert set(everything) == {tuple(p.values()) for p in feasible_grid(sweep())}


def test_figures_are_those_of_the_timing_functions_and_of_the_configuration():
    outcomes = run_sweep(sweep(metrics={"both": "derived.tensor_units * product.cycles"}), jobs=2)
    units = [outcome.figures["derived.tensor_units"] for outcome in outcomes]
    assert units == [2, 4, 4, 8, 8, 16]
    first = outcomes[0].figures
    assert first["both"] == first["derived.tensor_units"] * first["product.cycles"]
    assert first["product.cycles"] > 8 * 32 * 64 / (2 * 32)


def test_a_point_that_fails_is_recorded_and_is_not_the_end():
    wanted = sweep(parameters={"slice.tensor.tile_cols": [16, 15, 32]})
    outcomes = run_sweep(wanted, jobs=1)
    assert [bool(outcome.error) for outcome in outcomes] == [False, True, False]
    assert "cols * tile_cols must be a multiple of 32" in outcomes[1].error
    wanted = sweep(product={"m": 4096, "n": 4096, "k": 4096})
    outcome = evaluate(wanted, {"slice.tensor.rows": 2, "slice.tensor.cols": 2}, "")
    assert "L1" in outcome.error
    assert not outcome.feasible
    again = evaluate(wanted, {"slice.tensor.rows": 2, "slice.tensor.cols": 2}, "")
    assert (again.cached, again.error) == (True, outcome.error)


def test_constraints_on_figures_make_points_infeasible():
    outcomes = run_sweep(sweep(constraints=["derived.tensor_units <= 8"]), jobs=1)
    assert [outcome.feasible for outcome in outcomes] == [True] * 5 + [False]


def test_what_is_done_is_kept(build):
    first, second = run_sweep(sweep(), jobs=1), run_sweep(sweep(), jobs=2)
    assert not any(outcome.cached for outcome in first)
    assert all(outcome.cached for outcome in second)
    assert [o.figures for o in first] == [o.figures for o in second]
    [damaged, *_] = sorted((build / "sweep_points").glob("*.json"))
    damaged.write_text(damaged.read_text()[:10])
    third = run_sweep(sweep(), jobs=1)
    assert sum(not outcome.cached for outcome in third) == 1
    assert [o.figures for o in first] == [o.figures for o in third]
    other = run_sweep(sweep(product={"m": 8, "n": 32, "k": 96}), jobs=1)
    assert not any(outcome.cached for outcome in other)


def test_a_full_disk_fails_the_point_and_keeps_nothing(build, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    point = {"slice.tensor.rows": 2, "slice.tensor.cols": 2}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        outcome = evaluate(sweep(), point, "")
    assert "No space left on device" in outcome.error
    assert [p.suffix for p in (build / "sweep_points").iterdir()] == [".lock"]
    outcome = evaluate(sweep(), point, "")
    assert (outcome.error, outcome.cached) == ("", False)


def kill_worker_of_two_rows(wanted, point, library):
    """In place of `evaluate`: a point that ends its process, always."""
    if point == {"slice.tensor.rows": 2, "slice.tensor.cols": 4}:
        os.kill(os.getpid(), signal.SIGKILL)
    return evaluation.evaluate(wanted, point, library)


def kill_worker_once(wanted, point, library):
    """In place of `evaluate`: a point that ends its process the first time."""
    mark = Path(os.environ["POBLANO_BUILD_DIR"], "killed")
    if point == {"slice.tensor.rows": 4, "slice.tensor.cols": 2} and not mark.exists():
        mark.parent.mkdir(exist_ok=True)
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return evaluation.evaluate(wanted, point, library)


def test_a_killed_worker_costs_nothing_but_time(monkeypatch):
    expected = [outcome.figures for outcome in run_sweep(sweep(), jobs=2)]
    monkeypatch.setattr(running, "evaluate", kill_worker_once)
    assert [outcome.figures for outcome in run_sweep(sweep(), jobs=2)] == expected


def test_a_point_that_keeps_killing_its_worker_has_failed(monkeypatch):
    monkeypatch.setattr(running, "evaluate", kill_worker_of_two_rows)
    outcomes = run_sweep(sweep(), jobs=2)
    [failed] = [outcome for outcome in outcomes if outcome.error]
    assert failed.point == {"slice.tensor.rows": 2, "slice.tensor.cols": 4}
    assert failed.error == "its worker process ended 2 times without an answer"


def command(path, *more):
    return [sys.executable, "-m", "poblano_flow", "sweep", str(path), *more]


def test_two_sweeps_share_one_cache(tmp_path, build):
    path = written(tmp_path)
    sweeps = [
        subprocess.Popen(command(path, "-o", str(tmp_path / name)), stdout=subprocess.DEVNULL)
        for name in "ab"
    ]
    assert [process.wait() for process in sweeps] == [0, 0]
    names = [[*csv_rows(tmp_path / name)] for name in "ab"]
    assert names[0] == names[1]
    assert len([*(build / "sweep_points").glob("*.json")]) == 6


def csv_rows(folder):
    for line in (folder / "results.csv").read_text().splitlines():
        yield line.rpartition(",")[0]


def test_a_killed_sweep_goes_on_where_it_was(tmp_path, build):
    path = written(tmp_path, product={"m": 64, "n": 64, "k": 64})
    process = subprocess.Popen(command(path, "-j", "1"), start_new_session=True)
    points = build / "sweep_points"
    while process.poll() is None and not [*points.glob("*.json")]:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = {file.stem for file in points.glob("*.json")}
    assert kept
    outcomes = run_sweep(load_sweep(path), jobs=1)
    assert sum(outcome.cached for outcome in outcomes) == len(kept)
    assert not any(outcome.error for outcome in outcomes)


def test_repeating_finds_figures_that_differ(build):
    outcomes = run_sweep(sweep(), jobs=1)
    assert repeat(sweep(), outcomes, jobs=1) == []
    path = sorted((build / "sweep_points").glob("*.json"))[0]
    known = json.loads(path.read_text())
    known["figures"]["product.cycles"] += 1
    path.write_text(json.dumps(known))
    [(old, new)] = repeat(sweep(), run_sweep(sweep(), jobs=1), jobs=1)
    assert old.figures["product.cycles"] == new.figures["product.cycles"] + 1


def test_areas_come_from_the_synthesis(tmp_path):
    library = tmp_path / "toy.lib"
    library.write_text(TOY)
    wanted = sweep(
        set=["slice.tensor.formats=[mxfp4*mxfp4]"],
        parameters={"slice.tensor.pipeline.add": [0, 1]},
        objectives={"area.kge": "minimise", "area.delay_ns": "minimise"},
        synthesis={"top": "unit", "liberty": [str(library)]},
    )
    short, long = run_sweep(wanted, jobs=1)
    assert (short.error, long.error) == ("", "")
    assert short.figures["area.delay_ns"] > long.figures["area.delay_ns"] > 0
    assert 0 < short.figures["area.kge"] < long.figures["area.kge"]
    library.write_text(TOY.replace("area : 9.0", "area : 18.0"))
    [dearer, _] = run_sweep(wanted, jobs=1)
    assert not dearer.cached
    assert dearer.figures["area.kge"] > short.figures["area.kge"]


def test_the_pareto_front():
    values = [(1, 9), (2, 5), (3, 5), (4, 1), (1, 9), (0, 0)]
    outcomes = [
        Outcome({}, {"derived.tensor_units": x, "product.cycles": y}, feasible=(x, y) != (0, 0))
        for x, y in values
    ]
    assert pareto_front(sweep(), outcomes) == [0, 1, 3, 4]


def test_optuna_searches_and_repeats():
    pytest.importorskip("optuna")
    wanted = sweep(search={"method": "optuna", "points": 5})
    first, second = run_sweep(wanted, jobs=2), run_sweep(wanted, jobs=2)
    assert len({tuple(outcome.point.values()) for outcome in first}) == 5
    assert [outcome.point for outcome in first] == [outcome.point for outcome in second]
    assert all(outcome.cached for outcome in second)


def test_the_command_writes_tables_and_a_report(tmp_path, capsys):
    out = tmp_path / "out"
    path = written(tmp_path)
    with pytest.raises(SystemExit) as done:
        main(["sweep", str(path), "-j", "1", "-o", str(out), "--repeat", "2"])
    assert done.value.code in (0, None)
    said = capsys.readouterr().out
    assert "small: 6 points, 0 kept from before, 0 failed" in said
    assert "2 points evaluated again, 0 differ" in said
    rows = (out / "results.csv").read_text().splitlines()
    assert rows[0].startswith("slice.tensor.rows,slice.tensor.cols,derived.tensor_units,")
    assert len(rows) == 7
    page = (out / "report.html").read_text()
    assert "<svg" in page
    assert "slice.tensor.cols" in page
    assert 'src="http' not in page
    assert "<script" not in page
    arrow = pytest.importorskip("pyarrow.parquet")
    table = arrow.read_table(io.BytesIO((out / "results.parquet").read_bytes()))
    assert table.num_rows == 6
    assert table.column_names == rows[0].split(",")

"""The verdict of a run: failed unless tests ran, all passed, and the simulator ended well."""

import xml.etree.ElementTree as ET

import pytest

from poblano_flow.process import ProcessResult
from poblano_flow.sim_results import Case, judge, write_merged

WELL = ProcessResult(0, timed_out=False, cancelled=False, output="", seconds=1.0)


def ended(status=0, *, timed_out=False, cancelled=False):
    return ProcessResult(status, timed_out, cancelled, "", 12.0)


def results(tmp_path, *cases):
    """Write a results file with cases of the given contents."""
    path = tmp_path / "results.xml"
    body = "".join(
        f'<testcase classname="bench" name="t{n}" time="1.5"><properties>'
        f'<property name="sim_time_stop" value="12.5"/></properties>{case}</testcase>'
        for n, case in enumerate(cases)
    )
    path.write_text(f'<testsuites><testsuite name="x">{body}</testsuite></testsuites>')
    return path


def statuses(cases):
    return [case.status for case in cases]


def test_passed(tmp_path):
    cases = judge(results(tmp_path, "", ""), "bench", WELL)
    assert cases == (
        Case("bench.t0", "passed", seconds=1.5, end_ns=12.5),
        Case("bench.t1", "passed", seconds=1.5, end_ns=12.5),
    )


@pytest.mark.parametrize("kind", ["failure", "error"])
def test_failed(tmp_path, kind):
    element = f'<{kind} message="a&#10;b" type="AssertionError">Traceback</{kind}>'
    cases = judge(results(tmp_path, "", element), "bench", WELL)
    assert statuses(cases) == ["passed", "failed"]
    assert (cases[1].message, cases[1].trace) == ("a\nb", "Traceback")


def test_failure_without_a_message_is_one(tmp_path):
    (case,) = judge(results(tmp_path, "<failure/>"), "bench", WELL)
    assert (case.status, case.message) == ("failed", "failure")


@pytest.mark.parametrize("cases", [(), ("<skipped/>",), ("<skipped/>", "<skipped/>")])
def test_no_test_run_is_a_failure(tmp_path, cases):
    found = judge(results(tmp_path, *cases), "bench", WELL)
    assert found[-1] == Case("bench", "failed", "no test was run", seconds=1.0)


def test_missing_file_is_a_failure(tmp_path):
    (case,) = judge(tmp_path / "results.xml", "bench", WELL)
    assert (case.status, case.message) == ("failed", "the simulation ended without results")


@pytest.mark.parametrize("kept", [0, 10, 60])
def test_cut_file_is_a_failure(tmp_path, kept):
    path = results(tmp_path, "", "")
    path.write_text(path.read_text()[:kept])
    (case,) = judge(path, "bench", WELL)
    assert (case.status, case.message) == ("failed", "the simulation ended without results")


@pytest.mark.parametrize(
    ("process", "message"),
    [
        (ended(1), "the simulator ended with exit status 1"),
        (ended(-11), "the simulator crashed with signal 11"),
        (ended(-9, timed_out=True), "the simulation was ended after its limit of 12 s"),
        (ended(130, cancelled=True), "the simulation was interrupted"),
    ],
)
def test_bad_end_is_a_failure_whatever_the_file_says(tmp_path, process, message):
    cases = judge(results(tmp_path, "", ""), "bench", process)
    assert statuses(cases) == ["passed", "passed", "failed"]
    assert cases[2].message == message
    (case,) = judge(tmp_path / "none.xml", "bench", process)
    assert case.message == f"{message} without results"
    cases = judge(results(tmp_path, "", '<failure message="why"/>'), "bench", process)
    assert statuses(cases) == ["passed", "failed"]
    assert cases[1].message == f"{message}: why"


def test_merged_file(tmp_path):
    path = tmp_path / "deep" / "results.xml"
    bad = "bad \x00\x1b[31m and é"
    write_merged(
        path,
        [
            ("one", [Case("a", "passed", seconds=1.0), Case("b", "failed", bad, "trace")]),
            ("two", [Case("c", "skipped")]),
        ],
    )
    suites = ET.parse(path).getroot().findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["one", "two"]
    assert [suite.get("tests") for suite in suites] == ["2", "1"]
    assert [suite.get("failures") for suite in suites] == ["1", "0"]
    assert [suite.get("skipped") for suite in suites] == ["0", "1"]
    failure = suites[0].findall("testcase")[1].find("failure")
    assert failure.text == "trace"
    assert failure.get("message").endswith("and é")

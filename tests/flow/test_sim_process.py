"""Programs under a time limit."""

import sys
import threading
import time

from poblano_flow.process import supervise


def python(code, tmp_path, **options):
    arguments = {"limit": 60.0, "environment": {}, "folder": tmp_path} | options
    return supervise([sys.executable, "-c", code], **arguments)


def test_output_status_and_environment(tmp_path):
    code = "import os, sys; print(os.environ['X'], os.getcwd()); sys.exit(3)"
    result = python(code, tmp_path, environment={"X": "value"})
    assert result.status == 3
    assert result.output == f"value {tmp_path}\n"
    assert not result.timed_out
    assert not result.cancelled


def test_log(tmp_path):
    result = python("print('said')", tmp_path, log=tmp_path / "log.txt")
    assert result.output == ""
    assert (tmp_path / "log.txt").read_text() == "said\n"


def test_limit_asks_before_it_ends(tmp_path):
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (print('closing', flush=True), sys.exit(5)))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(1)"
    )
    result = python(code, tmp_path, limit=2.0)
    assert (result.status, result.timed_out) == (5, True)
    assert result.output == "ready\nclosing\n"


def test_limit_ends_what_does_not_listen(tmp_path, monkeypatch):
    monkeypatch.setattr("poblano_flow.process.GRACE_SECONDS", 0.5)
    code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
    result = python(code, tmp_path, limit=2.0)
    assert (result.status, result.timed_out) == (-9, True)


def test_cancelled(tmp_path):
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    began = time.monotonic()
    result = python("import time; time.sleep(600)", tmp_path, cancelled=cancelled)
    assert result.cancelled
    assert not result.timed_out
    assert result.status != 0
    assert time.monotonic() - began < 300

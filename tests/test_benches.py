"""Every bench of the registry, on every simulator that it names; the long ones are nightly."""

from __future__ import annotations

import pytest

from poblano_flow.regression import Settings, run_job
from poblano_flow.selection import BenchJob, plan
from poblano_flow.sim_options import SIMULATORS
from poblano_verif import registry


def _param(job: BenchJob):
    nightly = registry.block(job.block).variants[job.variant].nightly
    return pytest.param(job, id=job.name, marks=[pytest.mark.nightly] if nightly else [])


@pytest.mark.parametrize("job", [_param(job) for job in plan(None, SIMULATORS, nightly=True)])
def test_bench(job):
    result = run_job(job, Settings(seed=1))
    assert result.cases
    assert result.passed, "\n" + "\n".join(result.reports)

"""A small part of the fuzzing of the REST API; ``python -m tests.fuzz.api`` does it in earnest."""

from __future__ import annotations

import pytest

from .api import fuzzed, run

pytestmark = [pytest.mark.slow, pytest.mark.early]


def test_no_fault_and_no_answer_outside_the_document() -> None:
    with fuzzed() as world:
        report = run(world, requests=0, seed=20)
    assert report.requests > 250
    assert not report.failures and not report.errors, str(report)

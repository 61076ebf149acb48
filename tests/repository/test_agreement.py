"""The validator against the real Triton: the same verdict on every case, and a better message."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from amphitrite.schemas.repository import Server, errors, validate
from amphitrite.schemas.repository.files.local_directory import LocalRepository

from .cases import Case, corpus, recorded

#: As the record was made: the real Triton saw no GPU, and this environment's Python.
THIS_MACHINE = Server(gpus=0, has_module=lambda name: importlib.util.find_spec(name) is not None)


@pytest.mark.parametrize("case", corpus(), ids=lambda case: case.name)
def test_the_validator_agrees(tmp_path: Path, case: Case) -> None:
    found = errors(validate(LocalRepository(case.write(tmp_path)), server=THIS_MACHINE))
    shown = "\n".join(f"{finding.code}: {finding} ({finding.hint})" for finding in found)
    refused = recorded()[case.name]["verdict"] == "refused"
    assert bool(found) == refused, f"{shown}\nTriton: {recorded()[case.name]}"
    assert (case.finding is not None) == refused, "a case has `finding` where Triton refuses it"
    if case.finding:
        here = [finding for finding in found if case.finding.fits(finding)]
        assert here, f"nothing there with that code and those words:\n{shown}\nwanted: {case.finding}"

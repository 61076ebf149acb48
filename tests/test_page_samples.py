"""The samples in the pages: what a reader copies is complete.

Decides that a Python sample imports and assigns what it uses. The tests of each part run what the
samples do.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HOME = re.compile(r"\$\{?ML_HOME\b(?!:-)")
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("examples/*/README.md"))]
SAMPLES = [
    pytest.param(sample, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, sample in enumerate(_BLOCK.findall(page.read_text()))
]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_python_sample_is_complete(sample: str) -> None:
    """Nothing undefined (F821), no import for nothing (F401)."""
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821,F401", "-"]
    checked = subprocess.run(ruff, input=sample, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_command_needs_ml_home_to_be_set(page: Path) -> None:
    """It is not set where the state is in ~/.amphitrite: ``rm "$ML_HOME"/x`` would be ``rm /x``."""
    assert _HOME.findall(page.read_text()) == []

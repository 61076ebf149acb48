"""What docs/kubernetes.md says of the chart and the program is what they are."""

from __future__ import annotations

import re
import runpy
from typing import Any

import pytest

from amphitrite.schemas.errors import CODES

from .chart import EXAMPLES, ROOT

DOCS = ROOT / "docs"


def tables() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "kubernetes_tables.py"))


@pytest.mark.slow
def test_the_generated_tables_are_up_to_date() -> None:
    assert (DOCS / "kubernetes.md").read_text(encoding="utf-8") == tables()["page"](), "run: python docs/generate.py"


@pytest.mark.slow
def test_the_contract_is_run_against_every_runtime() -> None:
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in tables()["parity"]().splitlines()]
    assert rows[0] == ["what holds", "memory", "local", "kubernetes"]
    assert len(rows) > 4
    # What is true of model files only, the runtime without processes cannot show.
    assert all(row[2:] == ["yes"] * 2 and row[1] in ("yes", "-") for row in rows[2:])
    assert sum(row[1] == "yes" for row in rows[2:]) >= 4


def test_every_code_in_the_troubleshooting_table_exists() -> None:
    text = (DOCS / "kubernetes.md").read_text(encoding="utf-8")
    section = text.split("| code | means | do |")[1].split("\n\n")[0]
    codes = re.findall(r"^\| `(\w+)` ", section, re.MULTILINE)
    assert codes
    assert set(codes) <= set(CODES)


def test_links_and_examples_exist() -> None:
    text = (DOCS / "kubernetes.md").read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert [link for link in links if not (DOCS / link).exists()] == []
    assert set(re.findall(r"examples/([a-z-]+)\.yaml", text)) <= set(EXAMPLES)

"""docs/security.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "security.md"


def test_each_boundary_is_proved_by_a_test_that_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## Attackers and assets") :].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 20
    missing = []
    for row in rows:
        named = re.findall(r"`([\w/.]+)::(\w+)`", row[3])
        assert len(row) == 4 and named, row
        for file, name in named:
            path = TESTS / file
            if not path.is_file() or not re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
                missing.append(f"{file}::{name}")
    assert missing == []

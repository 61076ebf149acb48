"""How lines of the logs are shown: one line each, whatever was logged."""

from __future__ import annotations

import json

import pytest

from amphitrite.cli.server import log_lines

FORGED = "/a\n2026-11-23 03:00:00.000 info controlplane: stopped\r\x1b[2K\x9b2K\x85\u2028\u202eb"
RECORD = {"time": "2026-11-23T03:00:00.000Z", "level": "info", "logger": "x"}


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({**RECORD, "message": f"GET {FORGED} 404", "path": FORGED}),
        json.dumps({**RECORD, "message": "said", FORGED: FORGED}),
        json.dumps({**RECORD, "level": FORGED, "message": "said"}),
        f"not json {FORGED}",
    ],
)
def test_what_was_logged_is_shown_on_its_line(line: str) -> None:
    parsed = log_lines.parse("controlplane", line)
    for shown in (parsed.to_text(), parsed.to_json()):
        assert shown.isprintable(), shown
    text = f"{json.loads(parsed.to_json())}"
    assert "stopped" in text


def test_a_traceback_has_its_lines_and_no_others() -> None:
    record = {**RECORD, "message": "failed", "traceback": f"Traceback:\n  File x\nValueError: {FORGED}"}
    first, *rest = log_lines.parse("controlplane", json.dumps(record)).to_text().split("\n")
    assert first.endswith("failed")
    assert all(line.startswith("  ") and line.isprintable() for line in rest)

"""Writes down what the real Triton says of each case:
``python -m tests.repository.record [case …]``.

Decides how the answers are kept. Each case is judged by a server of its own, with exactly the
product's options.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import yaml

from .cases import RECORD, Case, corpus, recorded
from .judge import alone


def record(cases: list[Case]) -> None:
    """Adds to the record, or replaces there; a case that no longer exists leaves it."""
    record = {case.name: recorded()[case.name] for case in corpus() if case.name in recorded()}
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="case-") as directory:
            verdict = alone(case.write(Path(directory) / case.name))
        record[case.name] = {"verdict": "loads" if verdict.loads else "refused", "says": list(verdict.words)}
        print(f"{case.name}: {record[case.name]['verdict']} {' / '.join(verdict.words)}", flush=True)
        text = yaml.safe_dump(dict(sorted(record.items())), width=1000, allow_unicode=True, sort_keys=False)
        RECORD.write_text(f"# Written by `python -m tests.repository.record`.\n{text}")


if __name__ == "__main__":
    wanted = set(sys.argv[1:])
    chosen = [case for case in corpus() if not wanted or case.name in wanted]
    if unknown := wanted - {case.name for case in chosen}:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}")
    record(chosen)

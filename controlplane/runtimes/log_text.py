"""The logs of a deployment as one text.

Decides order and headings. Must not know files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amphitrite.controlplane.core.observed import Instance


def render(logs: Iterable[tuple[Instance, Sequence[str]]]) -> str:
    """Each instance's lines under a heading, the one started last at the end; empty when there is none."""
    ordered = sorted(logs, key=lambda entry: (entry[0].started_at, entry[0].id))
    return "".join(f"==> {_heading(i)} <==\n" + "".join(f"{line}\n" for line in lines) for i, lines in ordered)


def _heading(instance: Instance) -> str:
    words = [instance.id, instance.phase]
    if instance.exit_code is not None:
        words.append(f"exit code {instance.exit_code}")
    return ", ".join(words)

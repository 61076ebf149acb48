"""How the answers of two deployments compare: counts, and the largest differences.

Decides what is counted of a comparison, and how many names of tensors are kept. A value. Must not
know how answers are compared, nor what follows from it.

``COMPARED`` are all exchanges that were judged. Of these, ``DIFFER`` were beyond the tolerance or
had another form, ``DISAGREE`` had their largest number elsewhere, and in ``FAILED`` there was no
answer to compare: such an exchange counts as all three. ``DROPPED`` were not judged: there were too
many, one was too large, or it was no answer of KServe V2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

COMPARED, DIFFER, DISAGREE = "answers/compared", "answers/differ", "answers/disagree"
FAILED, DROPPED = "answers/failed", "answers/dropped"
FIELDS = (COMPARED, DIFFER, DISAGREE, DROPPED, FAILED)
#: Tensors of one deployment whose largest difference is kept.
_TENSORS_MAX = 32
_NAME_MAX = 128
#: The name of a tensor, as it is kept: what models call their outputs, without control characters.
TENSOR = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,128}")
#: Stands for any difference from that on: of a number from none (NaN) or from infinity, too.
UNBOUNDED = 1e18

#: The largest absolute difference by the name of a tensor.
Differences = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Answers:
    """What was counted of one deployment's answers, beside those of another."""

    counts: Mapping[str, int] = field(default_factory=dict)
    differences: Differences = field(default_factory=dict)


def tensor_name(name: str) -> str:
    """``name`` as it is kept: a model may call its outputs anything."""
    return "".join(c if TENSOR.fullmatch(c) else "?" for c in name[:_NAME_MAX]) or "?"


def largest(one: Differences, other: Differences) -> dict[str, float]:
    """The larger difference of each tensor; of the first ``_TENSORS_MAX`` tensors, by name."""
    both = {name: min(max(one.get(name, 0.0), other.get(name, 0.0)), UNBOUNDED) for name in {*one, *other}}
    return {name: both[name] for name in sorted(both)[:_TENSORS_MAX]}


def add(one: Answers, other: Answers) -> Answers:
    """The sum of what was counted."""
    names = {*one.counts, *other.counts}
    counts = {name: one.counts.get(name, 0) + other.counts.get(name, 0) for name in sorted(names)}
    return Answers(counts, largest(one.differences, other.differences))

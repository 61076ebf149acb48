"""Compares two answers: how far apart their numbers are, and whether they name the same class.

Decides what differs:

- Outputs must be the same by name, datatype and shape, else the answers differ and disagree.
- Numbers differ by more than the tolerance, absolutely. Two NaN are equal, and so are two equal
  infinities; beside anything else, the difference of either is infinite.
- Texts and bytes (``BYTES``) must be equal.
- Answers disagree when the largest number of a row, along the last axis, is at another place. That
  is asked of tensors of numbers with more than one in a row. NaN is above all numbers. A place that
  is one of several with the largest number agrees.

A tensor of more than ``ELEMENTS_MAX`` elements is compared by rows, spaced evenly: at least one.
Must not know who asks. No numpy: the process that compares does not have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isnan
from operator import sub

from amphitrite.dataplane.comparison.answer_tensors import Number, Tensor

#: How many elements of one tensor are compared, unless one row has more.
ELEMENTS_MAX = 65_536
#: Elements that are worked on at once: other threads run in between.
_CHUNK = 4_096


@dataclass(frozen=True, slots=True)
class Verdict:
    """``differs``: beyond the tolerance, or not of one form. ``disagrees``: about a largest number.
    ``differences``: the largest absolute difference by name, of each numeric output that both
    have."""

    differs: bool
    disagrees: bool
    differences: tuple[tuple[str, float], ...] = ()


#: Of an answer beside none: the candidate has failed.
FAILED = Verdict(True, True)


def compare(base: Sequence[Tensor], candidate: Sequence[Tensor], tolerance: float) -> Verdict:
    """Compares two answers, each sorted by name."""
    others = {tensor.name: tensor for tensor in candidate}
    differs = disagrees = [_form(t) for t in base] != [_form(t) for t in candidate]
    differences = []
    for tensor in base:
        other = others.get(tensor.name)
        if other is None or _form(tensor) != _form(other):
            continue
        if not tensor.numeric:
            differs = differs or tensor.texts() != other.texts()
            continue
        largest, agrees = _compare(tensor, other)
        differences.append((tensor.name, largest))
        differs = differs or largest > tolerance
        disagrees = disagrees or not agrees
    return Verdict(differs, disagrees, tuple(differences))


def _form(tensor: Tensor) -> tuple[str, str, tuple[int, ...]]:
    return tensor.name, tensor.datatype, tensor.shape


def _compare(one: Tensor, other: Tensor) -> tuple[float, bool]:
    """The largest difference, and whether the largest numbers are at the same places."""
    if isinstance(one.content, bytes) and one.content == other.content:
        return 0.0, True
    largest, agrees = 0.0, True
    for start, stop in _rows(one.size, one.row):
        ranks = _Ranks(), _Ranks()
        for at in range(start, stop, _CHUNK):
            end = min(at + _CHUNK, stop)
            first, second = one.numbers(at, end), other.numbers(at, end)
            largest = max(largest, _difference(first, second))
            if one.ranked:
                ranks[0].add(first, second)
                ranks[1].add(second, first)
        agrees = agrees and (not one.ranked or ranks[0].shared or ranks[1].shared)
    return largest, agrees


def _rows(size: int, row: int) -> Iterator[tuple[int, int]]:
    """The rows that are compared: their first elements, and those after their last."""
    if not size:
        return
    if row == 1:  # The elements themselves: pieces of them are as good as rows.
        row = min(size, _CHUNK)
    rows = -(-size // row)
    wanted = max(1, min(rows, ELEMENTS_MAX // row))
    for index in range(wanted):
        start = row * (index * rows // wanted)
        yield start, min(start + row, size)


def _difference(first: Sequence[Number], second: Sequence[Number]) -> float:
    try:
        each = list(map(abs, map(sub, first, second)))
        largest = float(max(each))
        if not isnan(sum(each)):
            return largest
    except OverflowError:  # An integer of JSON may be larger than any float.
        pass
    return max(map(_difference_of, first, second))


def _difference_of(one: Number, other: Number) -> float:
    if one == other or (one != one and other != other):
        return 0.0
    try:
        difference = float(abs(one - other))
    except OverflowError:
        return inf
    return inf if isnan(difference) else difference


class _Ranks:
    """The largest number of a row that comes in pieces, and whether the other row has its own
    largest number at the first of these places."""

    def __init__(self) -> None:
        self._largest: Number | None = None
        self._beside: Number = 0
        self._other: Number | None = None

    def add(self, own: Sequence[Number], other: Sequence[Number]) -> None:
        at = _largest_at(own)
        if self._largest is None or _above(own[at], self._largest):
            self._largest, self._beside = own[at], other[at]
        top = other[_largest_at(other)]
        if self._other is None or _above(top, self._other):
            self._other = top

    @property
    def shared(self) -> bool:
        return self._other is not None and not _above(self._other, self._beside)


def _largest_at(row: Sequence[Number]) -> int:
    """The index of the first largest number."""
    try:
        if isnan(sum(row)):
            return next((index for index, number in enumerate(row) if number != number), row.index(max(row)))
    except OverflowError:
        pass
    return row.index(max(row))


def _above(one: Number, other: Number) -> bool:
    """Whether ``one`` is larger, where NaN is larger than any number."""
    return one > other or (one != one and other == other)

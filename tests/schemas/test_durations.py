"""Durations are exact in both directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.schemas import durations


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT0.5S", 500),
        ("PT5S", 5000),
        ("PT1M30S", 90_000),
        ("P1DT1H", 90_000_000),
        ("PT0,25S", 250),
        ("P1W", 604_800_000),
    ],
)
def test_read(text: str, milliseconds: int) -> None:
    assert durations.to_milliseconds(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "5", "PT5", "P1Y", "P1M", "-PT5S", "PT0.0005S", "PT5S\n", "PT٣S", 5, None, []]
)
def test_refused(text: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        durations.to_milliseconds(text)


@given(st.integers(0, 10**9))
def test_milliseconds_survive(milliseconds: int) -> None:
    assert durations.to_milliseconds(durations.from_milliseconds(milliseconds)) == milliseconds


@given(st.integers(0, 10**9))
def test_seconds_survive(seconds: int) -> None:
    assert durations.to_seconds(durations.from_seconds(seconds)) == seconds

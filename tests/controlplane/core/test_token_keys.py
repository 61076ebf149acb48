"""Which key signs, which are published and when they change: every token counts for as long as it
says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.core.planning.key_rotation import (
    CLOCK_SKEW_S,
    Schedule,
    SigningKey,
    expired_keys,
    refresh_after_s,
    rotation_due,
    signing_key,
)
from amphitrite.dataplane.table.routing_table import Secret

HOUR, DAY = 3600.0, 86_400.0
MONTHLY = Schedule(rotation_s=30 * DAY, lifetime_s=12 * HOUR)


def keys(*created: float) -> list[SigningKey]:
    return [SigningKey(f"k{at:g}", Secret("pem"), at) for at in created]


def ids(found: tuple[SigningKey, ...] | SigningKey | None) -> list[str]:
    some = found if isinstance(found, tuple) else (found,)
    return [one.id for one in some if one is not None]


@pytest.mark.parametrize(
    ("created", "now", "signs", "due", "gone"),
    [
        ((), 0, [], True, []),
        ((0,), 0, ["k0"], False, []),
        ((0,), 30 * DAY - 1, ["k0"], False, []),
        ((0,), 30 * DAY, ["k0"], True, []),
        ((0,), 90 * DAY, ["k0"], True, []),
        ((0, 30 * DAY), 30 * DAY, ["k0"], False, []),
        ((0, 30 * DAY), 30 * DAY + HOUR - 1, ["k0"], False, []),
        ((0, 30 * DAY), 30 * DAY + HOUR, [f"k{30 * DAY:g}"], False, []),
        ((0, 30 * DAY), 30 * DAY + 13 * HOUR, [f"k{30 * DAY:g}"], False, []),
        ((0, 30 * DAY), 30 * DAY + 13 * HOUR + 2 * CLOCK_SKEW_S, [f"k{30 * DAY:g}"], False, ["k0"]),
        ((0, 1, 2), 100 * DAY, ["k2"], True, ["k0", "k1"]),
        ((2, 0, 1), 100 * DAY, ["k2"], True, ["k0", "k1"]),
        # A clock that was set back: what is of the future does not sign while anything else can.
        ((0, 50 * DAY), 10 * DAY, ["k0"], False, []),
        ((50 * DAY,), 10 * DAY, [f"k{50 * DAY:g}"], False, []),
    ],
)
def test_keys(created: tuple[float, ...], now: float, signs: list[str], due: bool, gone: list[str]) -> None:
    have = keys(*created)
    assert ids(signing_key(have, MONTHLY, now)) == signs
    assert rotation_due(have, MONTHLY, now) is due
    assert ids(expired_keys(have, MONTHLY, now)) == gone


def test_a_token_is_replaced_long_before_it_ends() -> None:
    assert refresh_after_s(MONTHLY) == 6 * HOUR


SECONDS = st.floats(min_value=0, max_value=90 * DAY)
SCHEDULES = st.builds(
    Schedule,
    rotation_s=st.floats(min_value=HOUR, max_value=60 * DAY),
    lifetime_s=st.floats(min_value=300, max_value=30 * DAY),
)


@given(SCHEDULES, st.lists(SECONDS, min_size=5, max_size=60))
def test_over_any_passes_every_token_counts_to_its_end(schedule: Schedule, times: list[float]) -> None:
    """Passes at any times, with any gaps. Whenever a token is made its key has been published long
    enough (or is the first of all), it is published at every pass until the token ends, and private
    keys do not pile up."""
    have: list[SigningKey] = []
    published: dict[str, tuple[float, float]] = {}  # id -> first and last pass at which it was
    promised: dict[str, float] = {}  # id -> when its last token ends
    for now in sorted(times):
        gone = expired_keys(have, schedule, now)
        assert all(promised.get(one.id, 0) + CLOCK_SKEW_S <= now for one in gone)
        have = [one for one in have if one not in gone]
        if rotation_due(have, schedule, now):
            have = [*have, SigningKey(f"{now}-{len(published)}", Secret("pem"), now)]
        for one in have:
            published[one.id] = (published.get(one.id, (now, now))[0], now)
        key = signing_key(have, schedule, now)
        assert key is not None
        first = published[key.id][0]
        assert now - first >= schedule.ahead_s or next(iter(published)) == key.id
        promised[key.id] = now + schedule.lifetime_s
    assert len(have) <= 2 + (schedule.ahead_s + schedule.lifetime_s + 2 * CLOCK_SKEW_S) / schedule.rotation_s

"""How many instances a deployment should have: rows, properties, and loads that are replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.core.scaling import demand
from amphitrite.controlplane.core.scaling.demand import DemandSample
from amphitrite.controlplane.core.scaling.recommendation import ScalingHistory, Supply, Wanted, recommend
from amphitrite.controlplane.core.scaling.scaling_policy import ScalingPolicy
from bench.replays import replay, traces
from bench.replays.rules import HorizontalPodAutoscaler, Knative, Ours

NOW = 10_000.0
#: 8 requests at once for each instance, 5.6 of them wanted.
POLICY = ScalingPolicy(1, 10, 8, 0.7)
FROM_ZERO = ScalingPolicy(0, 10, 8, 0.7)


def steady(in_flight: float, seconds: int = 80, refused: float = 0.0) -> list[DemandSample]:
    """A sample for each second until now. Each request takes half a second."""
    return [
        DemandSample(NOW - seconds + 1 + n, 1.0, in_flight, 0.0, 2 * in_flight, in_flight, refused)
        for n in range(seconds)
    ]


def idle(seconds: int = 80) -> list[DemandSample]:
    return steady(0, seconds)


def wanted_before(count: int) -> ScalingHistory:
    """The demand of the last 75 s asked for ``count``."""
    return ScalingHistory(tuple(Wanted(NOW - 74 + n, count) for n in range(74)))


ROWS = [
    ("as many as are needed", POLICY, steady(11), Supply(2, 2), 2, ""),
    (
        "more on average",
        POLICY,
        steady(20),
        Supply(2, 2),
        4,
        "2 -> 4: 20 requests at once on 2 x 8 for 60 s, target 70 %",
    ),
    (
        "more lately",
        POLICY,
        [*steady(5)[:-6], *steady(41, 6)],
        Supply(2, 2),
        8,
        "2 -> 8: 41 requests at once on 2 x 8 for 6 s, target 70 %",
    ),
    ("within the noise", POLICY, [*steady(11)[:-6], *steady(12, 6)], Supply(2, 2), 2, ""),
    (
        "refused: a second is enough, and all of an instance is used",
        POLICY,
        [*steady(5)[:-1], *steady(16, 1, refused=16.0)],
        Supply(2, 2),
        3,
        "2 -> 3: 24 requests at once on 2 x 8 for 1 s, target 70 %",
    ),
    (
        "what does not fit is not asked for",
        POLICY,
        steady(50),
        Supply(2, 2, 1, room=3),
        6,
        "2 -> 6: 50 requests at once on 2 x 8 for 60 s, target 70 %; 9 are needed, and the compute has room for 6",
    ),
    ("nothing fits", POLICY, steady(50), Supply(2, 2, room=0), 2, ""),
    (
        "at most max_instances",
        POLICY,
        steady(500),
        Supply(2, 2),
        10,
        "2 -> 10: 500 requests at once on 2 x 8 for 60 s, target 70 %",
    ),
    ("no sample", POLICY, [], Supply(3, 3), 3, ""),
    ("no recent sample", POLICY, steady(50)[:-7], Supply(3, 3), 3, ""),
    ("limits changed, without a sample", POLICY, [], Supply(12, 12), 10, "12 -> 10: min_instances 1, max_instances 10"),
    (
        "from zero: one request wakes one",
        FROM_ZERO,
        [*idle()[:-1], DemandSample(NOW, 1.0, 0.0, held=1.0)],
        Supply(0, 0, used_at=NOW),
        1,
        "0 -> 1: 0.2 requests at once on 0 x 8 for 6 s, target 70 %",
    ),
    ("nobody wakes it", FROM_ZERO, idle(), Supply(0, 0), 0, ""),
]


@pytest.mark.parametrize(
    ("policy", "samples", "supply", "count", "reason"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_growing_and_staying(
    policy: ScalingPolicy, samples: Sequence[DemandSample], supply: Supply, count: int, reason: str
) -> None:
    found = recommend(samples, NOW, policy, supply, ScalingHistory())
    assert (found.count, found.reason) == (count, reason)


SHRINKING = [
    ("to what was needed at most", POLICY, steady(5), Supply(3, 3), wanted_before(2), 2,
     "3 -> 2: at most 2 were needed in the last 75 s"),
    ("at most half", POLICY, steady(1), Supply(9, 9), wanted_before(1), 4,
     "9 -> 4: at most 1 were needed in the last 75 s"),
    ("not while the window is not over", POLICY, steady(1), Supply(9, 9),
     ScalingHistory((Wanted(NOW - 30, 1),)), 9, ""),
    ("not without numbers of the whole window", POLICY, steady(1, 40), Supply(9, 9), wanted_before(1), 9, ""),
    ("not again in the same window", POLICY, steady(1), Supply(9, 9),
     ScalingHistory(wanted_before(1).wanted, NOW - 20), 9, ""),
    ("asleep", FROM_ZERO, idle(), Supply(1, 1, used_at=NOW - 400), wanted_before(0), 0,
     "1 -> 0: no request for 400 s, idle_timeout 300 s"),
    ("not asleep before the time", FROM_ZERO, idle(), Supply(1, 1, used_at=NOW - 200), wanted_before(0), 1, ""),
    ("asleep, though the average remembers", replace(FROM_ZERO, idle_timeout_s=20.0), [*steady(1, 80)[:-30], *idle(30)],
     Supply(1, 1, used_at=NOW - 30), wanted_before(1), 0, "1 -> 0: no request for 30 s, idle_timeout 20 s"),
    ("not asleep without numbers of the time", FROM_ZERO, idle(20), Supply(1, 1, used_at=NOW - 400),
     wanted_before(0), 1, ""),
    ("one is left until the time", FROM_ZERO, idle(), Supply(4, 4, used_at=NOW - 200), wanted_before(0), 2,
     "4 -> 2: at most 1 were needed in the last 75 s"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "samples", "supply", "history", "count", "reason"), [row[1:] for row in SHRINKING],
    ids=[row[0] for row in SHRINKING],
)  # fmt: skip
def test_shrinking(
    policy: ScalingPolicy,
    samples: Sequence[DemandSample],
    supply: Supply,
    history: ScalingHistory,
    count: int,
    reason: str,
) -> None:
    found = recommend(samples, NOW, policy, supply, history)
    assert (found.count, found.reason) == (count, reason)


SAMPLES = st.lists(
    st.builds(
        DemandSample,
        at=st.just(0.0),
        seconds=st.just(1.0),
        in_flight=st.integers(0, 500).map(float),
        held=st.integers(0, 50).map(float),
        answered=st.integers(0, 500).map(float),
        busy_s=st.floats(0, 500),
        refused=st.integers(0, 100).map(float),
    ),
    max_size=90,
).map(
    lambda found: [
        DemandSample(NOW - len(found) + n + 1, 1.0, s.in_flight, s.held, s.answered, s.busy_s, s.refused)
        for n, s in enumerate(found)
    ]
)
POLICIES = st.builds(
    ScalingPolicy,
    min_instances=st.integers(0, 3),
    max_instances=st.integers(3, 20),
    per_instance=st.integers(1, 64),
    target=st.floats(0.1, 1.0),
    start_s=st.floats(0, 300),
)
SUPPLIES = st.builds(
    Supply,
    count=st.integers(0, 20),
    ready=st.integers(0, 20),
    starting=st.integers(0, 20),
    room=st.none() | st.integers(0, 20),
    used_at=st.floats(NOW - 1000, NOW),
)
HISTORIES = st.lists(st.builds(Wanted, st.floats(NOW - 100, NOW - 1), st.integers(0, 20)), max_size=20).map(
    lambda found: ScalingHistory(tuple(sorted(found, key=lambda one: one.at)))
)


@given(SAMPLES, POLICIES, SUPPLIES, HISTORIES)
def test_within_the_limits_with_a_reason_for_each_change(
    samples: list[DemandSample], policy: ScalingPolicy, supply: Supply, history: ScalingHistory
) -> None:
    found = recommend(samples, NOW, policy, supply, history)
    assert policy.min_instances <= found.count <= policy.max_instances
    assert bool(found.reason) == (found.count != supply.count)
    assert found.wake_at > NOW
    # The same question has the same answer, and the history does not grow without end.
    assert recommend(samples, NOW, policy, supply, history) == found
    assert all(one.at > NOW - policy.down_window_s for one in found.history.wanted)
    if found.count < supply.count and supply.count <= policy.max_instances:
        assert found.count >= supply.count // 2


@given(SAMPLES.filter(lambda found: len(found) > 3), POLICIES, SUPPLIES, st.integers(1, 100))
def test_more_demand_never_means_fewer(
    samples: list[DemandSample], policy: ScalingPolicy, supply: Supply, more: int
) -> None:
    one = recommend(samples, NOW, policy, supply, ScalingHistory())
    higher = [
        DemandSample(s.at, s.seconds, s.in_flight + more, s.held, s.answered, s.busy_s, s.refused) for s in samples
    ]
    flat = ScalingPolicy(policy.min_instances, policy.max_instances, policy.per_instance, policy.target)
    assert recommend(higher, NOW, flat, supply, ScalingHistory()).count >= min(
        one.count, recommend(samples, NOW, flat, supply, ScalingHistory()).count
    )


def test_a_jump_is_no_growth_and_a_ramp_is() -> None:
    jump = [*steady(10)[:-5], *steady(100, 5)]
    assert demand.steady_growth(jump, NOW, 15.0, 0.5) == 0.0
    ramp = [DemandSample(NOW - 14 + n, 1.0, 10.0 + 4 * n) for n in range(15)]
    assert demand.steady_growth(ramp, NOW, 15.0, 0.5) == pytest.approx(4.0)
    slow, fast = (ScalingPolicy(1, 50, 8, 0.7, start_s=s) for s in (0.0, 30.0))
    now = recommend(ramp, NOW, slow, Supply(3, 3), ScalingHistory()).count
    assert recommend(ramp, NOW, fast, Supply(3, 3), ScalingHistory()).count > now


def test_what_comes_and_goes_between_samples_counts() -> None:
    bursts = [DemandSample(NOW - 59 + n, 1.0, 0.0, answered=40.0, busy_s=20.0) for n in range(60)]
    assert demand.mean_demand(bursts, 0.5) == pytest.approx(20.0)
    # One that took a minute was not sixty requests at once in the second in which it ended.
    late = [DemandSample(NOW - 5 + n, 1.0, 1.0) for n in range(5)] + [DemandSample(NOW, 1.0, 0.0, 0.0, 1.0, 60.0)]
    assert demand.mean_demand(late, 60.0) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("make", traces.ALL, ids=lambda make: make.__name__)
def test_ours_is_less_over_target_than_the_peers(make: Callable[[], traces.Trace]) -> None:
    """Simulated with a seed, so the numbers are the same each time. ``python -m bench scaling``
    prints all."""
    trace = make()
    policy = ScalingPolicy(1, 100, 4, 0.7, start_s=trace.start_s)
    ours, *peers = (
        replay.replay(trace, rule, 4, 0.7) for rule in (Ours(policy), Knative(policy), HorizontalPodAutoscaler(policy))
    )
    assert ours.over_share <= min(peer.over_share for peer in peers)
    assert ours.refused_share <= 1.1 * min(peer.refused_share for peer in peers)

"""Verdicts about a new deployment: rows, and rollouts that are simulated with a seed."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.core.rollouts import evidence, judgement
from amphitrite.controlplane.core.rollouts.evidence import Count, Evidence, Watch
from amphitrite.controlplane.core.rollouts.judgement import Judgement, Objective, Verdict

ERRORS = Objective("errors", limit=0.01)
COMPARED = Objective("errors", margin=0.2)
SLOW = Objective("slower than 80 ms", limit=0.05)


def judged(objectives: tuple[Objective, ...], *intervals: tuple[Count, Count], alpha: float = 0.01) -> Verdict:
    found = Judgement(objectives, alpha)
    for new, other in intervals:
        names = [one.name for one in objectives]
        found = judgement.observe(found, dict.fromkeys(names, new), dict.fromkeys(names, other))
    return judgement.verdict(found)


ROWS = [
    (
        "nothing was asked of it",
        (ERRORS,),
        [(Count(), Count(500, 0))],
        Verdict("no data", "the new deployment has answered no request yet"),
    ),
    (
        "too few to say",
        (ERRORS,),
        [(Count(100, 0), Count(900, 0))],
        Verdict("inconclusive", "about 540 more requests are needed", 540),
    ),
    ("enough to say", (ERRORS,), [(Count(700, 0), Count(900, 0))], Verdict("promote", "errors: 0 % (0 of 700)")),
    (
        "a tenth fails",
        (ERRORS,),
        [(Count(200, 20), Count())],
        Verdict("roll back", "errors: 10 % (20 of 200), above the limit of 1 %"),
    ),
    (
        "as many as the limit allows",
        (ERRORS,),
        [(Count(1000, 10), Count())],
        Verdict("inconclusive", "1 % (10 of 1,000) errors is too near to the limit of 1 %"),
    ),
    (
        "worse than the other",
        (COMPARED,),
        [(Count(1000, 12), Count(9000, 9))],
        Verdict("roll back", "errors: 1.2 % (12 of 1,000), against 0.1 % (9 of 9,000)"),
    ),
    (
        "as bad as the other",
        (COMPARED,),
        [(Count(1000, 50), Count(9000, 450))],
        Verdict("promote", "errors: 5 % (50 of 1,000)"),
    ),
    (
        "one of two objectives",
        (ERRORS, SLOW),
        [(Count(300, 60), Count())],
        Verdict("roll back", "errors: 20 % (60 of 300), above the limit of 1 %"),
    ),
    (
        "all fail at once",
        (COMPARED,),
        [(Count(30, 30), Count())],
        Verdict("roll back", "errors: 100 % (30 of 30) in one interval"),
    ),
    (
        "both fail: something else is broken",
        (COMPARED,),
        [(Count(30, 30), Count(270, 270))],
        Verdict("promote", "errors: 100 % (30 of 30)"),
    ),
]


@pytest.mark.parametrize(("objectives", "intervals", "wanted"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_verdicts(objectives: tuple[Objective, ...], intervals: list[tuple[Count, Count]], wanted: Verdict) -> None:
    assert judged(objectives, *intervals) == wanted


COUNTS = st.integers(0, 1000).flatmap(lambda total: st.builds(Count, st.just(total), st.integers(0, total)))


@given(st.lists(COUNTS, max_size=8))
def test_evidence_of_many_intervals_is_that_of_their_sum_for_a_limit(intervals: list[Count]) -> None:
    one_by_one, at_once = Evidence(), Count()
    for new in intervals:
        one_by_one, at_once = evidence.below(one_by_one, new, 0.01), at_once + new
    assert math.isclose(one_by_one.log, evidence.below(Evidence(), at_once, 0.01).log, abs_tol=1e-6)


@given(st.lists(st.tuples(COUNTS, COUNTS), max_size=4), COUNTS, COUNTS, st.floats(0.001, 0.5), st.floats(0, 1))
def test_a_fair_bet_cannot_win_on_average(
    earlier: list[tuple[Count, Count]], new: Count, other: Count, limit: float, margin: float
) -> None:
    """Of the next request, over its two outcomes, at the edge of the claim: the expected value of
    the whole stays as it is, whatever came before."""
    above, worse = Watch(), Watch()
    for theirs, ours in earlier:
        above, worse = evidence.above(above, theirs, limit), evidence.worse_than_other(worse, theirs, ours, margin)
    good, bad = (evidence.above(above, Count(1, outcome), limit).log - above.log for outcome in (0, 1))
    assert (1 - limit) * math.exp(good) + limit * math.exp(bad) == pytest.approx(1.0, rel=1e-5)
    if new.total and other.total:
        share = (1 + margin) * new.total / ((1 + margin) * new.total + other.total)
        good, bad = (
            evidence.worse_than_other(worse, Count(new.total, one), Count(other.total, 1 - one), margin).log - worse.log
            for one in (0, 1)
        )
        assert (1 - share) * math.exp(good) + share * math.exp(bad) == pytest.approx(1.0, rel=1e-5)


def test_a_fault_that_begins_late_is_found_nearly_as_fast() -> None:
    """After an hour of looks, each with 500 requests: a tenth of what the hour has lost is not
    needed to win it back."""
    found, looks = Judgement((ERRORS,), 0.01), 0
    for _ in range(720):
        found = judgement.observe(found, {"errors": Count(500, 1)}, {})
    while judgement.verdict(found).outcome != "roll back":
        found, looks = judgement.observe(found, {"errors": Count(500, 25)}, {}), looks + 1
    assert looks == 1
    assert judgement.verdict(found).reason == "errors: 5 % (25 of 500), above the limit of 1 %"


def detected_at(random_: random.Random, blue: float, green: float, part: float, seconds: int = 1800) -> int | None:
    """Seconds until a rollback at 100 requests a second, looked at each 5 s; None: it was not."""
    found = Judgement((COMPARED,), 0.01)
    new, other = int(500 * part), int(500 * (1 - part))
    for at in range(5, seconds + 1, 5):
        counts = [Count(total, _poisson(random_, rate * total)) for total, rate in ((new, green), (other, blue))]
        found = judgement.observe(found, {"errors": counts[0]}, {"errors": counts[1]})
        if judgement.verdict(found).outcome == "roll back":
            return at
    return None


def _poisson(random_: random.Random, mean: float) -> int:
    limit, product, count = math.exp(-mean), random_.random(), 0
    while product > limit:
        product *= random_.random()
        count += 1
    return count


#: (blue's rate, green's, green's part of the traffic, median seconds at most): what the design's
#: own simulation had, and a fifth.
SIMULATED = [
    (0.001, 0.5, 0.1, 5),
    (0.001, 0.05, 0.1, 15),
    (0.001, 0.01, 0.1, 70),
    (0.001, 0.003, 0.5, 290),
]


@pytest.mark.slow
@pytest.mark.parametrize(("blue", "green", "part", "median_s"), SIMULATED)
def test_a_worse_one_is_found(blue: float, green: float, part: float, median_s: int) -> None:
    random_ = random.Random(7)
    found = [detected_at(random_, blue, green, part) for _ in range(41)]
    assert statistics.median(math.inf if at is None else at for at in found) <= median_s


@pytest.mark.slow
@pytest.mark.parametrize(("green", "part"), [(0.01, 0.1), (0.012, 0.5)])
def test_an_equal_one_is_left_alone(green: float, part: float) -> None:
    """``alpha`` is 1 %: of 60, more than four happen once in a thousand times."""
    random_ = random.Random(8)
    assert sum(detected_at(random_, 0.01, green, part, 900) is not None for _ in range(60)) <= 4

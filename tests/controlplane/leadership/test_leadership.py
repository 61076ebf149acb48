"""Who leads: the decision as a table and as a property over several candidates, and a term's
beginning and end."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.leadership import lease_rules
from amphitrite.controlplane.leadership.election import AlwaysLeader, Election
from amphitrite.controlplane.leadership.lease_rules import DURATION_S, Decision, Lease, Observation
from amphitrite.schemas.errors import Error

from ...waiting import wait_until

MINE, THEIRS = Lease("me", 10.0, "t1"), Lease("other", 10.0, "t1")
GIVEN_BACK = Lease("", 1.0, "t2")
DEADLINE_S = 60.0


@pytest.mark.parametrize(
    ("lease", "since", "now", "verdict"),
    [
        (None, 0.0, 0.0, "create"),
        (MINE, 0.0, 5.0, "renew"),
        (MINE, 0.0, 500.0, "renew"),  # Nobody took it: still ours, however late.
        (THEIRS, 0.0, 9.9, "wait"),
        (THEIRS, 0.0, 10.0, "take"),
        (THEIRS, 95.0, 100.0, "wait"),  # Its age counts from when we saw it change, whatever its own times say.
        (GIVEN_BACK, 100.0, 100.0, "take"),
        (Lease("other", 60.0, "t1"), 0.0, 30.0, "wait"),  # The holder's own duration counts.
    ],
)
def test_decision(lease: Lease | None, since: float, now: float, verdict: Decision) -> None:
    assert lease_rules.decide(Observation(lease, since), "me", now) == verdict


def test_a_lease_keeps_its_time_until_it_is_renewed() -> None:
    first = lease_rules.observe(None, THEIRS, 1.0)
    same = lease_rules.observe(first, Lease("other", 10.0, "t1", revision="2"), 5.0)
    assert (first.since, same.since) == (1.0, 1.0)
    assert lease_rules.observe(same, Lease("other", 10.0, "t2"), 6.0).since == 6.0
    assert lease_rules.observe(same, Lease("third", 10.0, "t1"), 6.0).since == 6.0


@dataclass
class MemoryLeases:
    """A Lease in memory that refuses what was not read from its newest state, as the API server
    does."""

    lease: Lease | None = None
    writes: int = 0
    down: bool = False
    #: Whether the next write is carried out, but its answer lost.
    mute: bool = False

    def read(self) -> Lease | None:
        self._reach()
        return self.lease

    def write(self, before: Lease | None, holder: str) -> Lease | None:
        self._reach()
        if (self.lease and self.lease.revision) != (before and before.revision):
            return None
        self.writes += 1
        self.lease = Lease(holder, DURATION_S if holder else 1.0, f"t{self.writes}", revision=str(self.writes))
        if self.mute:
            self.mute = False
            raise Error("RuntimeUnavailable", "no answer")
        return self.lease

    def _reach(self) -> None:
        if self.down:
            raise Error("RuntimeUnavailable", "no API server")


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


#: (which candidate, seconds that pass before, what happens to it)
STEP = st.tuples(
    st.integers(0, 2), st.floats(0.0, 12.0), st.sampled_from(["attempt", "attempt", "attempt", "lost", "down"])
)


@given(st.lists(STEP, max_size=60), st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3))
def test_never_two_leaders(steps: list[tuple[int, float, str]], skews: list[float]) -> None:
    """Whatever the candidates' clocks show, and whichever requests and answers are lost."""
    leases, clock = MemoryLeases(), Clock()
    candidates = [Election(leases, f"c{i}", lambda skew=skew: clock.now + skew) for i, skew in enumerate(skews)]  # type: ignore[misc]
    for which, pause, event in steps:
        clock.now += pause
        leases.down, leases.mute = event == "down", event == "lost"
        candidates[which].attempt()
        assert sum(candidate.leading() for candidate in candidates) <= 1


def test_between_two_leaders_there_is_a_pause_in_which_the_first_one_ends() -> None:
    leases, clock = MemoryLeases(), Clock()
    first, second = Election(leases, "first", clock), Election(leases, "second", clock)
    assert first.attempt()
    ended = taken = 0.0
    while not second.attempt():
        clock.now += 0.25
        ended = ended or (0.0 if first.leading() else clock.now)
        taken = clock.now
    assert taken - ended >= lease_rules.MARGIN_S - 0.5
    assert taken <= DURATION_S + lease_rules.RETRY_S


def test_a_renewal_without_an_answer_does_not_end_a_term() -> None:
    leases, clock = MemoryLeases(), Clock()
    election = Election(leases, "me", clock)
    assert election.attempt()
    for _ in range(10):
        leases.mute = True
        clock.now += lease_rules.RENEW_S
        assert election.attempt()
        clock.now += lease_rules.RENEW_S
        assert election.attempt()


@dataclass
class Office:
    """What a leader does, in a test: it is there from the beginning to the end of each term."""

    terms: int = 0
    busy: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_end.set()

    def __call__(self, term: threading.Event) -> None:
        self.terms += 1
        self.busy.set()
        term.wait()
        self.may_end.wait()
        self.busy.clear()


def test_a_graceful_end_gives_the_lease_back_after_the_work_has_ended() -> None:
    leases, office, stop = MemoryLeases(), Office(), threading.Event()
    election = Election(leases, "me")
    thread = threading.Thread(target=election.run, args=(stop, office), daemon=True)
    thread.start()
    assert office.busy.wait(DEADLINE_S)
    office.may_end.clear()
    stop.set()
    assert leases.lease is not None and leases.lease.holder == "me"
    office.may_end.set()
    thread.join(DEADLINE_S)
    assert (office.busy.is_set(), leases.lease.holder, election.leading()) == (False, "", False)
    assert Election(leases, "other").attempt()


@pytest.mark.slow
def test_a_leader_whose_lease_was_taken_ends_its_work_and_campaigns_again() -> None:
    leases, office, stop = MemoryLeases(), Office(), threading.Event()
    election = Election(leases, "me")
    thread = threading.Thread(target=election.run, args=(stop, office), daemon=True)
    thread.start()
    assert office.busy.wait(DEADLINE_S)
    leases.lease = Lease("thief", 0.5, "stolen", revision="x")
    wait_until(lambda: office.terms == 2, "a second term", DEADLINE_S)
    stop.set()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


def test_alone_one_leads_from_the_beginning_to_the_end() -> None:
    office, stop, leader = Office(), threading.Event(), AlwaysLeader()
    thread = threading.Thread(target=leader.run, args=(stop, office), daemon=True)
    thread.start()
    assert office.busy.wait(DEADLINE_S) and leader.leading()
    stop.set()
    thread.join(DEADLINE_S)
    assert not leader.leading()

"""The queue as a value: whatever happens in whatever order, its promises hold."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from amphitrite.dataplane.envoy.callouts.request_queue import Decision, Outcome, RequestQueue

WAITING_MAX = 4


class Queue(RuleBasedStateMachine):
    """Requests arrive, end, give up and run out of time; the number of places changes."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = RequestQueue(2, WAITING_MAX)
        self.now, self.places = 0.0, 2
        self.next = 0
        self.in_flight: set[int] = set()
        self.line: list[int] = []  #: who waits, in the order of arrival
        self.deadlines: dict[int, float] = {}
        self.most = 2  #: the most that may be in flight: those that had a place keep it

    def heard(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if decision.outcome is Outcome.LATE:
                assert self.deadlines[decision.ticket] <= self.now
            else:
                assert decision.outcome is Outcome.ADMITTED
                assert self.deadlines[decision.ticket] > self.now
                earlier = self.line[: self.line.index(decision.ticket)]
                assert not earlier, f"{decision.ticket} has overtaken {earlier}"
                self.in_flight.add(decision.ticket)
            self.line.remove(decision.ticket)

    @rule(wait_s=st.sampled_from([0.0, 0.5, 1.0, 5.0]))
    def arrive(self, wait_s: float) -> None:
        ticket, self.next = self.next, self.next + 1
        free = len(self.in_flight) < self.places and not self.line
        outcome = self.queue.arrive(ticket, self.now + wait_s, self.now)
        if outcome is Outcome.ADMITTED:
            assert free
            self.in_flight.add(ticket)
        elif outcome is Outcome.WAITS:
            self.line.append(ticket)
            self.deadlines[ticket] = self.now + wait_s
        elif outcome is Outcome.FULL:
            assert len(self.line) == WAITING_MAX
        else:
            assert wait_s == 0.0
        assert free == (outcome is Outcome.ADMITTED)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.in_flight)))
        self.in_flight.remove(ticket)
        self.most = max(self.places, len(self.in_flight))
        self.heard(list(self.queue.leave(ticket, self.now)))

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(self.line))
        self.line.remove(ticket)
        self.heard(list(self.queue.leave(ticket, self.now)))

    @rule(places=st.integers(0, 4))
    def resize(self, places: int) -> None:
        self.places, self.most = places, max(places, len(self.in_flight))
        self.heard(list(self.queue.resize(places, self.now)))

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.heard(list(self.queue.advance(self.now)))
        assert all(self.deadlines[ticket] > self.now for ticket in self.line)

    @rule()
    def one_that_is_not_known_leaves(self) -> None:
        assert self.queue.leave(-1, self.now) == []

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.queue.in_flight == len(self.in_flight) <= self.most
        assert self.queue.waiting == len(self.line) <= WAITING_MAX
        # A place is never free while somebody waits for it.
        assert not self.line or len(self.in_flight) >= self.places


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

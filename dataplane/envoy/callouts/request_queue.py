"""The places of one deployment, and who waits for one.

Decides who gets a place, who waits and who is refused: first come, first served, never more in
flight than there are places, nobody waits longer than until its deadline. Pure: it is told what
happens and when. Must not know gRPC, Envoy or clocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

#: The most requests that wait for a place at one proxy. What they have sent already is in memory.
WAITING_MAX = 1000


class Outcome(Enum):
    """ADMITTED: has a place. WAITS for one. FULL: too many wait already. LATE: has waited until its
    deadline."""

    ADMITTED = "admitted"
    WAITS = "waits"
    FULL = "full"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Decision:
    """``ticket``: of the request that has waited, and that ``outcome`` is the end of its wait."""

    ticket: int
    outcome: Outcome


class RequestQueue:
    """Requests are known by their tickets, each of which arrives once. Not thread-safe.

    Each change returns the decisions that follow for requests that have waited. Times are of one
    monotonic clock, in seconds.
    """

    def __init__(self, places: int, waiting_max: int = WAITING_MAX) -> None:
        self._places, self._waiting_max = places, waiting_max
        self._admitted: set[int] = set()
        self._waiting: OrderedDict[int, float] = OrderedDict()

    @property
    def places(self) -> int:
        return self._places

    @property
    def in_flight(self) -> int:
        return len(self._admitted)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def arrive(self, ticket: int, deadline: float, now: float) -> Outcome:
        """A request asks for a place, and can wait until ``deadline``."""
        if not self._waiting and len(self._admitted) < self._places:
            self._admitted.add(ticket)
            return Outcome.ADMITTED
        if deadline <= now:
            return Outcome.LATE
        if len(self._waiting) >= self._waiting_max:
            return Outcome.FULL
        self._waiting[ticket] = deadline
        return Outcome.WAITS

    def leave(self, ticket: int, now: float) -> Sequence[Decision]:
        """A request has ended, or waits no longer. One that is not known changes nothing."""
        self._admitted.discard(ticket)
        self._waiting.pop(ticket, None)
        return self._admit(now)

    def resize(self, places: int, now: float) -> Sequence[Decision]:
        """There are more places or fewer. Requests in flight keep theirs."""
        self._places = places
        return self._admit(now)

    def advance(self, now: float) -> Sequence[Decision]:
        """Some request's deadline may have passed."""
        late = [ticket for ticket, deadline in self._waiting.items() if deadline <= now]
        for ticket in late:
            del self._waiting[ticket]
        return [Decision(ticket, Outcome.LATE) for ticket in late]

    def _admit(self, now: float) -> Sequence[Decision]:
        decisions = []
        while self._waiting and len(self._admitted) < self._places:
            ticket, deadline = self._waiting.popitem(last=False)
            if deadline <= now:
                decisions.append(Decision(ticket, Outcome.LATE))
                continue
            self._admitted.add(ticket)
            decisions.append(Decision(ticket, Outcome.ADMITTED))
        return decisions

"""Leading by election, and leading because there is nobody else.

Decides when a term begins and ends: the work of one has ended before this process campaigns again or gives its Lease
back. Must not know what a leader does, nor where the Lease lies.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from amphitrite.controlplane.leadership import lease_rules
from amphitrite.controlplane.leadership.lease_rules import Lease, Sight
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: What a leader does until the event is set; returns once all of it has ended.
Duties = Callable[[threading.Event], None]


class Leadership(Protocol):
    """``run`` in a thread of its own; ``leading`` from any."""

    def leading(self) -> bool:
        """Whether this process may change things now."""
        ...

    def run(self, stop: threading.Event, duties: Duties) -> None:
        """Do the duties of a leader whenever this process is one, until ``stop``; then let others lead."""
        ...


class Leases(Protocol):
    """Where the Lease lies (``leadership_lease.LeaseStore``). Both raise Error("RuntimeUnavailable")."""

    def read(self) -> Lease | None: ...
    def write(self, before: Lease | None, holder: str) -> Lease | None: ...


class AlwaysLeader:
    """The one control plane of a home."""

    def __init__(self) -> None:
        self._leads = False

    def leading(self) -> bool:
        return self._leads

    def run(self, stop: threading.Event, duties: Duties) -> None:
        self._leads = True
        try:
            duties(stop)
        finally:
            self._leads = False


class Election:
    """A candidate. ``me`` is unique among the replicas; ``clock`` is monotonic."""

    def __init__(self, leases: Leases, me: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases, self._me, self._clock = leases, me, clock
        self._sight: Sight | None = None
        self._until = float("-inf")

    def leading(self) -> bool:
        return self._clock() < self._until

    def run(self, stop: threading.Event, duties: Duties) -> None:
        while not stop.is_set():
            if self.attempt():
                log.info("leading as %s", self._me)
                self._lead(stop, duties)
            else:
                stop.wait(lease_rules.LOOK_S)

    def attempt(self) -> bool:
        """Renew the Lease, or look at it and take it if it is to be had; whether this process leads now."""
        asked_at = self._clock()
        try:
            if not self.leading():  # A leader knows what it wrote last; if that is news to the server, it is refused.
                self._sight = lease_rules.seen(self._sight, self._leases.read(), self._clock())
            self._claim(asked_at)
        except Error as error:
            log.warning("%s", error.message)
        return self.leading()

    def _claim(self, asked_at: float) -> None:
        """Write the Lease as ours if it is to be had; after a lost race look once more."""
        for _ in range(2):
            sight = self._sight
            if sight is None or lease_rules.decide(sight, self._me, self._clock()) == "wait":
                self._until = float("-inf")
                return
            written = self._leases.write(sight.lease, self._me)
            if written is not None:
                self._sight = lease_rules.seen(sight, written, self._clock())
                self._until = lease_rules.leads_until(asked_at)
                return
            # Somebody was faster, or an earlier write of ours was carried out and its answer lost.
            self._sight = lease_rules.seen(sight, self._leases.read(), self._clock())

    def _lead(self, stop: threading.Event, duties: Duties) -> None:
        """One term: renew while the duties are done; it ends when it cannot be renewed in time, or at ``stop``."""
        term = threading.Event()
        worker = self._begin("leader", lambda: duties(term))
        guard = self._begin("term", lambda: self._guard(term))
        while not stop.wait(lease_rules.RENEW_S) and worker.is_alive() and not term.is_set():
            if not self.attempt():
                break
        term.set()
        guard.join()
        # The Lease is kept while the duties come to their end: nobody else is to begin before.
        while worker.is_alive():
            worker.join(lease_rules.LOOK_S)
            if self.leading():
                self.attempt()
        if stop.is_set():
            self._give_back()

    def _guard(self, term: threading.Event) -> None:
        """End the term in time, however long a renewal that is under way takes."""
        while not term.wait(max(self._until - self._clock(), 0.0)):
            if not self.leading():
                log.warning("the Lease could not be renewed in time; ending what a leader does")
                term.set()

    def _begin(self, name: str, target: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                target()
            except Exception:
                log.exception("what a leader does failed; campaigning again")

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def _give_back(self) -> None:
        """So that another one begins at once instead of waiting for the end of the Lease."""
        lease, self._until = (self._sight.lease if self._sight else None), float("-inf")
        if lease is None or lease.holder != self._me:
            return
        try:
            if self._leases.write(lease, "") is not None:
                log.info("gave the Lease back")
        except Error as error:
            log.warning("%s", error.message)

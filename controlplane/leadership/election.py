"""Leader election, and leadership without rivals.

Decides when a term begins and ends: its tasks have ended before this process campaigns again or
releases its Lease. Must not know what a leader does, nor where the Lease is stored.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from amphitrite.controlplane.leadership import lease_rules
from amphitrite.controlplane.leadership.lease_rules import Lease, Observation
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: Runs a leader's tasks until the event is set, and returns once all of them have ended.
Tasks = Callable[[threading.Event], None]


class Leadership(Protocol):
    """Call ``run`` in a thread of its own, and ``leading`` from any."""

    def leading(self) -> bool:
        """Whether this process may change things now."""
        ...

    def run(self, stop: threading.Event, tasks: Tasks) -> None:
        """Runs ``tasks`` whenever this process leads, until ``stop``; then lets others lead."""
        ...


class Leases(Protocol):
    """Where the Lease is stored (``lease_store.LeaseStore``). Both methods raise
    Error("RuntimeUnavailable")."""

    def read(self) -> Lease | None: ...
    def write(self, before: Lease | None, holder: str) -> Lease | None: ...


class AlwaysLeader:
    """The only control plane of a home."""

    def __init__(self) -> None:
        self._leading = False

    def leading(self) -> bool:
        return self._leading

    def run(self, stop: threading.Event, tasks: Tasks) -> None:
        self._leading = True
        try:
            tasks(stop)
        finally:
            self._leading = False


class Election:
    """A candidate. ``me``: unique among the replicas. ``clock``: monotonic, in seconds."""

    def __init__(self, leases: Leases, me: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases, self._me, self._clock = leases, me, clock
        self._observation: Observation | None = None
        self._leader_until = float("-inf")

    def leading(self) -> bool:
        return self._clock() < self._leader_until

    def run(self, stop: threading.Event, tasks: Tasks) -> None:
        while not stop.is_set():
            if self.attempt():
                log.info("leading as %s", self._me)
                self._run_term(stop, tasks)
            else:
                stop.wait(lease_rules.RETRY_S)

    def attempt(self) -> bool:
        """Renews the Lease, or reads it and takes it if possible. Returns whether this process
        leads now."""
        requested_at = self._clock()
        try:
            # A leader replaces its last write; if that is out of date, the server refuses it.
            if not self.leading():
                self._observation = lease_rules.observe(self._observation, self._leases.read(), self._clock())
            self._claim(requested_at)
        except Error as error:
            log.warning("%s", error.message)
        except Exception:
            # As a renewal that has failed: the term must end in time, and not by this thread's end.
            log.exception("the Lease could not be renewed")
        return self.leading()

    def _claim(self, requested_at: float) -> None:
        """Takes the Lease if the rules allow it. After a lost race it tries once more."""
        for _ in range(2):
            observation = self._observation
            if observation is None or lease_rules.decide(observation, self._me, self._clock()) == "wait":
                self._leader_until = float("-inf")
                return
            lease = self._leases.write(observation.lease, self._me)
            if lease is not None:
                self._observation = lease_rules.observe(observation, lease, self._clock())
                self._leader_until = lease_rules.leader_until(requested_at)
                return
            # Another replica was faster, or an earlier write of ours succeeded and its answer was
            # lost.
            self._observation = lease_rules.observe(observation, self._leases.read(), self._clock())

    def _run_term(self, stop: threading.Event, tasks: Tasks) -> None:
        """One term: renews while the tasks run. It ends if a renewal fails in time, or at
        ``stop``."""
        term = threading.Event()
        worker = self._start_thread("leader", lambda: tasks(term))
        guard = self._start_thread("term", lambda: self._end_term_in_time(term))
        while not stop.wait(lease_rules.RENEW_S) and worker.is_alive() and not term.is_set():
            if not self.attempt():
                break
        term.set()
        guard.join()
        # The Lease is kept until the tasks have ended, because nobody else may begin before.
        while worker.is_alive():
            worker.join(lease_rules.RETRY_S)
            if self.leading():
                self.attempt()
        if stop.is_set():
            self._give_back()

    def _end_term_in_time(self, term: threading.Event) -> None:
        """Ends the term in time, even while a renewal hangs."""
        while not term.wait(max(self._leader_until - self._clock(), 0.0)):
            if not self.leading():
                log.warning("the Lease was not renewed in time; stopping the leader tasks")
                term.set()

    def _start_thread(self, name: str, target: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                target()
            except Exception:
                log.exception("a leader task failed; campaigning again")

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def _give_back(self) -> None:
        """Releases the Lease, so that another replica can lead at once."""
        lease, self._leader_until = (self._observation.lease if self._observation else None), float("-inf")
        if lease is None or lease.holder != self._me:
            return
        try:
            if self._leases.write(lease, "") is not None:
                log.info("released the Lease")
        except Error as error:
            log.warning("%s", error.message)

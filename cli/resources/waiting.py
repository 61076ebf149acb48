"""Waits for a state of a resource: ``ml online-endpoint wait`` and ``ml online-deployment wait``.

Decides when a condition holds, as ``az ... wait`` does, and that a failed resource ends the wait
with its own error. Must not know which resource it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amphitrite.cli.session.operation_polling import UNREACHABLE_TIMEOUT_S
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.session.session import Session


@dataclass(frozen=True, slots=True)
class Condition:
    """What to wait for: any of what is set; without anything, the end of the last change.

    ``custom``: whether what ``show`` prints is what the user waits for.
    """

    created: bool = False
    updated: bool = False
    deleted: bool = False
    exists: bool = False
    custom: Callable[[Mapping[str, Any]], bool] | None = None

    def holds(self, shown: Mapping[str, Any]) -> bool:
        """Whether a resource fulfils it. ``shown``: the output of ``show``.

        Raises the Error of a resource that has failed, and what ``custom`` raises.
        """
        if self.exists:
            return True
        state = shown.get("provisioning_state")
        if state in ("Failed", "Canceled"):
            raise _failure(shown)
        if self.custom is not None and self.custom(shown):
            return True
        return state == "Succeeded" and (self.created or self.updated or not (self.deleted or self.custom))

    @property
    def may_come(self) -> bool:
        """Whether the wait goes on although the resource does not exist."""
        return self.created or self.exists or self.custom is not None


def until(
    session: Session,
    subject: str,
    read: Callable[[], Mapping[str, Any]],
    condition: Condition,
    *,
    interval_s: float,
    timeout_s: float,
) -> None:
    """Returns when ``condition`` holds. ``read``: the resource as ``show`` prints it.

    Raises Error: ResourceNotFound, ResourceNotReady (the time is over), ServerUnreachable, or what
    the resource failed with.
    """
    end = time.monotonic() + timeout_s
    lost_at: float | None = None
    state = "not there"
    with session.progress(subject) as progress:
        while True:
            try:
                shown = read()
                lost_at, state = None, str(shown.get("provisioning_state"))
                if condition.holds(shown):
                    break
                status = shown.get("status") or {}
                cause, _, message = str(status.get("message") or "").rpartition("\n")
                if cause:
                    progress.tell(cause)
                progress.phase(": ".join(part for part in (status.get("phase"), message) if part) or state)
            except Error as error:
                if error.code == "ResourceNotFound" and condition.deleted:
                    state = "gone"
                    break
                if error.code == "ServerUnreachable":
                    lost_at = lost_at or time.monotonic()
                    if time.monotonic() - lost_at > UNREACHABLE_TIMEOUT_S:
                        raise
                    progress.phase("waiting for the control plane")
                elif error.code != "ResourceNotFound" or not condition.may_come:
                    raise
            left = end - time.monotonic()
            if left <= 0:
                message = f"{subject} is {state}; after {timeout_s:g} s the condition does not hold"
                raise Error("ResourceNotReady", message, target=subject, hint="wait longer with --timeout SECONDS")
            time.sleep(min(interval_s, left))
        progress.done(state.lower())


def _failure(shown: Mapping[str, Any]) -> Error:
    status = shown.get("status") or {}
    if status.get("error"):
        return Error.from_body(status["error"])
    return Error("ResourceNotReady", status.get("message") or "the last change failed", target=shown.get("name"))

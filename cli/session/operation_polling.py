"""Long-running operations: from the answer to a PUT, POST or DELETE to the outcome.

Decides how often is asked, and that a control plane which is away for a moment is waited for. Must not know what the
operation does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    import httpx

    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.session.session import Session
    from amphitrite.cli.terminal.progress import Progress

#: Azure's clients ask every second; ours is close to its server, and most changes have ended within a tenth of one.
_PAUSES_S = (0.05, 0.05, 0.1, 0.1)
POLL_S = 0.2
#: A control plane that is restarted goes on with its operations.
PATIENCE_S = 20.0


def carry_out(session: Session, what: str, send: Callable[[], httpx.Response], *, no_wait: bool = False) -> bool:
    """Send a change and wait for its outcome; whether it is known now (``no_wait``: it is not). Raises Error."""
    with session.progress(what) as progress:
        answer = send()
        if not no_wait:
            wait(session.client, answer, progress)
            progress.done("Succeeded")
    if no_wait:
        session.note(f"{what}: accepted and under way")
    return not no_wait


def wait(client: Client, answer: httpx.Response, progress: Progress) -> None:
    """Return when the operation that ``answer`` announced has succeeded; at once when it announced none.

    Raises the Error with which the operation failed, OperationCanceled, or ServerUnreachable.
    """
    from amphitrite.cli.session.rest_client import relative

    address = answer.headers.get("Azure-AsyncOperation")
    if address is None:
        return
    lost_at: float | None = None
    pauses = chain(_PAUSES_S, repeat(POLL_S))
    while True:
        try:
            status = client.send("GET", relative(address)).json()
            lost_at = None
        except Error as error:
            lost_at = lost_at or time.monotonic()
            if error.code != "ServerUnreachable" or time.monotonic() - lost_at > PATIENCE_S:
                raise
            progress.phase("waiting for the control plane")
        else:
            if _is_over(status):
                return
            progress.phase(phase(status))
        time.sleep(next(pauses))


def _is_over(status: Mapping[str, Any]) -> bool:
    """Whether the operation has succeeded. Raises Error when it has ended otherwise."""
    state = status["status"]
    if state in ("Failed", "Canceled"):
        if status.get("error"):
            raise Error.from_body(status["error"])
        raise Error("OperationCanceled", "the operation was canceled: a later change or a deletion took its place")
    return bool(state == "Succeeded")


def phase(status: Mapping[str, Any]) -> str:
    """The current phase in words: the newest of ``properties.phases``, with its message when it has one."""
    phases = (status.get("properties") or {}).get("phases") or []
    if not phases:
        return ""
    newest = phases[-1]
    return ": ".join(part for part in (newest.get("name"), newest.get("message")) if part)

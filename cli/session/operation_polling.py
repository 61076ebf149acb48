"""Long-running operations: from the response to a PUT, POST or DELETE to the outcome.

Decides how often to poll, and how long to wait for a control plane that does not answer. Must not
know what the operation does. Outside contract: Azure Resource Manager's asynchronous operations
(header ``Azure-AsyncOperation``).
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

#: Azure's clients poll once a second. This client is close to its server, and most changes end
#: within 0.1 s.
_FIRST_PAUSES_S = (0.05, 0.05, 0.1, 0.1)
POLL_S = 0.2
#: Seconds to wait for a control plane that does not answer: after a restart it continues its
#: operations.
UNREACHABLE_TIMEOUT_S = 20.0


def run_operation(
    session: Session, subject: str, send: Callable[[], httpx.Response], *, outcome: str | None, no_wait: bool = False
) -> bool:
    """Send a change and wait for its outcome.

    ``subject``: such as ``endpoint/pictures``. ``outcome``: kubectl's word for a success, such as
    ``created``; None if the caller tells it.

    Returns whether the outcome is known: not with ``no_wait``.

    Raises the Error with which the request or the operation failed.
    """
    with session.progress(subject) as progress:
        answer = send()
        if not no_wait:
            wait(session.client, answer, progress)
            if outcome is not None:
                progress.done(outcome)
    if no_wait:
        session.note(f"{subject}: accepted, in progress")
    return not no_wait


def wait(client: Client, answer: httpx.Response, progress: Progress) -> None:
    """Return when the operation of ``answer`` has succeeded; at once if it names none.

    Raises the Error with which the operation failed, OperationCanceled, or ServerUnreachable.
    """
    from amphitrite.cli.session.rest_client import path_and_query

    address = answer.headers.get("Azure-AsyncOperation")
    if address is None:
        return
    lost_at: float | None = None
    pauses = chain(_FIRST_PAUSES_S, repeat(POLL_S))
    while True:
        try:
            status = client.send("GET", path_and_query(address)).json()
            lost_at = None
        except Error as error:
            lost_at = lost_at or time.monotonic()
            if error.code != "ServerUnreachable" or time.monotonic() - lost_at > UNREACHABLE_TIMEOUT_S:
                raise
            progress.phase("waiting for the control plane")
        else:
            if _has_succeeded(status):
                return
            for cause in causes(status):
                progress.tell(cause)
            progress.phase(phase(status))
        time.sleep(next(pauses))


def _has_succeeded(status: Mapping[str, Any]) -> bool:
    """Whether the operation has succeeded. Raises Error if it failed or was canceled."""
    state = status["status"]
    if state in ("Failed", "Canceled"):
        if status.get("error"):
            raise Error.from_body(status["error"])
        raise Error("OperationCanceled", "the operation was canceled by a later change or a deletion")
    return bool(state == "Succeeded")


def phase(status: Mapping[str, Any]) -> str:
    """The newest of ``properties.phases`` as text, with the last line of its message."""
    phases = _phases(status)
    if not phases:
        return ""
    newest = phases[-1]
    _, _, state = str(newest.get("message") or "").rpartition("\n")
    return ": ".join(part for part in (newest.get("name"), state) if part)


def causes(status: Mapping[str, Any]) -> list[str]:
    """What has gone wrong so far, oldest first: the first lines of messages of several lines."""
    messages = [str(one.get("message") or "") for one in _phases(status)]
    return list(dict.fromkeys(message.rpartition("\n")[0] for message in messages if "\n" in message))


def _phases(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return (status.get("properties") or {}).get("phases") or []

"""``ml online-deployment pause`` and ``resume``.

Decides the options and the output. Must not know how a deployment is paused.
"""

from __future__ import annotations

from typing import Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import verb
from amphitrite.cli.terminal import options
from amphitrite.cli.verbs.delivery.deployment_history import Endpoint, Name


def register(app: typer.Typer) -> None:
    """Add the verbs to the group of deployments."""
    verb(app, "pause")(pause)
    verb(app, "resume")(resume)


def pause(
    session: Session,
    name: Name,
    endpoint_name: Endpoint,
    reason: options.Reason = None,
    no_wait: options.NoWait = False,
) -> dict[str, Any] | None:
    """End all instances of a deployment. Requests get 503 until it is resumed."""
    return _change(session, endpoint_name, name, "pause", reason, no_wait)


def resume(
    session: Session,
    name: Name,
    endpoint_name: Endpoint,
    reason: options.Reason = None,
    no_wait: options.NoWait = False,
) -> dict[str, Any] | None:
    """Start the instances of a paused deployment. Requests wait until one is ready."""
    return _change(session, endpoint_name, name, "resume", reason, no_wait)


def _change(
    session: Session, endpoint: str, name: str, change: str, reason: str | None, no_wait: bool
) -> dict[str, Any] | None:
    from amphitrite.cli.resources import histories, lookups

    session.reason = reason or ""
    is_complete = histories.set_pause(session, endpoint, name, change, no_wait=no_wait)
    return lookups.deployment(session.client, endpoint, name) if is_complete else None

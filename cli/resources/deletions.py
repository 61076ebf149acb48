"""Deletes endpoints and deployments that exist.

Decides that deleting what does not exist is an error with the nearest name, and what is said after
Ctrl-C. Must not know options or confirmations. The REST API answers 204 for what is not there, as
Azure's does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amphitrite.cli.resources import lookups, subjects
from amphitrite.cli.session import interruption, operation_polling
from amphitrite.cli.session.interruption import Change
from amphitrite.cli.session.near_names import exists

if TYPE_CHECKING:
    from amphitrite.cli.session.session import Session


def has_endpoint(session: Session, name: str, *, ignore_not_found: bool) -> bool:
    """Whether there is such an endpoint. Raises Error ResourceNotFound unless that is ignored."""
    client = session.client
    path = lookups.endpoint_path(client, name)
    return exists(session, path, *lookups.endpoint_places(client, name), ignore_not_found=ignore_not_found)


def has_deployment(session: Session, endpoint: str, name: str, *, ignore_not_found: bool) -> bool:
    """As ``has_endpoint``, for a deployment. Without the endpoint there is none."""
    client = session.client
    path = lookups.deployment_path(client, endpoint, name)
    places = lookups.deployment_places(client, endpoint, name)
    return exists(session, path, *places, ignore_not_found=ignore_not_found)


def delete_endpoint(session: Session, name: str, *, no_wait: bool) -> None:
    """Delete an endpoint with its deployments. Raises the Error of the request or the operation."""
    path = lookups.endpoint_path(session.client, name)
    change = _change("ml online-endpoint", f"endpoint {name}", f"-n {name}")
    _delete(session, subjects.endpoint(name), path, {}, change, no_wait)


def delete_deployment(session: Session, endpoint: str, name: str, *, force: bool, no_wait: bool) -> None:
    """Delete a deployment. ``force``: also one with traffic. Raises as ``delete_endpoint``."""
    path = lookups.deployment_path(session.client, endpoint, name)
    change = _change("ml online-deployment", f"deployment {name}", f"-n {name} -e {endpoint}")
    subject = subjects.deployment(endpoint, name)
    _delete(session, subject, path, {"force": "true"} if force else {}, change, no_wait)


def _delete(session: Session, subject: str, path: str, params: dict[str, str], change: Change, no_wait: bool) -> None:
    with interruption.explained(change):
        send = change.sending(lambda: session.client.send("DELETE", path, params=params))
        operation_polling.run_operation(session, subject, send, outcome="deleted", no_wait=no_wait)


def _change(group: str, subject: str, names: str) -> Change:
    follow = f"{group} wait {names} --deleted"
    return Change(f"deleting {subject}", show=f"{group} show {names}", follow=follow, undo="")

"""Deletion of versions of models and environments.

Decides that nothing in use is deleted, and who is named as its user: deployments, and instances
that still run what their deployment had before. Must not know HTTP or files.
"""

from __future__ import annotations

from typing import Literal

from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key, parse_asset

Kind = Literal["model", "environment"]


def delete(services: Services, kind: Kind, name: str, version: str | None) -> bool:
    """Deletes a version, or all of ``name`` for None. Returns whether there was one.

    Raises Error("Conflict") for a version that is in use; then nothing is deleted.
    """
    # No deployment can begin to use the version between the check and the deletion.
    with services.store.exclusive():
        _refuse_used(services, kind, name, version)
        assets = services.models if kind == "model" else services.environments
        return assets.delete_versions(name, version) > 0


def _refuse_used(services: Services, kind: Kind, name: str, version: str | None) -> None:
    used = [
        (found[1], deployment)
        for deployment, reference in services.store.list_references(kind)
        if (found := parse_asset(reference)) and key(found[0]) == key(name) and version in (None, found[1])
    ]
    if used:
        number, users = used[0][0], ", ".join(dict.fromkeys(deployment for _, deployment in used))
        hint = "delete these deployments, or update them to another version"
        raise Error("Conflict", f"{kind} {name}:{number} is used by {users}", target=f"{name}:{number}", hint=hint)
    if kind == "model":
        _refuse_running(services, name, version)


def _refuse_running(services: Services, name: str, version: str | None) -> None:
    for instance in services.runtime.observe():
        model = instance.workload.model
        if key(model.name) == key(name) and version in (None, model.version) and instance.phase != "exited":
            message = f"model {name}:{model.version} is used by the instance {instance.id}, which has not ended"
            raise Error("Conflict", message, target=f"{name}:{model.version}", hint="try again when it has ended")

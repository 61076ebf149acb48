"""Deletes versions of models and environments.

Decides what must be said explicitly, what is asked, and that deleting what does not exist is an
error. The server refuses what is in use. Must not know options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from amphitrite.cli.session.near_names import exists, version_places
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import environment_id, model_id

if TYPE_CHECKING:
    from amphitrite.cli.session.session import Session

_IDS = {"models": model_id, "environments": environment_id}


def delete(
    session: Session,
    kind: Literal["models", "environments"],
    name: str,
    version: str | None,
    *,
    all_versions: bool,
    yes: bool,
    ignore_not_found: bool,
) -> None:
    """Delete a version, or with ``all_versions`` all of them.

    Raises Error UsageError (not exactly one of the two), ResourceNotFound, and Conflict for a
    version in use.
    """
    if (version is None) != all_versions:
        raise Error("UsageError", "choose what to delete", hint="add either --version or --all-versions")
    client, one = session.client, kind.removesuffix("s")
    path = _IDS[kind](client.workspace, name, version)
    places = version_places(kind, client.workspace, name, version)
    if not exists(session, path, *places, ignore_not_found=ignore_not_found):
        return
    what = f"all versions of {one} {name}" if version is None else f"version {version} of {one} {name}"
    session.confirm(f"Delete {what}?", yes)
    client.send("DELETE", path)
    session.note(f"{one}/{name}{'' if version is None else f':{version}'} deleted")
    if kind == "models":
        kept = "files younger than 24 h are kept (--older-than HOURS), since an upload may still need them"
        session.note(f"note: `ml server prune` frees its files; {kept}")

"""What is not there: the error about it, with the name that was probably meant.

Decides that the hint of a ResourceNotFound names the nearest existing resource, and that a deletion
refuses what does not exist. Must not know verbs or kinds of resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key, nearest

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.session.session import Session

#: A name that the user wrote, and the path of the list that it should be in.
Place = tuple[str, str]


@contextmanager
def suggested(client: Client, *places: Place) -> Iterator[None]:
    """Names the nearest existing resource in the hint of a ResourceNotFound that is raised inside.

    ``places``: from the outermost resource to the innermost, such as an endpoint and a deployment.
    """
    try:
        yield
    except Error as error:
        near = _near(client, places) if error.code == "ResourceNotFound" else None
        if near is None:
            raise
        raise Error(error.code, error.message, target=error.target, hint=f"did you mean {near}?") from error


def version_places(kind: str, path: str, name: str, version: str | None) -> list[Place]:
    """The places of a version of an asset. ``kind``: ``models`` or ``environments``, below the
    workspace's ``path``."""
    places = [(name, f"{path}/{kind}?listViewType=All")]
    if version is not None:
        places.append((version, f"{path}/{kind}/{name}/versions?listViewType=All"))
    return places


def exists(session: Session, path: str, *places: Place, ignore_not_found: bool) -> bool:
    """Whether the resource at ``path`` can be deleted: always, unless ``ignore_not_found``.

    Raises Error ResourceNotFound with the nearest name.
    """
    client = session.client
    if ignore_not_found:
        if client.find(path) is not None:
            return True
        name = " of ".join(name for name, _ in reversed(places))
        session.note(f"{name} does not exist; nothing was deleted")
        return False
    with suggested(client, *places):
        client.get(path)
    return True


def _near(client: Client, places: tuple[Place, ...]) -> str | None:
    for name, path in places:
        try:
            names = [resource["name"] for resource in client.list_all(path)]
        except Error:  # What was asked for failed; this is only its hint.
            return None
        if key(name) not in map(key, names):
            return nearest(name, names)
    return None

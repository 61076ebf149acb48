"""Read, change and write back a resource, while others may change it too.

Decides how often that is tried. Must not know resources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from amphitrite.cli.session import near_names
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    import httpx

    from amphitrite.cli.session.near_names import Place
    from amphitrite.cli.session.rest_client import Client

_ATTEMPTS = 5
Written = TypeVar("Written")


def update(
    client: Client, path: str, places: list[Place], change: Callable[[httpx.Response, dict[str, str]], Written]
) -> Written:
    """What ``change`` returns, which gets the resource as it was read and the headers of the write.

    It is called again if the resource has changed meanwhile (If-Match). ``places``: where to look
    for its name if nothing is at ``path``. Raises Error.
    """
    for attempt in range(_ATTEMPTS):
        with near_names.suggested(client, *places):
            answer = client.send("GET", path)
        try:
            return change(answer, {"If-Match": answer.headers.get("ETag", "*")})
        except Error as error:
            if error.code != "PreconditionFailed" or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")

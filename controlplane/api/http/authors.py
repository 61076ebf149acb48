"""Who changes a document and why, as the request says.

Decides the headers and their bounds. Nobody checks the name: it is a note for people, not an
identity. Must not know what is changed.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends
from starlette.requests import Request

from amphitrite.controlplane.core.history.revisions import Author
from amphitrite.schemas.errors import Error
from amphitrite.schemas.printable_text import one_line

#: Percent-encoded UTF-8, because headers have no other text than ASCII.
AUTHOR, REASON = "amphitrite-author", "amphitrite-reason"
_LONGEST = {AUTHOR: 255, REASON: 1000}


def _author(request: Request) -> Author:
    return Author(_text(request, AUTHOR), _text(request, REASON))


def _text(request: Request, header: str) -> str:
    """Raises Error BadArgument if it is too long."""
    text = one_line(unquote(request.headers.get(header, ""))).strip()
    if len(text) > _LONGEST[header]:
        message = f"{header} has {len(text)} characters; at most {_LONGEST[header]} are allowed"
        raise Error("BadArgument", message, target=header)
    return text


#: The parameter type for the author of a change.
By = Annotated[Author, Depends(_author)]

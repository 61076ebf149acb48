"""The preconditions of a write: ``If-Match`` and ``If-None-Match: *`` (RFC 9110, section 13.1).

Decides whether a write may go on, from the etag of what is stored. Must not know what is written or
how requests carry the conditions.
"""

from __future__ import annotations

from amphitrite.schemas.errors import Error


def require(etag: str | None, target: str, if_match: str | None, *, if_none_match: bool = False) -> None:
    """Raises Error PreconditionFailed if a condition does not hold.

    ``etag``: of what is stored, with quotes; None if nothing is. ``if_match``: a list of quoted
    etags, or ``*``; None for no condition. ``if_none_match``: whether nothing may be stored yet.
    """
    if if_none_match and etag is not None:
        raise Error("PreconditionFailed", "it already exists", target=target, hint="update it instead of creating it")
    if if_match is None:
        return
    etags = {tag.strip() for tag in if_match.split(",")}
    if etag is None or not etags & {"*", etag}:
        current = "it does not exist" if etag is None else f"its etag is {etag}"
        raise Error(
            "PreconditionFailed",
            f"it has changed since it was read: If-Match is {if_match}, but {current}",
            target=target,
            hint="read it again and repeat the change",
        )

"""Revisions of documents: what was stored, when, by whom and why.

Decides their shape. Must not know what a document means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

#: What led to a revision. ``earlier``: the document was there before revisions were kept.
#: ``removal``: a deployment with traffic was deleted. ``rollout``: a step of one, or its end.
#: ``pause``, ``resume``: the document stayed.
Cause = Literal["create", "update", "undo", "restore", "rollback", "removal", "rollout", "earlier", "pause", "resume"]


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes a document, and why.

    ``name``: as the client says; nobody checks it. ``reason``: as the user wrote it. ``cause``:
    None for a change by document, which is a ``create`` or an ``update``.
    """

    name: str = ""
    reason: str = ""
    cause: Cause | None = None


#: A change of which nobody said who made it.
NOBODY = Author()


@dataclass(frozen=True, slots=True)
class Revision:
    """A document as it was accepted. ``number``: the generation. ``at``: seconds since the
    epoch."""

    number: int
    at: float
    author: str
    reason: str
    cause: Cause
    document: Mapping[str, Any]

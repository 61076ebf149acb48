"""Query parameters of lists of versions: filter and order.

Decides their spelling. Must not know what is listed.
"""

from __future__ import annotations

from typing import Annotated, Literal, cast

from fastapi import Query

from amphitrite.controlplane.store.assets import catalogue
from amphitrite.schemas.errors import Error

View = Annotated[Literal["ActiveOnly", "ArchivedOnly", "All"], Query(alias="listViewType")]
Order = Annotated[str, Query(alias="$orderBy")]


def read_order(text: str) -> catalogue.Order:
    """Parses ``$orderBy``, without regard to case and spaces. Raises Error("BadArgument")."""
    order = " ".join(text.lower().split())
    if order not in ("createdtime desc", "createdtime asc"):
        allowed = "createdtime desc, createdtime asc"
        raise Error("BadArgument", f"$orderBy is {text!r}; allowed: {allowed}", target="$orderBy")
    return cast(catalogue.Order, order)

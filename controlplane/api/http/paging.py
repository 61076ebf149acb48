"""Lists in pages, as in Azure Resource Manager: ``{"value": [...], "nextLink"?}``.

Decides page sizes and the link to the next page. Must not know what is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from starlette.requests import Request

PAGE = 100
PAGE_MAX = 1000
#: An upper bound for ``$skip``, which no list reaches.
SKIP_MAX = 10**9

T = TypeVar("T")


class Pager:
    """The page of one request: skips ``$skip`` items and returns at most ``$top``."""

    def __init__(
        self,
        request: Request,
        skip: Annotated[int, Query(alias="$skip", ge=0, le=SKIP_MAX)] = 0,
        top: Annotated[int, Query(alias="$top", ge=1)] = PAGE,
    ) -> None:
        self._url = request.url
        self._skip, self._top = skip, min(top, PAGE_MAX)

    def page(self, items: Sequence[T], reply: Callable[[T], Any]) -> dict[str, Any]:
        """The page, with each item converted by ``reply``. ``nextLink`` is an absolute URL."""
        return self.part(lambda skip, limit: items[skip : skip + limit], reply)

    def part(self, read: Callable[[int, int], Sequence[T]], reply: Callable[[T], Any]) -> dict[str, Any]:
        """As :meth:`page`, for a list read with ``read(skip, limit)``, so that it is never read as
        a whole."""
        rows = read(self._skip, self._top + 1)
        answer: dict[str, Any] = {"value": [reply(item) for item in rows[: self._top]]}
        if len(rows) > self._top:
            answer["nextLink"] = str(self._url.include_query_params(**{"$skip": self._skip + self._top}))
        return answer


#: The parameter type for paging.
Page = Annotated[Pager, Depends(Pager)]

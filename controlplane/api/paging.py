"""Lists in pages, as Azure Resource Manager's: ``{"value": [...], "nextLink"?}``.

Decides page sizes and the link to the next page. Must not know what is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from starlette.requests import Request

PAGE = 100
PAGE_MAX = 1000

T = TypeVar("T")


class Pager:
    """One request's page: ``$skip`` items are left out, at most ``$top`` are answered."""

    def __init__(
        self,
        request: Request,
        skip: Annotated[int, Query(alias="$skip", ge=0)] = 0,
        top: Annotated[int, Query(alias="$top", ge=1)] = PAGE,
    ) -> None:
        self._url = request.url
        self._skip, self._top = skip, min(top, PAGE_MAX)

    def page(self, items: Sequence[T], reply: Callable[[T], Any]) -> dict[str, Any]:
        """The page, each item as ``reply`` makes it; ``nextLink`` is an absolute URL."""
        end = self._skip + self._top
        answer: dict[str, Any] = {"value": [reply(item) for item in items[self._skip : end]]}
        if end < len(items):
            answer["nextLink"] = str(self._url.include_query_params(**{"$skip": end}))
        return answer


#: The parameter type by which a route asks for paging.
Page = Annotated[Pager, Depends(Pager)]

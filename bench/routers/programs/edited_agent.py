"""The product's agent, which leaves out some parts of what it gives Envoy: PART... -- AGENT'S
OPTIONS."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from amphitrite.dataplane.__main__ import main
from amphitrite.dataplane.envoy import envoy_proxy
from amphitrite.dataplane.envoy.translate.bootstrap import BootstrapSettings, bootstrap
from amphitrite.dataplane.envoy.translate.resources import Resource
from bench.routers.edits import edited


def leave_out(parts: list[str]) -> None:
    whole = Resource.of

    def of(type_url: str, make: Callable[[], Mapping[str, Any]]) -> Resource:
        return whole(type_url, lambda: edited(dict(make()), parts))

    def started_with(settings: BootstrapSettings) -> dict[str, Any]:
        return edited(bootstrap(settings), parts)

    Resource.of = of  # type: ignore[method-assign]
    envoy_proxy.bootstrap = started_with  # type: ignore[attr-defined]


if __name__ == "__main__":
    cut = sys.argv.index("--")
    leave_out(sys.argv[1:cut])
    sys.argv[1:] = sys.argv[cut + 1 :]
    sys.exit(main())

"""Pages of other origins that may score: cross-origin resource sharing (CORS), endpoint by endpoint.

Decides what a browser is told. It asks before it sends a key, so that question is answered without one, and refusals
are marked as well: else a page could not read why. Envoy's own filter for this passes by routes that answer by
themselves, so what it does is done by routes here. Must not know who may score: an origin is no credential.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from amphitrite.dataplane.envoy.filters import request_ids
from amphitrite.dataplane.envoy.filters.local_replies import header
from amphitrite.dataplane.envoy.filters.sequence_affinity import SEQUENCE

#: What a page may send beyond what any page may.
_SENT = (
    "authorization", "content-type", "azureml-model-deployment", "inference-header-content-length",
    request_ids.CLIENT_REQUEST_ID, SEQUENCE,
)  # fmt: skip
#: What a page may read beyond what any page may.
_READ = (
    "azureml-model-deployment", "inference-header-content-length", "ms-azureml-model-error-reason",
    "ms-azureml-model-error-statuscode", "retry-after", "www-authenticate", request_ids.CLIENT_REQUEST_ID,
    "x-request-id",
)  # fmt: skip
#: Seconds for which a browser need not ask again.
_MAX_AGE_S = 600


def of_host(origins: Sequence[str]) -> dict[str, Any]:
    """The part of a ``VirtualHost`` whose answers pages of these origins may read; ``*``: of any."""
    return {
        # The origin itself is added where the proxy adds request ids: see ``request_ids.ORIGIN``.
        "response_headers_to_add": [
            header("access-control-allow-origin", request_ids.ORIGIN),
            header("access-control-expose-headers", ", ".join(_READ)),
            {"header": {"key": "vary", "value": "origin"}, "append_action": "APPEND_IF_EXISTS_OR_ADD"},
        ],
        "typed_per_filter_config": request_ids.with_origin(_pattern(origins)),
    }


def preflight(origins: Sequence[str]) -> dict[str, Any]:
    """The ``Route`` that answers a browser's question before the request itself; nothing runs for it."""
    asks = [
        {"name": ":method", "string_match": {"exact": "OPTIONS"}},
        {"name": "origin", "string_match": {"safe_regex": {"regex": _pattern(origins)}}},
        {"name": "access-control-request-method", "present_match": True},
    ]
    told = {
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": ", ".join(_SENT),
        "access-control-max-age": str(_MAX_AGE_S),
    }
    return {
        "name": "//Preflight",
        "match": {"prefix": "/", "headers": asks},
        "direct_response": {"status": 204},
        "response_headers_to_add": [header(name, value) for name, value in told.items()],
    }


def _pattern(origins: Sequence[str]) -> str:
    """A regular expression of these origins and no others."""
    return ".+" if "*" in origins else "|".join(re.escape(origin) for origin in origins)

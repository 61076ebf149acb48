"""Cross-origin resource sharing (CORS): which web pages of other origins may score, by endpoint.

Decides what a browser is told. A browser asks before it sends a key, so that question is answered
without a key. Refusals carry the headers too, or a page could not read why it was refused. Envoy's
own CORS filter does not apply to routes that answer by themselves, so the routes here do its work.
Must not know who may score: an origin is no credential. Source: WHATWG Fetch, section "CORS
protocol".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from amphitrite.dataplane.envoy.filters import request_ids
from amphitrite.dataplane.envoy.filters.local_replies import header
from amphitrite.dataplane.envoy.filters.sequence_affinity import SEQUENCE

#: The request headers that a page may send, besides those that are always allowed.
_REQUEST_HEADERS = (
    "authorization", "content-type", "azureml-model-deployment", "inference-header-content-length",
    request_ids.CLIENT_REQUEST_ID, SEQUENCE,
)  # fmt: skip
#: The response headers that a page may read, besides those that are always allowed.
_RESPONSE_HEADERS = (
    "azureml-model-deployment", "inference-header-content-length", "ms-azureml-model-error-reason",
    "ms-azureml-model-error-statuscode", "retry-after", "www-authenticate", request_ids.CLIENT_REQUEST_ID,
    "x-request-id",
)  # fmt: skip
#: Seconds for which a browser may remember the answer to its question.
_MAX_AGE_S = 600


def host_settings(origins: Sequence[str]) -> dict[str, Any]:
    """The part of a ``VirtualHost`` that lets pages of these origins read its responses; ``*``: of
    any origin."""
    return {
        # ``request_ids`` notes the origin: see ``request_ids.ORIGIN``.
        "response_headers_to_add": [
            header("access-control-allow-origin", request_ids.ORIGIN),
            header("access-control-expose-headers", ", ".join(_RESPONSE_HEADERS)),
            {"header": {"key": "vary", "value": "origin"}, "append_action": "APPEND_IF_EXISTS_OR_ADD"},
        ],
        "typed_per_filter_config": request_ids.with_origin(_pattern(origins)),
    }


def preflight(origins: Sequence[str]) -> dict[str, Any]:
    """The ``Route`` that answers a browser's preflight request. No model runs for it."""
    asks = [
        {"name": ":method", "string_match": {"exact": "OPTIONS"}},
        {"name": "origin", "string_match": {"safe_regex": {"regex": _pattern(origins)}}},
        {"name": "access-control-request-method", "present_match": True},
    ]
    headers = {
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": ", ".join(_REQUEST_HEADERS),
        "access-control-max-age": str(_MAX_AGE_S),
    }
    return {
        "name": "//Preflight",
        "match": {"prefix": "/", "headers": asks},
        "direct_response": {"status": 204},
        "response_headers_to_add": [header(name, value) for name, value in headers.items()],
    }


def _pattern(origins: Sequence[str]) -> str:
    """A regular expression for these origins and no others."""
    return ".+" if "*" in origins else "|".join(re.escape(origin) for origin in origins)

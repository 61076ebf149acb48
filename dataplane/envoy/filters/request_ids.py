"""The client's own request id, made safe to log and to return.

Decides what of ``x-ms-client-request-id`` is kept, by Azure's rule: the first forty of its letters,
digits, ``-`` and ``_``. Nothing else of it reaches a model, a log or a response. The origin of a
page, which ``cors`` needs, is noted here too. ``x-request-id`` is the proxy's alone: the connection
manager replaces what a client sends. Must not know routes. Source: Envoy's page
"Header-To-Metadata".
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.filters.conditional_filters import Rule, request_has

CLIENT_REQUEST_ID = "x-ms-client-request-id"
MAX_LENGTH = 40

_NAMESPACE = "amphitrite.request"
_KEY = "client_id"
_HTTP = "type.googleapis.com/envoy.extensions.filters.http"
_HEADER_TO_METADATA = "envoy.filters.http.header_to_metadata"
#: The command operator for the origin of a page that may read the response. It is empty for any
#: other origin, and where no virtual host asks for it (see ``with_origin``).
ORIGIN = f"%DYNAMIC_METADATA({_NAMESPACE}:origin)%"


def http_filter() -> dict[str, Any]:
    """The filter for the connection manager, before all that may answer. It notes origins where a
    virtual host asks for it."""
    return {"name": _HEADER_TO_METADATA, "disabled": True, "typed_config": _header_to_metadata()}


def rule() -> Rule:
    """For requests with the id: the header is removed, what may be kept is noted, the header is set
    to that and added to the response."""
    set_header = {
        "header": {"key": CLIENT_REQUEST_ID, "value": f"%DYNAMIC_METADATA({_NAMESPACE}:{_KEY}):{MAX_LENGTH}%"},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
    set_response_header = {**set_header, "header": {"key": CLIENT_REQUEST_ID, "value": f"%REQ({CLIENT_REQUEST_ID})%"}}
    client_id = {
        "header": CLIENT_REQUEST_ID,
        "on_header_present": _rewrite(_KEY, "[^A-Za-z0-9_-]+", ""),
        "remove": True,
    }
    put_back = {
        "name": "envoy.filters.http.header_mutation",
        "typed_config": {
            "@type": f"{_HTTP}.header_mutation.v3.HeaderMutation",
            "mutations": {
                "request_mutations": [{"append": set_header}],
                "response_mutations": [{"append": set_response_header}],
            },
        },
    }
    noted = {"name": _HEADER_TO_METADATA, "typed_config": _header_to_metadata(client_id)}
    return Rule(request_has(CLIENT_REQUEST_ID), (noted, put_back))


def with_origin(pattern: str) -> dict[str, Any]:
    """Per-filter configuration of a ``VirtualHost``: the origin is noted if ``pattern`` matches all
    of it."""
    value = _rewrite("origin", f"^(?:({pattern})|.*)$", r"\1")
    origin_filter = _header_to_metadata({"header": "origin", "on_header_present": value})
    return {
        _HEADER_TO_METADATA: {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": origin_filter,
        }
    }


def _header_to_metadata(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"@type": f"{_HTTP}.header_to_metadata.v3.Config", "request_rules": list(rules)}


def _rewrite(key: str, pattern: str, substitution: str) -> dict[str, Any]:
    return {
        "metadata_namespace": _NAMESPACE,
        "key": key,
        "type": "STRING",
        "regex_value_rewrite": {"pattern": {"regex": pattern}, "substitution": substitution},
    }

"""The caller's own request id, made fit to be logged and repeated.

Decides what of ``x-ms-client-request-id`` is kept, by Azure's rule: letters, digits, ``-`` and ``_``, of these the
first forty. Nothing else of it reaches a model, a log or an answer. The origin of a page, which ``cors`` asks for, is
noted here too. (``x-request-id`` is the proxy's alone: the connection manager replaces whatever a client sends.) Must
not know routes.
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.filters import conditional_filters

CLIENT_REQUEST_ID = "x-ms-client-request-id"
LONGEST = 40

_NAMESPACE = "amphitrite.request"
_KEY = "client_id"
_HTTP = "type.googleapis.com/envoy.extensions.filters.http"
_NOTES = "envoy.filters.http.header_to_metadata"
#: The command operator for the origin of a page that may read the answer; nothing for any other, and where no host asks
#: for it (see ``with_origin``).
ORIGIN = f"%DYNAMIC_METADATA({_NAMESPACE}:origin)%"


def http_filters() -> list[dict[str, Any]]:
    """Two filters for the connection manager, before all that may answer. The first notes origins, where a host asks
    for it. The second is there for requests with the header alone: it takes the header away, notes what may be kept,
    puts that back, and repeats it in the answer."""
    kept = {
        "header": {"key": CLIENT_REQUEST_ID, "value": f"%DYNAMIC_METADATA({_NAMESPACE}:{_KEY}):{LONGEST}%"},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
    repeated = {**kept, "header": {"key": CLIENT_REQUEST_ID, "value": f"%REQ({CLIENT_REQUEST_ID})%"}}
    own = {"header": CLIENT_REQUEST_ID, "on_header_present": _rewritten(_KEY, "[^A-Za-z0-9_-]+", ""), "remove": True}
    put_back = {
        "name": "envoy.filters.http.header_mutation",
        "typed_config": {
            "@type": f"{_HTTP}.header_mutation.v3.HeaderMutation",
            "mutations": {"request_mutations": [{"append": kept}], "response_mutations": [{"append": repeated}]},
        },
    }
    return [
        {"name": _NOTES, "disabled": True, "typed_config": _notes()},
        conditional_filters.http_filter(
            "amphitrite.request_ids",
            conditional_filters.requested(CLIENT_REQUEST_ID),
            [{"name": _NOTES, "typed_config": _notes(own)}, put_back],
        ),
    ]


def with_origin(pattern: str) -> dict[str, Any]:
    """Per-filter configuration of a ``VirtualHost`` where the origin is noted, if ``pattern`` is all of it."""
    known = _rewritten("origin", f"^(?:({pattern})|.*)$", r"\1")
    noted = _notes({"header": "origin", "on_header_present": known})
    return {_NOTES: {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": noted}}


def _notes(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"@type": f"{_HTTP}.header_to_metadata.v3.Config", "request_rules": list(rules)}


def _rewritten(key: str, pattern: str, substitution: str) -> dict[str, Any]:
    return {
        "metadata_namespace": _NAMESPACE,
        "key": key,
        "type": "STRING",
        "regex_value_rewrite": {"pattern": {"regex": pattern}, "substitution": substitution},
    }

"""The caller's own request id, made fit to be logged and repeated.

Decides what of ``x-ms-client-request-id`` is kept, by Azure's rule: letters, digits, ``-`` and ``_``, of these the
first forty. Nothing else of it reaches a model, a log or an answer. The filter that notes it can note the origin of a
page on the way, which ``cors`` asks for. (``x-request-id`` is the proxy's alone: the connection manager replaces
whatever a client sends.) Must not know who repeats it.
"""

from __future__ import annotations

from typing import Any

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
    """Two filters for the connection manager, before all that may answer: the first takes the header away and notes
    what may be kept, the second puts it back. Only a request that carries the header costs more than a look."""
    kept = {
        "header": {"key": CLIENT_REQUEST_ID, "value": f"%DYNAMIC_METADATA({_NAMESPACE}:{_KEY}):{LONGEST}%"},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
    return [
        {"name": _NOTES, "typed_config": _notes()},
        {
            "name": "envoy.filters.http.header_mutation",
            "typed_config": {
                "@type": f"{_HTTP}.header_mutation.v3.HeaderMutation",
                "mutations": {"request_mutations": [{"append": kept}]},
            },
        },
    ]


def with_origin(pattern: str) -> dict[str, Any]:
    """Per-filter configuration of a ``VirtualHost`` where the origin is noted too, if ``pattern`` is all of it."""
    known = _rewritten("origin", f"^(?:({pattern})|.*)$", r"\1")
    return {_NOTES: _notes({"header": "origin", "on_header_present": known})}


def _notes(*more: dict[str, Any]) -> dict[str, Any]:
    own = {"header": CLIENT_REQUEST_ID, "on_header_present": _rewritten(_KEY, "[^A-Za-z0-9_-]+", ""), "remove": True}
    return {"@type": f"{_HTTP}.header_to_metadata.v3.Config", "request_rules": [own, *more]}


def _rewritten(key: str, pattern: str, substitution: str) -> dict[str, Any]:
    return {
        "metadata_namespace": _NAMESPACE,
        "key": key,
        "type": "STRING",
        "regex_value_rewrite": {"pattern": {"regex": pattern}, "substitution": substitution},
    }

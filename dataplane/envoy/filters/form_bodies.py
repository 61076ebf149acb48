"""The content type of a form, which ``curl --data`` sends for any body, never reaches Triton.

Triton 2.51 takes such a body for the query of a form and copies it to its stack: at four megabytes
the instance ends. Decides the content type that Triton gets in place of it, and that a user's own
server gets what the client has sent. Must not know which routes lead to which (see ``restored`` and
``copied_to_triton``). Source: Triton's document "Binary Tensor Data Extension".
"""

from __future__ import annotations

from typing import Any

from amphitrite.dataplane.envoy.filters.conditional_filters import Rule, request_contains, request_has

#: Keeps the client's content type for the routes that restore it.
ORIGINAL = "amphitrite-content-type"
#: Of a request whose body is JSON followed by tensors.
_BINARY = "inference-header-content-length"
_HEADER_MUTATION = "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"


def rule() -> Rule:
    """When the content type is another one, and what it is then. All other requests pass as they
    are."""
    kept = {**_content_type("%REQ(content-type)%"), "header": {"key": ORIGINAL, "value": "%REQ(content-type)%"}}
    return Rule(
        request_contains("content-type", "x-www-form-urlencoded"),
        (_mutation(kept, _content_type("application/json")),),
        (Rule(request_has(_BINARY), (_mutation(_content_type("application/octet-stream")),)),),
    )


def restored() -> list[dict[str, Any]]:
    """``request_headers_to_add`` of a route to a user's own server. Where nothing was kept, nothing
    is set."""
    return [{**_content_type(f"%REQ({ORIGINAL})%"), "append_action": "OVERWRITE_IF_EXISTS"}]


def copied_to_triton() -> list[dict[str, Any]]:
    """``request_headers_mutations`` of a mirror that is Triton, on a route to a user's own server:
    a copy is made of what that server gets. Triton reads no content type."""
    return [{"append": _content_type("application/octet-stream")}]


def _content_type(value: str) -> dict[str, Any]:
    return {"header": {"key": "content-type", "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def _mutation(*headers: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "envoy.filters.http.header_mutation",
        "typed_config": {
            "@type": _HEADER_MUTATION,
            "mutations": {"request_mutations": [{"append": one} for one in headers]},
        },
    }

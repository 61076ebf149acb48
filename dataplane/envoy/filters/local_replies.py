"""The responses of the proxy itself, where no model answers.

Decides their bodies and headers and, for Envoy's own failures, the status. All bodies are
``{"error": {"code", "message"}}``. Must not know which route uses which response. Sources: Envoy's
pages "Local reply modification" and "Access logging" (response flags and command operators).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from amphitrite.dataplane.envoy.filters.bodiless_requests import MAX_BYTES
from amphitrite.dataplane.envoy.filters.request_ids import CLIENT_REQUEST_ID, ORIGIN

#: The filter metadata in which a route keeps values for its responses and the access log.
METADATA = "amphitrite"

_JSON = "application/json"
_RETRY_SOON = {"retry-after": "1"}


def route_value(key: str) -> str:
    """The command operator for one value of the route's metadata."""
    return f"%METADATA(ROUTE:{METADATA}:{key})%"


def header(name: str, value: str) -> dict[str, Any]:
    """A header to set, in place of any that is there. ``value`` may hold command operators; ``%``
    is written ``%%``."""
    return {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def direct(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The part of a ``Route`` that answers with fixed text. Its name ends in ``code``, which
    ``request_stats`` reads."""
    body = json.dumps({"error": {"code": code, "message": message}})
    return {
        "name": f"//{code}",
        "direct_response": {"status": status, "body": {"inline_string": body}},
        "response_headers_to_add": _headers(headers),
    }


def direct_format(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """As :func:`direct`, with command operators in ``message``. Envoy escapes their values for
    JSON."""
    return {
        "name": f"//{code}",
        "direct_response": {"status": status, "body_format": _format(code, message)},
        "response_headers_to_add": _headers(headers),
    }


def local_reply() -> dict[str, Any]:
    """The ``LocalReplyConfig``: our responses for Envoy's own failures. The first matching mapper
    counts.

    The last ones match by status. None of them has the status of a :func:`direct` response, whose
    text it would replace.
    """
    which = f"deployment '{route_value('deployment')}'"
    return {
        "mappers": [
            _mapper(
                ("UO",), 429, "TooManyRequests",
                f"{which} has {route_value('max_requests')} requests in flight at this proxy, which is its limit: "
                f"{route_value('limit')}. Each proxy has this limit. Raise either number, or try again",
                _RETRY_SOON,
            ),
            _mapper(
                ("UT",), 408, "RequestTimeout",
                f"{which} did not answer within {route_value('timeout')} "
                "(request_settings.request_timeout_ms)",
            ),
            _mapper(
                ("SI",), 408, "RequestTimeout",
                f"no byte was sent or received for {route_value('pause')}",
            ),
            _mapper(
                ("UH",), 503, "NoHealthyInstance",
                f"{which} has no healthy instance", _RETRY_SOON,
            ),
            _mapper(
                ("NC",), 503, "DeploymentNotReady",
                f"{which} was being removed when this request arrived", _RETRY_SOON,
            ),
            _mapper(
                ("UF", "UC", "UR", "URX", "LR"), 503, "InstanceConnectionLost",
                f"the connection to an instance of {which} was lost before it answered", _RETRY_SOON,
            ),
            _mapper(("UPE",), 502, "InvalidAnswer", f"an instance of {which} did not answer in HTTP"),
            _mapper(
                ("NR",), 404, "ResourceNotFound",
                "there is no endpoint at this address; a scoring address is /endpoints/<endpoint>/",
            ),
            _no_body(),
            _mapper(("OM",), 503, "Overloaded", "the proxy is overloaded", _RETRY_SOON),
            *(
                status_mapper(status, code, "the request was refused: %RESPONSE_CODE_DETAILS%")
                for status, code in (
                    (400, "BadRequest"), (408, "RequestTimeout"), (426, "UpgradeRequired"),
                    (431, "HeadersTooLarge"), (500, "InternalServerError"), (501, "NotImplemented"),
                    (502, "InvalidAnswer"), (504, "RequestTimeout"),
                )
            ),
        ]
    }  # fmt: skip


def _mapper(
    flags: tuple[str, ...], status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return {
        "filter": {"response_flag_filter": {"flags": list(flags)}},
        "status_code": status,
        "body_format_override": _format(code, message),
        "headers_to_add": _mapped_headers(headers),
    }


def _no_body() -> dict[str, Any]:
    """413 for a request other than POST: see ``bodiless_requests``."""
    post = {"name": ":method", "string_match": {"exact": "POST"}, "invert_match": True}
    value = {"default_value": 413, "runtime_key": "amphitrite.status.413"}
    status = {"status_code_filter": {"comparison": {"op": "EQ", "value": value}}}
    return {
        "filter": {"and_filter": {"filters": [status, {"header_filter": {"header": post}}]}},
        "body_format_override": _format(
            "RequestTooLarge", f"only POST requests may have a body here; this one has more than {MAX_BYTES} bytes"
        ),
        "headers_to_add": _mapped_headers(None),
    }


def status_mapper(status: int, code: str, message: str) -> dict[str, Any]:
    """A mapper for Envoy's own failures with this status."""
    value = {"default_value": status, "runtime_key": f"amphitrite.status.{status}"}
    return {
        "filter": {"status_code_filter": {"comparison": {"op": "EQ", "value": value}}},
        "body_format_override": _format(code, message),
        "headers_to_add": _mapped_headers(None),
    }


def _format(code: str, message: str) -> dict[str, Any]:
    return {"json_format": {"error": {"code": code, "message": message}}, "content_type": _JSON}


def _headers(more: Mapping[str, str] | None) -> list[dict[str, Any]]:
    return [header(name, value) for name, value in {"content-type": _JSON, **(more or {})}.items()]


def _mapped_headers(more: Mapping[str, str] | None) -> list[dict[str, Any]]:
    """The headers of a mapped response. Both request ids are among them: a request that found no
    route would get neither. So is the allowed origin: not every filter's response gets the headers
    of the virtual host."""
    headers = {
        CLIENT_REQUEST_ID: f"%REQ({CLIENT_REQUEST_ID})%",
        "x-request-id": "%UNIQUE_ID%",
        "access-control-allow-origin": ORIGIN,
        **(more or {}),
    }
    return [header(name, value) for name, value in headers.items()]

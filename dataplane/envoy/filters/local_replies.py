"""The responses of the proxy itself, where no model answers.

Decides their bodies and headers and, for Envoy's own failures, the status. A body has one of two
forms, by the path of the request: below ``/v2`` Triton's ``{"error": "CODE: message (request id
ID)"}``, which its clients print, elsewhere Azure's ``{"error": {"code", "message"}}``. In gRPC it
is the message of a status (see ``grpc_routes``). Must not know which route uses which response.
Sources: Envoy's pages "Local reply modification" and "Access logging" (response flags and command
operators).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amphitrite.dataplane.envoy.filters import nested_bodies, queueing, sequence_affinity
from amphitrite.dataplane.envoy.filters.bodiless_requests import MAX_BYTES
from amphitrite.dataplane.envoy.filters.request_ids import CLIENT_REQUEST_ID, ORIGIN

#: The filter metadata in which a route keeps values for its responses and the access log.
METADATA = "amphitrite"

_JSON = "application/json"
_REQUEST_ID = "x-request-id"
_RETRY_SOON = {"retry-after": "1"}
#: Below the model server's own API, at an address by path or by host name. A client of Triton that
#: was given no endpoint asks for ``/v2/...`` too.
_BELOW = {"safe_regex": {"regex": r"(/endpoints/[^/]+)?/v2([/?].*)?"}}
#: What Envoy calls the path of a request that it has rewritten. No client can set it.
_ORIGINAL_PATH = "x-envoy-original-path"


#: The status of a held request when the agent does not answer. The agent itself never uses it.
AGENT_GONE = 500


def route_value(key: str) -> str:
    """The command operator for one value of the route's metadata."""
    return f"%METADATA(ROUTE:{METADATA}:{key})%"


#: What a response was before it got its form: the text of a route, or of a filter.
GIVEN = "%LOCAL_REPLY_BODY%"
#: The code of a route that answers by itself (see :func:`direct`).
_ROUTE_CODE = route_value("code")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One response in place of a failure of Envoy's own.

    - ``condition``: when it counts, an ``AccessLogFilter``.
    - ``flags``: the response flags in it, ``found``: the status in it, for ``request_stats``.
    - ``status``: None: the status stays as Envoy has it.
    - ``code``, ``message``: may hold command operators.
    """

    condition: dict[str, Any]
    code: str
    message: str
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    found: int | None = None


def header(name: str, value: str) -> dict[str, Any]:
    """A header to set, in place of any that is there. ``value`` may hold command operators; ``%``
    is written ``%%``."""
    return {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def direct(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The part of a ``Route`` that answers with fixed text. Its name ends in ``code``, which
    ``request_stats`` reads, and its metadata has it for the form of the body."""
    return _direct(status, code, {"body": {"inline_string": message}}, headers)


def direct_format(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """As :func:`direct`, with command operators in ``message``."""
    return _direct(status, code, {"body_format": {"text_format_source": {"inline_string": message}}}, headers)


def _direct(status: int, code: str, body: dict[str, Any], headers: Mapping[str, str] | None) -> dict[str, Any]:
    return {
        "name": f"//{code}",
        "direct_response": {"status": status, **body},
        "response_headers_to_add": [header(name, value) for name, value in (headers or {}).items()],
        "metadata": {"filter_metadata": {METADATA: {"code": code}}},
    }


def local_reply() -> dict[str, Any]:
    """The ``LocalReplyConfig`` for HTTP: the form of all responses of the proxy itself."""
    return {"mappers": [mapper for refusal in (*refusals(), given()) for mapper in mappers(refusal)]}


def refusals() -> tuple[Refusal, ...]:
    """Our responses for Envoy's own failures. The first whose condition holds counts.

    Those by status come last. What a route answers by itself has none of their statuses: its text
    would be replaced.
    """
    which = f"deployment '{route_value('deployment')}'"
    return (
        _by_flags(
            ("UO",), 429, "TooManyRequests",
            f"{which} has {route_value('max_requests')} requests in flight at this proxy, which is its limit: "
            f"{route_value('limit')}. Each proxy has this limit. Raise either number, or try again",
            _RETRY_SOON,
        ),
        _by_flags(
            ("UT",), 408, "RequestTimeout",
            f"{which} did not answer within {route_value('timeout')} "
            "(request_settings.request_timeout_ms)",
        ),
        _by_flags(
            ("SI",), 408, "RequestTimeout",
            f"no byte was sent or received for {route_value('pause')}",
        ),
        _by_flags(
            ("UH",), 503, "NoHealthyInstance",
            f"{which} has no healthy instance", _RETRY_SOON,
        ),
        _by_flags(
            ("NC",), 503, "DeploymentNotReady",
            f"{which} was being removed when this request arrived", _RETRY_SOON,
        ),
        _by_flags(
            ("UF", "UC", "UR", "URX", "LR"), 503, "InstanceConnectionLost",
            f"the connection to an instance of {which} was lost before it answered", _RETRY_SOON,
        ),
        _by_flags(("UPE",), 502, "InvalidAnswer", f"an instance of {which} did not answer in HTTP"),
        _by_flags(
            ("NR",), 404, "ResourceNotFound",
            "there is no endpoint at this address; a scoring address is /endpoints/<endpoint>/",
        ),
        *_bodies(),
        Refusal(
            queueing.refused(), "TooManyRequests",
            f"{which} has {route_value('max_requests')} requests in flight at this proxy, which is its limit: "
            f"{route_value('limit')}. {GIVEN} (request_settings.max_queue_wait_ms). Each proxy has this limit. Raise "
            "any of the numbers, or try again",
            headers=_RETRY_SOON,
        ),
        *_held(),
        _by_flags(("OM",), 503, "Overloaded", "the proxy is overloaded", _RETRY_SOON),
        *(
            by_status(status, code, "the request was refused: %RESPONSE_CODE_DETAILS%")
            for status, code in (
                (400, "BadRequest"), (408, "RequestTimeout"),
                (431, "HeadersTooLarge"), (500, "InternalServerError"), (501, "NotImplemented"),
                (502, "InvalidAnswer"), (504, "RequestTimeout"),
            )
        ),
    )  # fmt: skip


def given() -> Refusal:
    """The text of a route that answers by itself."""
    refused = {"status_code_filter": {"comparison": {"op": "GE", "value": _value(400)}}}
    return Refusal({"and_filter": {"filters": [refused, {"not_health_check_filter": {}}]}}, _ROUTE_CODE, GIVEN)


def by_status(status: int, code: str, message: str) -> Refusal:
    """The response for all failures of Envoy's own with this status."""
    return Refusal(_has_status(status), code, message, found=status)


def mappers(refusal: Refusal) -> list[dict[str, Any]]:
    """The ``ResponseMapper`` of each form in HTTP, of which the first that matches counts."""
    triton = f"{refusal.code}: {refusal.message} (request id %RESP({_REQUEST_ID})%)"
    azure = {"code": refusal.code, "message": refusal.message}
    below = {"and_filter": {"filters": [refusal.condition, _is_below()]}}
    return [
        mapper(refusal, condition, {"json_format": {"error": error}, "content_type": _JSON})
        for condition, error in ((below, triton), (refusal.condition, azure))
    ]


def mapper(refusal: Refusal, condition: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """A ``ResponseMapper``.

    Both request ids are among the headers: a request that found no route would get neither. So is
    the allowed origin: not every filter's response gets the headers of the virtual host.
    """
    headers = {
        CLIENT_REQUEST_ID: f"%REQ({CLIENT_REQUEST_ID})%",
        "access-control-allow-origin": ORIGIN,
        **refusal.headers,
    }
    # A new id for a request that was not read as far as its own. Where nothing is to be set,
    # nothing changes.
    ids = [header(_REQUEST_ID, "%UNIQUE_ID%"), header(_REQUEST_ID, f"%REQ({_REQUEST_ID})%")]
    return {
        "filter": condition,
        **({} if refusal.status is None else {"status_code": refusal.status}),
        "body_format_override": body,
        "headers_to_add": [*ids, *(header(name, value) for name, value in headers.items())],
    }


def _by_flags(
    flags: tuple[str, ...], status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Refusal:
    condition = {"response_flag_filter": {"flags": list(flags)}}
    return Refusal(condition, code, message, status, headers or {}, flags)


def _bodies() -> tuple[Refusal, ...]:
    """What filters refuse because of its body: see ``bodiless_requests``, ``unsized_bodies``,
    ``nested_bodies`` and ``sequence_affinity``, which give their own texts."""
    code, large = "RequestTooLarge", _has_status(413)
    no_post = {"name": ":method", "string_match": {"exact": "POST"}, "invert_match": True}
    no_length = {"name": "content-length", "present_match": True, "invert_match": True}
    return (
        Refusal(
            _all(large, _has(no_post)),
            code,
            f"only POST requests may have a body here; this one has more than {MAX_BYTES} bytes",
        ),
        Refusal(
            _all(large, _has(no_length)),
            code,
            f"a body of unknown length may have at most {route_value('max_unsized_bytes')} bytes "
            "(max_unsized_body_bytes): send the header content-length, or a smaller body",
        ),
        Refusal(large, code, GIVEN, found=413),
        Refusal(_has_status(415), "UnsupportedMediaType", GIVEN, found=415),
        Refusal(_all(_has_status(400), sequence_affinity.refused()), "BadRequest", GIVEN),
        Refusal(_all(_has_status(400), nested_bodies.refused()), "BadRequest", GIVEN),
    )


def _held() -> tuple[Refusal, ...]:
    """What the agent answers to requests that are held (see ``translate.held_requests``), and what
    Envoy answers when it cannot ask the agent."""
    asked = {"response_flag_filter": {"flags": ["UAEX"]}}
    gone = _has_status(AGENT_GONE)
    which = f"deployment '{route_value('deployment')}'"
    return (
        Refusal(_all(asked, _has_status(408)), "RequestTimeout", GIVEN),
        Refusal(
            _all(asked, gone), "DeploymentWaking", f"{which} is asleep, and this proxy cannot wake it now", 503,
            _RETRY_SOON,
        ),
        Refusal(asked, "DeploymentWaking", GIVEN, headers=_RETRY_SOON, flags=("UAEX",)),
    )  # fmt: skip


def _is_below() -> dict[str, Any]:
    """The condition that the request was for a path below ``/v2``."""
    rewritten = _has({"name": _ORIGINAL_PATH, "string_match": _BELOW})
    as_sent = _all(
        _has({"name": _ORIGINAL_PATH, "present_match": True, "invert_match": True}),
        _has({"name": ":path", "string_match": _BELOW}),
    )
    return {"or_filter": {"filters": [rewritten, as_sent]}}


def _all(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {"and_filter": {"filters": list(conditions)}}


def _has(matcher: Mapping[str, Any]) -> dict[str, Any]:
    return {"header_filter": {"header": dict(matcher)}}


def _has_status(status: int) -> dict[str, Any]:
    return {"status_code_filter": {"comparison": {"op": "EQ", "value": _value(status)}}}


def _value(status: int) -> dict[str, Any]:
    return {"default_value": status, "runtime_key": f"amphitrite.status.{status}"}

"""gRPC at a scoring address: which methods pass, where they go, and responses as gRPC statuses.

Decides the routes for gRPC requests. They come before all others of their RouteConfiguration, and
no gRPC request gets past them. The order is that of ``routes``: status 16 without credentials, 7
and 12 for methods that do not score, then a target. Only the methods in ``_METHODS`` are passed on,
so that no call can control the model server. Must not know who is let in, nor how a target is
chosen.

Stock clients cannot put anything before a method's path, so they name the endpoint in the metadata
``ENDPOINT``. Source of the methods: ``grpc_service.proto`` of Triton's protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from amphitrite.dataplane.envoy.filters import sequence_affinity, timeouts
from amphitrite.dataplane.envoy.filters.local_replies import (
    GIVEN,
    METADATA,
    Refusal,
    by_status,
    direct,
    given,
    header,
    local_reply,
    mapper,
    mappers,
    route_value,
)
from amphitrite.dataplane.envoy.filters.local_replies import refusals as refusals_of_http
from amphitrite.dataplane.envoy.protobuf.common_values import seconds
from amphitrite.dataplane.envoy.translate import held_requests
from amphitrite.dataplane.envoy.translate.clusters import grpc_name
from amphitrite.dataplane.envoy.translate.target_routes import (
    DEPLOYMENT,
    RoutedTarget,
    forward_below,
    search,
    unavailable,
    with_filters,
)

#: The metadata that names the endpoint.
ENDPOINT = "amphitrite-endpoint"
#: The header with the endpoint's name as second element, as in a path. No client can set it.
SCOPE = "amphitrite-scope"

_STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
#: All that predictions need. The rest of Triton's service, now and in later releases, controls or
#: reveals the server.
_METHODS = (
    r"/inference\.GRPCInferenceService/(Server(Live|Ready|Metadata)"
    r"|Model(Ready|Metadata|Config|Statistics|Infer|StreamInfer))|/grpc\.health\.v1\.Health/(Check|Watch)"
)
_REFUSED = r"(?i)/inference\.GRPCInferenceService/(Repository|[a-z]*SharedMemory|Trace|LogSettings).*"

#: gRPC's status numbers ("Status codes and their use in gRPC") by the codes of our errors.
STATUSES = {
    "AuthenticationFailed": 16,
    "BadRequest": 3,
    "DeploymentNotFound": 5,
    "DeploymentNotReady": 14,
    "DeploymentPaused": 14,
    "DeploymentWaking": 14,
    "Forbidden": 7,
    "HeadersTooLarge": 8,
    "HttpsRequired": 9,
    "InstanceConnectionLost": 14,
    "NoHealthyInstance": 14,
    "NoTraffic": 5,
    "NotImplemented": 12,
    "Overloaded": 14,
    "RequestTimeout": 4,
    "RequestTooLarge": 8,
    "ResourceNotFound": 5,
    "TooManyRequests": 8,
    "UnsupportedMediaType": 12,
}
_INTERNAL = 13
#: Envoy's own failures with another meaning in gRPC. No flag tells which of two deadlines has
#: passed.
_GRPC_MESSAGES = {
    "RequestTimeout": (
        f"deployment '{route_value('deployment')}' sent nothing for {route_value('timeout')} "
        "(request_settings.request_timeout_ms), or until the call's own deadline"
    ),
    "ResourceNotFound": f"there is no such endpoint: name one in the metadata {ENDPOINT}",
}
#: The refusal of a message that ``sequence_affinity`` would read, by its status.
_LARGE_MESSAGE = by_status(
    413,
    "RequestTooLarge",
    f"a message of more than {sequence_affinity.BUFFERED_BYTES} bytes is not searched for its sequence: name the "
    f"sequence in the metadata {sequence_affinity.SEQUENCE} (which does not help where models take ids as numbers)",
)
#: The methods that ask whether a server or a model can serve.
_HEALTH = r"/inference\.GRPCInferenceService/(Server(Live|Ready)|ModelReady)|/grpc\.health\.v1\.Health/.*"
_GRPC: dict[str, Any] = {"grpc": {}}
_CONTENT = {"name": "content-type", "string_match": {"safe_regex": {"regex": r"application/grpc(\+.*)?"}}}
#: The same for an ``AccessLogFilter``.
_IN_GRPC: dict[str, Any] = {"header_filter": {"header": _CONTENT}}


def scope_header() -> list[dict[str, Any]]:
    """``early_header_mutation_extensions`` of the connection manager, which run before a route is
    looked for. ``SCOPE`` is ``/endpoints/<value of ENDPOINT>``, or the path where ``ENDPOINT`` is
    absent. The path itself does not change, and an endpoint's routes look at the path: the metadata
    only chooses whose routes these are."""
    named = {**header(ENDPOINT, f"/endpoints/%REQ({ENDPOINT})%"), "append_action": "OVERWRITE_IF_EXISTS"}
    return [
        {
            "name": "envoy.http.early_header_mutation.header_mutation",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.http.early_header_mutation"
                ".header_mutation.v3.HeaderMutation",
                "mutations": [{"append": named}, {"append": header(SCOPE, f"%REQ({ENDPOINT}?:path)%")}],
            },
        }
    ]


def refusals(unauthenticated: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The routes for requests that are not let in, as ``unauthenticated`` has them for HTTP, and
    for methods that cannot be called."""
    yield from (as_grpc(item) for item in unauthenticated)
    yield as_grpc(
        {
            "match": {"safe_regex": {"regex": _REFUSED}},
            **direct(403, "Forbidden", "this part of the model server's API cannot be reached from outside"),
        }
    )
    other = {"name": ":path", "string_match": {"safe_regex": {"regex": _METHODS}}, "invert_match": True}
    unknown = "there is no such method: only the scoring methods of inference.GRPCInferenceService can be called"
    yield _answer({"headers": [other]}, direct(404, "NotImplemented", unknown))


def target_routes(
    routed: RoutedTarget,
    match: Mapping[str, Any],
    mirrors: Sequence[tuple[RoutedTarget, int]],
    by_grpc: Collection[str],
) -> Iterator[dict[str, Any]]:
    """``Route`` messages for requests that meet ``match``, with the limits and mirrors of those in
    ``target_routes``."""
    name, cluster = routed.target.name, routed.target.cluster
    if (why := unavailable(routed.target)) is not None:
        yield _answer_of(routed, match, direct(503, *why, {DEPLOYMENT: name}))
        return
    if cluster is None:
        reason = f"deployment '{name}' is asleep: the next request wakes it, and a health check does not"
        asked = {"name": ":path", "string_match": {"safe_regex": {"regex": _HEALTH}}}
        checks = {**match, "headers": [asked, *match["headers"]]}
        yield _answer_of(routed, checks, direct(503, "DeploymentNotReady", reason, {DEPLOYMENT: name}))
    elif cluster not in by_grpc:
        reason = f"deployment '{name}' does not serve gRPC: its container is not a Triton with a model repository"
        yield _answer_of(routed, match, direct(404, "NotImplemented", reason, {DEPLOYMENT: name}))
        return
    below = forward_below(routed, mirrors)
    # Content types are for HTTP: that of a gRPC request stays what it is.
    below.pop("request_headers_to_add", None)
    action = {**below["route"], **({} if cluster is None else {"cluster": grpc_name(cluster)})}
    del action["prefix_rewrite"]
    copies = [
        {**copy, "cluster": grpc_name(copy["cluster"]), "request_headers_mutations": []}
        for copy in action.pop("request_mirror_policies", ())
        if copy["cluster"] in by_grpc
    ]
    # Limited by its pauses alone. It is not mirrored: a mirrored request begins when its original
    # has ended.
    timeout_s, wait_s = routed.target.timeout_s, routed.target.queue_wait_s
    stream = {**action, **timeouts.route_timeouts(timeout_s, stream=True, wait_s=wait_s)}
    if routed.target.hold == "now":
        stream |= held_requests.pauses(timeout_s)
    checked = sequence_affinity.enabled(numbers=True, stream=True) if routed.target.number_ids else {}
    filters = {**checked, **held_requests.filters(routed.endpoint, routed.target, stream=True)}
    yield {**with_filters(below, filters), "match": {**_GRPC, **match, "path": _STREAM}, "route": stream}
    # The client's deadline, up to the limit. It counts from the arrival.
    longest = seconds(timeout_s + wait_s)
    unary = {**action, "request_mirror_policies": copies, "max_stream_duration": {"grpc_timeout_header_max": longest}}
    # A stream stays on one instance with all its sequences, so none need be known before it begins.
    searched = with_filters(below, search(routed, mirrors))
    yield {**searched, "match": {**_GRPC, **match, "prefix": "/"}, "route": unary}


def as_grpc(route: Mapping[str, Any]) -> dict[str, Any]:
    """A route that answers by itself, for gRPC alone and with a gRPC status."""
    code = route["metadata"]["filter_metadata"][METADATA]["code"]
    return {
        **route,
        "match": {**route["match"], **_GRPC},
        "response_headers_to_add": [*route["response_headers_to_add"], _status(code)],
    }


def local_reply_config() -> dict[str, Any]:
    """The ``LocalReplyConfig`` for both protocols: the message of a status for gRPC, and a body of
    ``local_replies`` for HTTP."""
    mapped = [_with_status(item) for item in (_LARGE_MESSAGE, *refusals_of_http())]
    return {"mappers": [*map(_mapper, (*mapped, given())), *local_reply()["mappers"]]}


def local_reply_config_of(refusal: Refusal) -> dict[str, Any]:
    """The ``LocalReplyConfig`` for both protocols where there is no other response than this."""
    return {"mappers": [_mapper(_with_status(refusal)), *mappers(refusal)]}


def _with_status(refusal: Refusal) -> Refusal:
    return replace(refusal, headers={**refusal.headers, **_status_of(refusal.code)})


def _mapper(refusal: Refusal) -> dict[str, Any]:
    # The condition comes first: most of them do not hold, and the other one is a regular
    # expression.
    condition = {"and_filter": {"filters": [refusal.condition, _IN_GRPC]}}
    message = refusal.message if refusal.message == GIVEN else _GRPC_MESSAGES.get(refusal.code, refusal.message)
    return mapper(refusal, condition, {"text_format_source": {"inline_string": message}})


def _answer(match: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    return as_grpc({"match": {**match, "prefix": "/"}, **answer})


def _answer_of(routed: RoutedTarget, match: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The same, counted for the target."""
    return _answer(match, {**answer, "name": answer["name"].replace("//", f"{routed.endpoint}/{routed.target.name}/")})


def _status(code: str) -> dict[str, Any]:
    return header(*_status_of(code).popitem())


def _status_of(code: str) -> dict[str, str]:
    return {"grpc-status": str(STATUSES.get(code, _INTERNAL))}

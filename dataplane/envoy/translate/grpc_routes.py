"""gRPC at a scoring address: which methods pass, where they go, and answers as gRPC says them.

Decides the routes that requests in gRPC meet, before all others of their RouteConfiguration: nothing in gRPC ever gets
past them. The order is that of ``routes``: 16 without credentials, 7 and 12 for methods that are not there for
scoring, then a target. Only the methods in ``_METHODS`` are passed on, so that no call gets to what steers the model
server. Must not know who is let in, nor how a target is chosen.

Stock clients cannot put anything before a method's path, so they name the endpoint in the metadata ``ENDPOINT``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from amphitrite.dataplane.envoy.filters import sequence_affinity
from amphitrite.dataplane.envoy.filters.local_replies import direct, failed, header, route_value
from amphitrite.dataplane.envoy.translate.clusters import grpc_name
from amphitrite.dataplane.envoy.translate.target_routes import DEPLOYMENT, Placed, forwarded

#: The metadata that names the endpoint.
ENDPOINT = "amphitrite-endpoint"
#: Where the endpoint's name is the second element, as in a path; no client can set it.
SCOPE = "amphitrite-scope"

_STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
#: All that predicting needs; the rest of Triton's service, now and in later releases, steers or reveals the server.
_METHODS = (
    r"/inference\.GRPCInferenceService/(Server(Live|Ready|Metadata)"
    r"|Model(Ready|Metadata|Config|Statistics|Infer|StreamInfer))|/grpc\.health\.v1\.Health/(Check|Watch)"
)
_REFUSED = r"(?i)/inference\.GRPCInferenceService/(Repository|[a-z]*SharedMemory|Trace|LogSettings).*"

#: gRPC's numbers (its own documentation, "Status codes and their use in gRPC") by the codes of our errors.
STATUSES = {
    "AuthenticationFailed": 16,
    "BadRequest": 3,
    "DeploymentNotFound": 5,
    "DeploymentNotReady": 14,
    "Forbidden": 7,
    "HeadersTooLarge": 8,
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
#: Failures of Envoy's own that are something else in gRPC. The shorter deadline is not told by any flag.
_OWN_WORDS = {
    "RequestTimeout": (
        f"deployment '{route_value('deployment')}' was silent for {route_value('timeout')} "
        "(request_settings.request_timeout_ms), or for as long as the call's own deadline allows"
    ),
    "ResourceNotFound": f"there is no such endpoint: name one in the metadata {ENDPOINT}",
}
#: What ``sequences`` refuses, by its status.
_NO_SEQUENCE = (
    "this deployment serves sequences, and {what}: name the sequence in the metadata " + sequence_affinity.SEQUENCE
)
_UNSEARCHED = (
    (
        413,
        "RequestTooLarge",
        f"a message of more than {sequence_affinity.HELD_BYTES} bytes is not searched for its sequence",
    ),
    (415, "UnsupportedMediaType", "a compressed message does not show which one it belongs to"),
)
_GRPC: dict[str, Any] = {"grpc": {}}
_CONTENT = {"name": "content-type", "string_match": {"safe_regex": {"regex": r"application/grpc(\+.*)?"}}}
#: The same for an ``AccessLogFilter``.
_IN_GRPC: dict[str, Any] = {"header_filter": {"header": _CONTENT}}


def scope_header() -> list[dict[str, Any]]:
    """``early_header_mutation_extensions`` of the connection manager: ``SCOPE`` is the path, but where ``ENDPOINT`` is
    given, then ``/endpoints/<its value>``. They run before a route is looked for. The path itself stays as it is, and
    an endpoint's routes look at it: whatever the metadata holds, it can only choose whose routes these are.
    """
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
    """Who is not let in, as ``unauthenticated`` tells for HTTP, and what cannot be called."""
    yield from (spoken(one) for one in unauthenticated)
    yield spoken(
        {
            "match": {"safe_regex": {"regex": _REFUSED}},
            **direct(403, "Forbidden", "this part of the model server's API cannot be reached from outside"),
        }
    )
    other = {"name": ":path", "string_match": {"safe_regex": {"regex": _METHODS}}, "invert_match": True}
    unknown = "there is no such method: those of inference.GRPCInferenceService that score can be called"
    yield _answer({"headers": [other]}, direct(404, "NotImplemented", unknown))


def target_routes(
    placed: Placed, match: Mapping[str, Any], mirrors: Sequence[tuple[Placed, int]], by_grpc: Collection[str]
) -> Iterator[dict[str, Any]]:
    """``Route`` messages for requests that fulfil ``match``, with the limits and copies of those in ``targets``."""
    name, cluster = placed.target.name, placed.target.cluster
    if cluster is None:
        reason = f"deployment '{name}' has no instance that is ready"
        yield _answer_of(placed, match, direct(503, "DeploymentNotReady", reason, {DEPLOYMENT: name}))
        return
    if cluster not in by_grpc:
        reason = f"deployment '{name}' does not serve gRPC: its container is not a Triton with a model repository"
        yield _answer_of(placed, match, direct(404, "NotImplemented", reason, {DEPLOYMENT: name}))
        return
    below = forwarded(placed, mirrors)
    to = {**below["route"], "cluster": grpc_name(cluster)}
    del to["prefix_rewrite"]
    copies = [
        {**copy, "cluster": grpc_name(copy["cluster"])}
        for copy in to.pop("request_mirror_policies", ())
        if copy["cluster"] in by_grpc
    ]
    bound = to["timeout"]
    # As long as something comes or goes. It is not copied: a copy begins when its original has ended.
    stream = {**to, "timeout": "0s", "idle_timeout": bound}
    yield {**below, "match": {**_GRPC, **match, "path": _STREAM}, "route": stream}
    # Less than the bound, where the client asks for less.
    unary = {**to, "request_mirror_policies": copies, "max_stream_duration": {"grpc_timeout_header_max": bound}}
    # A stream stays on one instance with all its sequences: which one need not be known before it begins.
    found = {"typed_per_filter_config": sequence_affinity.enabled()} if placed.target.sequences else {}
    yield {**below, **found, "match": {**_GRPC, **match, "prefix": "/"}, "route": unary}


def spoken(route: Mapping[str, Any]) -> dict[str, Any]:
    """A route that answers by itself, as one for gRPC alone and in its terms."""
    answer = route["direct_response"]
    if "body_format" in answer:
        error = answer["body_format"]["json_format"]["error"]
        body = {"body_format": _text(error["message"])}
    else:
        error = json.loads(answer["body"]["inline_string"])["error"]
        body = {"body": {"inline_string": error["message"]}}
    kept = [h for h in route.get("response_headers_to_add", ()) if h["header"]["key"] != "content-type"]
    return {
        **route,
        "match": {**route["match"], **_GRPC},
        "direct_response": {"status": answer["status"], **body},
        "response_headers_to_add": [*kept, _status(error["code"])],
    }


def with_replies(local_reply: Mapping[str, Any]) -> dict[str, Any]:
    """The ``LocalReplyConfig`` of ``replies``, with the same for requests in gRPC before it."""
    mappers = local_reply["mappers"]
    own = [failed(status, code, _NO_SEQUENCE.format(what=what)) for status, code, what in _UNSEARCHED]
    return {**local_reply, "mappers": [*(_mapper(one) for one in [*own, *mappers]), *mappers]}


def _mapper(of_http: Mapping[str, Any]) -> dict[str, Any]:
    error = of_http["body_format_override"]["json_format"]["error"]
    return {
        **of_http,
        "filter": {"and_filter": {"filters": [_IN_GRPC, of_http["filter"]]}},
        "body_format_override": _text(_OWN_WORDS.get(error["code"], error["message"])),
        "headers_to_add": [*of_http["headers_to_add"], _status(error["code"])],
    }


def _answer(match: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    return spoken({"match": {**match, "prefix": "/"}, **answer})


def _answer_of(placed: Placed, match: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """It is counted for the target."""
    return _answer(match, {**answer, "name": answer["name"].replace("//", f"{placed.endpoint}/{placed.target.name}/")})


def _status(code: str) -> dict[str, Any]:
    return header("grpc-status", str(STATUSES.get(code, _INTERNAL)))


def _text(message: str) -> dict[str, Any]:
    return {"text_format_source": {"inline_string": message}}

"""The routes to one target: its scoring address and everything below it.

Decides path, timeout, retries, mirrors and the header that names the target. Must not know why a
request is sent there. Source: Envoy's API page "HTTP route components", its page "Router"
(``x-envoy-retry-on``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from amphitrite.dataplane.envoy.answers import sample_filter
from amphitrite.dataplane.envoy.filters import (
    form_bodies,
    model_errors,
    nested_bodies,
    queueing,
    sequence_affinity,
    timeouts,
)
from amphitrite.dataplane.envoy.filters.bodiless_requests import enabled as bodiless
from amphitrite.dataplane.envoy.filters.local_replies import METADATA, direct, header
from amphitrite.dataplane.envoy.translate import held_requests
from amphitrite.dataplane.table.routing_table import Target

#: The header that pins a request to a deployment, and names the deployment in the response.
DEPLOYMENT = "azureml-model-deployment"

#: Nothing of the request has reached an instance, so it certainly did not run.
_NOT_RUN = "connect-failure,refused-stream,reset-before-request"
#: A lost instance: the request runs again on another one. That may repeat work, which a stateless
#: model does not notice. Only its owner knows whether a model is stateless.
_LOST = f"{_NOT_RUN},reset"
_RETRY_POLICY: dict[str, Any] = {
    "num_retries": 2,
    "retry_host_predicate": [
        {
            "name": "envoy.retry_host_predicates.previous_hosts",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
            },
        }
    ],
    # The lost instance has the fewest requests in flight, so least-request balancing offers it
    # three times in four.
    "host_selection_retry_max_attempts": 32,
    "retry_back_off": {"base_interval": "0.025s", "max_interval": "0.25s"},
}
#: The ``retry_policy`` of a virtual host, for its routes without one of their own: most of them.
RETRY_NOT_RUN: dict[str, Any] = {"retry_on": _NOT_RUN, **_RETRY_POLICY}
#: The proxy has not looked into such a body (``nested_bodies``), so it may be what the instance was
#: lost by. It runs once.
_COMPRESSED = {"name": "content-encoding", "present_match": True}
POST = {"name": ":method", "string_match": {"exact": "POST"}}
#: Where clients of Triton ask whether it can serve.
_HEALTH = r"/endpoints/[^/]+/v2/(health/(live|ready)|models/[^/]+(/versions/[^/]+)?/ready)/?"


#: Where mirrored requests go, and the upper bound of their random numbers, in ten-thousandths.
Mirror = tuple["RoutedTarget", int]


@dataclass(frozen=True, slots=True)
class RoutedTarget:
    """A target of the route ``endpoint``. ``max_requests``: the limit of its cluster."""

    endpoint: str
    target: Target
    max_requests: int


def target_routes(
    routed: RoutedTarget, match: Mapping[str, Any], mirrors: Sequence[Mirror] = (), compared: int = 0
) -> Iterator[dict[str, Any]]:
    """``Route`` messages for requests that meet ``match``: conditions besides the path, ``headers``
    among them. ``compared``: the upper bound of the random numbers of those whose answers are
    compared, in ten-thousandths; 0: none are.

    POSTs are separate from other methods because they run a model. Only their failures become 424,
    while a readiness probe, for one, keeps its status. Only they have a body.
    """
    root = f"/endpoints/{routed.endpoint}"
    if (why := unavailable(routed.target)) is not None:
        code, message = why
        headers = {**({} if routed.target.paused else {"retry-after": "5"}), DEPLOYMENT: routed.target.name}
        yield {
            "match": {**match, "prefix": root},
            **direct(503, code, message, headers),
            "name": f"{routed.endpoint}/{routed.target.name}/{code}",
        }
        return
    if routed.target.hold == "now":
        yield {"match": {**match, "safe_regex": {"regex": _HEALTH}}, **_asleep(routed)}
    post = {**match, "headers": [POST, *match["headers"]]}
    if compared:
        below = {"default_value": {"numerator": compared, "denominator": "TEN_THOUSAND"}}
        yield from _compared(routed, {**post, "runtime_fraction": below}, mirrors)
    if routed.target.retry_lost:
        once = replace(routed, target=replace(routed.target, retry_lost=False))
        yield from _posts(once, {**post, "headers": [_COMPRESSED, *post["headers"]]}, mirrors)
    yield from _posts(routed, post, mirrors)
    # Other methods run no model.
    yield {
        "match": {**match, "prefix": f"{root}/"},
        **with_filters(
            _forward(routed, mirrors, "/", retry_on=_LOST),
            {**bodiless(), **held_requests.filters(routed.endpoint, routed.target, waits=True)},
        ),
    }


def unavailable(target: Target) -> tuple[str, str] | None:
    """Why requests are answered 503, as code and message; None: they are forwarded, or held."""
    if target.paused:
        return "DeploymentPaused", f"deployment '{target.name}' is paused: its owner can resume it"
    if target.cluster is None and target.hold != "now":
        return "DeploymentNotReady", f"deployment '{target.name}' has no instance that is ready"
    return None


def _asleep(routed: RoutedTarget) -> dict[str, Any]:
    """The answer to a health check: the next request will be served, and a check wakes nobody."""
    return {
        "name": f"{routed.endpoint}/{routed.target.name}",
        "direct_response": {"status": 200},
        "response_headers_to_add": [header(DEPLOYMENT, routed.target.name.replace("%", "%%"))],
    }


def _posts(routed: RoutedTarget, post: Mapping[str, Any], mirrors: Sequence[Mirror]) -> Iterator[dict[str, Any]]:
    root = f"/endpoints/{routed.endpoint}"
    # Any address of a user's own container may stream: the request says what it accepts.
    by_accept = [timeouts.BY_ACCEPT] if routed.target.container else []
    for path in (f"{root}/", root):
        for accept in by_accept:
            events = {**post, "headers": [accept, *post["headers"]]}
            yield {"match": {**events, "path": path}, **_score(routed, mirrors, stream=True)}
        yield {"match": {**post, "path": path}, **_score(routed, mirrors)}
    below = {"prefix": f"{root}/"}
    for accept in (timeouts.BY_PATH, *by_accept):
        events = {**post, "headers": [accept, *post["headers"]]}
        streamed = _forward(routed, mirrors, "/", stream=True)
        yield {"match": {**events, **below}, **_for_posts(routed, mirrors, streamed, stream=True)}
    yield {"match": {**post, **below}, **_for_posts(routed, mirrors, _forward(routed, mirrors, "/"))}


def _compared(routed: RoutedTarget, post: Mapping[str, Any], mirrors: Sequence[Mirror]) -> Iterator[dict[str, Any]]:
    """As ``_posts``, for the requests whose answers the agent is shown. Streams are not among
    them."""
    root = f"/endpoints/{routed.endpoint}"
    shown = {**post, "headers": [*sample_filter.CONDITIONS, *post["headers"]]}
    found = []
    if routed.target.score_path is not None and sample_filter.is_infer(routed.target.score_path):
        found += [{"match": {**shown, "path": path}, **_score(routed, mirrors)} for path in (f"{root}/", root)]
    by_path = {**shown, "headers": [sample_filter.BY_PATH, *shown["headers"]], "prefix": f"{root}/"}
    found.append({"match": by_path, **_for_posts(routed, mirrors, _forward(routed, mirrors, "/"))})
    for route in found:
        filters = {**route.get("typed_per_filter_config", {}), **sample_filter.enabled(routed.endpoint)}
        yield {**route, "typed_per_filter_config": filters}


def search(routed: RoutedTarget, mirrors: Sequence[Mirror], *, stream: bool = False) -> dict[str, Any]:
    """Per-filter configuration of a route for requests that run a model: they are searched for
    their sequences, and held. A mirror gets whatever the target gets, so what it cannot take is
    refused too."""
    target = routed.target
    numbers = any(one.number_ids for one in (target, *(copy.target for copy, _ in mirrors)))
    searched = target.sequences or numbers
    return {
        **(sequence_affinity.enabled(numbers=numbers) if searched else {}),
        **held_requests.filters(routed.endpoint, target, stream=stream, waits=searched),
    }


def with_filters(route: Mapping[str, Any], filters: Mapping[str, Any]) -> dict[str, Any]:
    """``route`` with this per-filter configuration besides its own."""
    both = {**route.get("typed_per_filter_config", {}), **filters}
    return {**route, "typed_per_filter_config": both} if both else {**route}


def forward_below(routed: RoutedTarget, mirrors: Sequence[Mirror]) -> dict[str, Any]:
    """A route to a serving target, for everything below its address, without its match."""
    return _forward(routed, mirrors, "/")


def _score(routed: RoutedTarget, mirrors: Sequence[Mirror], *, stream: bool = False) -> dict[str, Any]:
    target = routed.target
    if target.score_path is None:
        reason = target.score_reason or "the deployment has no single model to score"
        refusal = direct(404, "NoScoringModel", reason, {DEPLOYMENT: target.name})
        return {**refusal, "name": f"{routed.endpoint}/{target.name}/NoScoringModel"}
    stream = stream or timeouts.is_stream(target.score_path)
    forward = _forward(routed, mirrors, target.score_path, stream=stream)
    return _for_posts(routed, mirrors, forward, at_address=True, stream=stream)


def _for_posts(
    routed: RoutedTarget,
    mirrors: Sequence[Mirror],
    route: Mapping[str, Any],
    *,
    at_address: bool = False,
    stream: bool = False,
) -> dict[str, Any]:
    """``route``, with what only requests that run a model need."""
    target = routed.target
    posted = model_errors.metadata(at_address=at_address)
    if not target.container:
        posted |= nested_bodies.metadata(at_address=at_address)
    metadata = {"filter_metadata": {**route["metadata"]["filter_metadata"], **posted}}
    return with_filters({**route, "metadata": metadata}, search(routed, mirrors, stream=stream))


def _forward(
    routed: RoutedTarget,
    mirrors: Sequence[Mirror],
    rewrite: str,
    *,
    stream: bool = False,
    retry_on: str | None = None,
) -> dict[str, Any]:
    """``retry_on``: None: what the target allows, which may be that of the virtual host
    (``RETRY_NOT_RUN``)."""
    target = routed.target
    retry_on = retry_on or (_LOST if target.retry_lost else None)
    return {
        "name": f"{routed.endpoint}/{target.name}",
        "route": {
            "cluster": target.cluster or held_requests.EMPTY_CLUSTER,
            "prefix_rewrite": rewrite,
            **timeouts.route_timeouts(target.timeout_s, stream=stream, wait_s=target.queue_wait_s),
            # Mirrored requests have the other priority: they take no places of those that wait.
            **({"priority": "HIGH"} if target.queue_wait_s else {}),
            **(held_requests.pauses(target.timeout_s) if target.hold == "now" else {}),
            **({} if retry_on is None else {"retry_policy": {"retry_on": retry_on, **_RETRY_POLICY}}),
            "request_mirror_policies": [
                {
                    "cluster": copy.target.cluster,
                    "runtime_fraction": {"default_value": {"numerator": below, "denominator": "TEN_THOUSAND"}},
                    "disable_shadow_host_suffix_append": True,
                    **_copied(target, copy.target),
                }
                for copy, below in mirrors
                if copy.target.cluster is not None
            ],
            **({"hash_policy": sequence_affinity.hash_policy()} if target.sequences else {}),
        },
        "metadata": {
            "filter_metadata": {
                METADATA: {
                    "endpoint": routed.endpoint,
                    "deployment": target.name,
                    "max_requests": str(routed.max_requests),
                    "limit": _limit_text(routed),
                    **timeouts.message_values(target.timeout_s, stream=stream),
                }
            }
        },
        "response_headers_to_add": [header(DEPLOYMENT, target.name.replace("%", "%%"))],
        **({"request_headers_to_add": form_bodies.restored()} if target.container else {}),
        **_queue(target),
    }


def _queue(target: Target) -> dict[str, Any]:
    """The part of a route by which its requests wait for a place. Mirrored ones pass no filter."""
    if not target.queue_wait_s:
        return {}
    if target.cluster is None:  # Which one it will be is not known before the request goes on.
        return {"typed_per_filter_config": queueing.inactive()}
    return {"typed_per_filter_config": queueing.enabled(target.cluster, target.queue_wait_s)}


def _copied(target: Target, copy: Target) -> dict[str, Any]:
    """What is changed in a request to ``target`` that is mirrored to ``copy``."""
    if target.container and not copy.container:
        return {"request_headers_mutations": form_bodies.copied_to_triton()}
    return {}


def _limit_text(routed: RoutedTarget) -> str:
    """How the limit is calculated, for messages."""
    each = routed.target.per_instance
    setting = "request_settings.max_concurrent_requests_per_instance"
    return f"{routed.max_requests // each} (instances) times {each} ({setting})"

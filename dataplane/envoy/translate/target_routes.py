"""The routes to one target: its scoring address and everything below it.

Decides what Envoy is told about one destination: path, timeout, retries, copies, the header that names it. Must not
know how a request comes to be sent here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amphitrite.dataplane.envoy.filters import model_errors, sequence_affinity, timeouts
from amphitrite.dataplane.envoy.filters.bodiless_requests import enabled as bodiless
from amphitrite.dataplane.envoy.filters.local_replies import METADATA, direct, header
from amphitrite.dataplane.table.routing_table import Target

#: The header that pins a request to a deployment and names the deployment in the answer.
DEPLOYMENT = "azureml-model-deployment"

#: Nothing of the request has reached an instance: it certainly did not run.
_NOT_RUN = "connect-failure,refused-stream,reset-before-request"
#: A lost instance: the request runs again on another one. That may repeat work that was done already, which a stateless
#: model does not notice, and which only its owner knows to be one.
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
    # The lost instance has the fewest requests in flight, so choosing by least requests offers it three times in four.
    "host_selection_retry_max_attempts": 32,
    "retry_back_off": {"base_interval": "0.025s", "max_interval": "0.25s"},
}
#: Of a virtual host: for each of its routes that has none of its own, which most have not.
RETRY_NOT_RUN: dict[str, Any] = {"retry_on": _NOT_RUN, **_RETRY_POLICY}
POST = {"name": ":method", "string_match": {"exact": "POST"}}


#: Where copies go, and of how many ten-thousandths of the random numbers that are drawn for requests.
Mirror = tuple["Placed", int]


@dataclass(frozen=True, slots=True)
class Placed:
    """A target of the route ``endpoint``; ``max_requests`` is the bound of its cluster."""

    endpoint: str
    target: Target
    max_requests: int


def target_routes(placed: Placed, match: Mapping[str, Any], mirrors: Sequence[Mirror] = ()) -> Iterator[dict[str, Any]]:
    """``Route`` messages for requests that fulfil ``match``: conditions apart from the path, among them ``headers``.

    POSTs are told apart from other methods because they run a model: only for them does the model server's failure
    become 424, while for instance a readiness probe's own status stays. Only they carry a body.
    """
    root = f"/endpoints/{placed.endpoint}"
    if placed.target.cluster is None:
        yield {
            "match": {**match, "prefix": root},
            **direct(
                503,
                "DeploymentNotReady",
                f"deployment '{placed.target.name}' has no instance that is ready",
                {"retry-after": "5", DEPLOYMENT: placed.target.name},
            ),
            "name": f"{placed.endpoint}/{placed.target.name}/DeploymentNotReady",
        }
        return
    post = {**match, "headers": [POST, *match["headers"]]}
    # Of a container of the user's own any address may stream: the request says what it is prepared for.
    by_accept = [timeouts.BY_ACCEPT] if placed.target.container else []
    for path in (f"{root}/", root):
        for one in by_accept:
            events = {**post, "headers": [one, *post["headers"]]}
            yield {"match": {**events, "path": path}, **_score(placed, mirrors, stream=True)}
        yield {"match": {**post, "path": path}, **_score(placed, mirrors)}
    below = {"prefix": f"{root}/"}
    for one in (timeouts.BY_PATH, *by_accept):
        events = {**post, "headers": [one, *post["headers"]]}
        streamed = _forward(placed, mirrors, "/", stream=True)
        yield {"match": {**events, **below}, **_for_posts(placed.target, streamed)}
    yield {"match": {**post, **below}, **_for_posts(placed.target, _forward(placed, mirrors, "/"))}
    # Other methods ask and run nothing.
    yield {"match": {**match, **below}, **_forward(placed, mirrors, "/", retry_on=_LOST), **bodiless()}


def forwarded(placed: Placed, mirrors: Sequence[Mirror]) -> dict[str, Any]:
    """What a route to a target that serves consists of, apart from its match: with everything below the address."""
    return _forward(placed, mirrors, "/")


def _score(placed: Placed, mirrors: Sequence[Mirror], *, stream: bool = False) -> dict[str, Any]:
    target = placed.target
    if target.score_path is None:
        reason = target.score_reason or "the deployment has no single model to score"
        refusal = direct(404, "NoScoringModel", reason, {DEPLOYMENT: target.name})
        return {**refusal, "name": f"{placed.endpoint}/{target.name}/NoScoringModel"}
    stream = stream or timeouts.streams(target.score_path)
    return _for_posts(target, _forward(placed, mirrors, target.score_path, stream=stream), at_address=True)


def _for_posts(target: Target, route: Mapping[str, Any], *, at_address: bool = False) -> dict[str, Any]:
    """``route``, with what only requests meet that run a model."""
    posted = model_errors.metadata(at_address=at_address)
    found = {**route, "metadata": {"filter_metadata": {**route["metadata"]["filter_metadata"], **posted}}}
    if target.sequences:
        found["typed_per_filter_config"] = sequence_affinity.enabled()
    return found


def _forward(
    placed: Placed,
    mirrors: Sequence[Mirror],
    rewrite: str,
    *,
    stream: bool = False,
    retry_on: str | None = None,
) -> dict[str, Any]:
    """``retry_on``: None for what the target allows, which may be what the virtual host says (``RETRY_NOT_RUN``)."""
    target = placed.target
    retry_on = retry_on or (_LOST if target.retry_lost else None)
    return {
        "name": f"{placed.endpoint}/{target.name}",
        "route": {
            "cluster": target.cluster,
            "prefix_rewrite": rewrite,
            **timeouts.of_route(target.timeout_s, stream=stream),
            **({} if retry_on is None else {"retry_policy": {"retry_on": retry_on, **_RETRY_POLICY}}),
            "request_mirror_policies": [
                {
                    "cluster": copy.target.cluster,
                    "runtime_fraction": {"default_value": {"numerator": below, "denominator": "TEN_THOUSAND"}},
                    "disable_shadow_host_suffix_append": True,
                }
                for copy, below in mirrors
                if copy.target.cluster is not None
            ],
            **({"hash_policy": sequence_affinity.hash_policy()} if target.sequences else {}),
        },
        "metadata": {
            "filter_metadata": {
                METADATA: {
                    "endpoint": placed.endpoint,
                    "deployment": target.name,
                    "max_requests": str(placed.max_requests),
                    "bound": _bound(placed),
                    **timeouts.in_words(target.timeout_s, stream=stream),
                }
            }
        },
        "response_headers_to_add": [header(DEPLOYMENT, target.name.replace("%", "%%"))],
    }


def _bound(placed: Placed) -> str:
    """How the bound comes about."""
    each = placed.target.per_instance
    setting = "request_settings.max_concurrent_requests_per_instance"
    return f"{placed.max_requests // each} (instances) times {each} ({setting})"

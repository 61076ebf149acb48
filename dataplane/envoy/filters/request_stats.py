"""What Envoy counts of each request, and how its counters are read.

Decides the statistics, their limits, and which of Envoy's own are kept. A request counts under the
name of its route, ``<endpoint>/<deployment>/<code of a refusal>``, and under nothing that a client
has sent. So there are as many series as resources. Must not know when Envoy is asked, nor what
becomes of the numbers. Sources: Envoy's pages "Statistics" and the API package
``access_loggers.stats.v3``.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from amphitrite.dataplane.envoy.filters import credential_uses, queueing
from amphitrite.dataplane.envoy.filters.local_replies import refusals
from amphitrite.dataplane.metrics.counters import (
    BUCKETS_S,
    NO_ENDPOINT,
    Reading,
    Series,
    Use,
    copies,
    le,
    model,
    requests,
)
from amphitrite.schemas.errors import CODES

_CONFIG = "type.googleapis.com/envoy.extensions.access_loggers.stats.v3.Config"
_PREFIX = "amphitrite"
#: The microseconds of all requests, for ``demand_stats``.
BUSY = "busy"
#: Series beyond these limits are not counted. A thousand endpoints of two deployments have about
#: 20,000 and 3,000.
_COUNTERS_MAX = 200_000
_HISTOGRAMS_MAX = 20_000
#: From the first byte of a request to the last of its answer. An answer before the end of the
#: request has no last byte, only a first one. Envoy logs an error where there is neither.
_ENDS = [{"command": "COMMON_DURATION", "param": f"DS_RX_BEG:{end}:us"} for end in ("DS_TX_END", "DS_TX_BEG")]
_DURATION = f"%COALESCE({json.dumps({'operators': _ENDS})})%"
#: The tag is empty for a request that has found no route.
_ROUTE = {"name": "route", "value_format": "%ROUTE_NAME%"}

#: The statistics of each cluster that no access log has.
_OF_CLUSTER = r"cluster\.[^.]+\.(internal\.upstream_rq_\d\d\d|upstream_rq_retry|upstream_rq_(pending_)?active)"
#: The filter for Envoy's ``/stats``.
FILTER = rf"^({_PREFIX}\.|({_OF_CLUSTER}|{credential_uses.STAT})$)"
#: What Envoy keeps besides: the gauges that ``admin_client`` reads, and the state of the whole
#: process. All else is not even created. A cluster alone would have 130 statistics, most of the
#: memory that a thousand endpoints need.
_KEPT_PREFIXES = ("cluster_manager.", "http.scoring.downstream_", "listener_manager.", "overload.", "server.")
#: Envoy itself reads this one. Until it is used, ``no_traffic_interval`` counts for an unhealthy
#: instance.
_KEPT_SUFFIX = ".upstream_cx_total"
#: The reason for a request whose client left before the response. Envoy writes 0 as its status.
CLIENT_GONE = "ClientClosedRequest"
#: The reason for a request above the limit of concurrency.
TOO_MANY = "TooManyRequests"


def access_loggers() -> list[dict[str, Any]]:
    """The entries of a connection manager's ``access_log`` list that count. Health checks are not
    counted."""
    received = {"stat": _stat("received"), "value_format": "%BYTES_RECEIVED%"}
    sent = {"stat": _stat("sent"), "value_format": "%BYTES_SENT%"}
    no_probe: dict[str, Any] = {"not_health_check_filter": {}}
    any_status = {"default_value": 100, "runtime_key": "amphitrite.stats.100"}
    # A client that has left gets no answer.
    answered = {"status_code_filter": {"comparison": {"op": "GE", "value": any_status}}}
    outcome = _stat("requests", code="%RESPONSE_CODE%", flags="%RESPONSE_FLAGS%")
    # Envoy sets no flag for a filter's refusal, and its status is 200 in gRPC.
    refused = _stat("requests", code="429", flags="UO")
    duration = {"stat": _stat("duration"), "unit": "Microseconds", "value_format": _DURATION}
    # Envoy brings histograms up to date only now and then, and counters at once.
    busy = {"stat": _stat(BUSY), "value_format": _DURATION}
    # The header is ours where the status is 424. Elsewhere a model may set it to anything.
    model_error = {"default_value": 424, "runtime_key": "amphitrite.stats.424"}
    failure = _stat("failures", code="%RESP(ms-azureml-model-error-statuscode):3%")
    return [
        *(
            _logger(condition, counters=[{"stat": stat, "value_fixed": 1}, received, sent])
            for condition, stat in (
                ({"and_filter": {"filters": [no_probe, queueing.refused(negated=True)]}}, outcome),
                (queueing.refused(), refused),
            )
        ),
        _logger({"and_filter": {"filters": [no_probe, answered]}}, counters=[busy], histograms=[duration]),
        _logger(
            {"status_code_filter": {"comparison": {"op": "EQ", "value": model_error}}},
            counters=[{"stat": failure, "value_fixed": 1}],
        ),
    ]


def stats_config() -> dict[str, Any]:
    """The ``StatsConfig`` of the bootstrap."""
    buckets = [round(bound * 1e6) for bound in BUCKETS_S]
    inclusions: list[dict[str, Any]] = [{"prefix": prefix} for prefix in (f"{_PREFIX}.", *_KEPT_PREFIXES)]
    inclusions += [
        {"suffix": _KEPT_SUFFIX},
        *({"safe_regex": {"regex": regex}} for regex in (_OF_CLUSTER, credential_uses.STAT)),
    ]
    return {
        "histogram_bucket_settings": [{"match": {"prefix": f"{_PREFIX}.duration"}, "buckets": buckets}],
        "stats_matcher": {"inclusion_list": {"patterns": inclusions}},
    }


def read(text: str, owners: Mapping[str, Series]) -> Reading:
    """Envoy's answer to ``FILTER``, in Prometheus' text format. ``owners``: the series of each
    cluster.

    Other lines are ignored: Envoy may say more than it was asked for.
    """
    counters: dict[tuple[Series, str, str], float] = defaultdict(float)
    in_flight: dict[Series, int] = defaultdict(int)
    used: dict[Use, int] = {}
    for route, bound, count in _buckets(text):
        counters[_series_and_reason(route)[0], le(_INDEX[bound]), ""] += count
    for name, labels, value in _lines(text):
        if name.startswith(_NAME_PREFIX):
            series, reason = _series_and_reason(labels["route"])
            field = _field(name.removeprefix(_NAME_PREFIX), labels, reason)
            if field is not None and value:
                counters[series, field, ""] += value
            continue
        if name == credential_uses.NAME and (use := credential_uses.credential_use(labels)) is not None:
            used[use] = int(value)
            continue
        cluster = labels.get("envoy_cluster_name", "")
        owner = owners.get(cluster)
        if owner is None:
            continue
        if name in _ACTIVE:
            in_flight[owner] += int(value)
        elif name == _COPIES and value:
            counters[owner, copies(labels["envoy_response_code"]), cluster] += value
        elif name == _RETRIES and value:
            counters[owner, "retries", cluster] += value
    return Reading(dict(counters), dict(in_flight), used)


_NAME_PREFIX = f"envoy_{_PREFIX}_"
#: Requests of Envoy's own count as internal. Of those, only mirrored requests have a status.
#: Clients' requests are external.
_COPIES = "envoy_cluster_internal_upstream_rq"
_RETRIES = "envoy_cluster_upstream_rq_retry"
_ACTIVE = ("envoy_cluster_upstream_rq_active", "envoy_cluster_upstream_rq_pending_active")
#: Nine lines of ten are buckets, so these have a pattern of their own.
_BUCKET = re.compile(rf'^{_NAME_PREFIX}duration_bucket\{{route="([^"]*)",le="([^"]*)"\}} (\d+)$', re.MULTILINE)
_LINE = re.compile(rf"^(?!{_NAME_PREFIX}duration_bucket)([a-z_]+)\{{(.*)\}} (\S+)$", re.MULTILINE)
_CODE = re.compile("[1-9][0-9]{2}")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_INDEX = {f"{round(bound * 1e6)}": index for index, bound in enumerate(BUCKETS_S)} | {"+Inf": len(BUCKETS_S)}


def _buckets(text: str) -> Iterator[tuple[str, str, int]]:
    """Route, bound, and the count of this bucket alone. Envoy's buckets include those below them,
    and come in order."""
    current, below = "", 0
    for route, bound, value in _BUCKET.findall(text):
        count = int(value)
        if route != current or count < below:
            current, below = route, 0
        if count != below:
            yield route, bound, count - below
        below = count


def _lines(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for match in _LINE.finditer(text):
        yield match[1], dict(_LABEL.findall(match[2])), float(match[3])


def _series_and_reason(route: str) -> tuple[Series, str]:
    """``images/blue/`` -> the series, and why the request was refused."""
    if not route:
        return NO_ENDPOINT, ""
    endpoint, deployment, reason = (*route.split("/", 2), "", "")[:3]
    return (endpoint, deployment), reason


def _field(name: str, labels: Mapping[str, str], reason: str) -> str | None:
    if name == "requests":
        # In gRPC a refusal has status 200, and says in a trailer what it is.
        refused = labels["code"] == "200" and reason in CODES
        return requests(str(CODES[reason]) if refused else labels["code"], reason or _reason(labels))
    if name == "failures":
        # A model that answers 424 by itself may write anything there.
        return model(labels["code"] if _CODE.fullmatch(labels["code"]) else "-")
    return {"received": "received", "sent": "sent", "duration_sum": "microseconds"}.get(name)


def _reason(labels: Mapping[str, str]) -> str:
    """Our reason for Envoy's flags, else for the status. Empty for a response of the model's."""
    code, flags = labels["code"], labels["flags"]
    for flag in flags.split(","):
        if flag == "UAEX" and code == "408":
            return "RequestTimeout"
        if flag in _REASONS:
            return _REASONS[flag]
    if flags in ("-", "") and labels["route"] and code != "413":
        return "ModelError" if code == "424" else ""
    return _REASONS.get(code, "" if flags == "-" else flags)


def _reasons_by_flag() -> dict[str, str]:
    """A flag, or a status without a flag -> the code of the response in ``local_replies``."""
    reasons = {"DC": CLIENT_GONE}
    for refusal in refusals():
        for key in (*refusal.flags, *([] if refusal.found is None else [str(refusal.found)])):
            reasons.setdefault(key, refusal.code)
    return reasons


_REASONS = _reasons_by_flag()


def _stat(name: str, **tags: str) -> dict[str, Any]:
    return {"name": name, "tags": [_ROUTE, *({"name": tag, "value_format": value} for tag, value in tags.items())]}


def _logger(condition: dict[str, Any], **stats: list[dict[str, Any]]) -> dict[str, Any]:
    scope = {"prefix": _PREFIX, "max_counters": _COUNTERS_MAX, "max_histograms": _HISTOGRAMS_MAX}
    return {
        "name": "envoy.access_loggers.stats",
        "filter": condition,
        "typed_config": {"@type": _CONFIG, "stats_scope": scope, **stats},
    }

"""What Envoy counts of each request, and how its answer is read.

Decides the statistics, their bounds, and which of Envoy's own are looked at. A request is counted under the name of
its route, ``<endpoint>/<deployment>/<code of a refusal>``, and under nothing that a client has said: there are as many
series as there are resources. Must not know when Envoy is asked, nor what becomes of the numbers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from amphitrite.dataplane.envoy.filters import credential_uses
from amphitrite.dataplane.envoy.filters.local_replies import local_reply
from amphitrite.dataplane.metrics.counters import BUCKETS_S, NOBODY, Reading, Series, Use, copies, le, model, requests

_CONFIG = "type.googleapis.com/envoy.extensions.access_loggers.stats.v3.Config"
_PREFIX = "amphitrite"
#: Further series are not counted. A thousand endpoints of two deployments have about 20,000 and 3,000.
_COUNTERS_MAX = 200_000
_HISTOGRAMS_MAX = 20_000
#: A request that found no route has none, and the tag is empty.
_ROUTE = {"name": "route", "value_format": "%ROUTE_NAME%"}

#: Of each cluster what no access log sees.
_OF_CLUSTER = r"cluster\.[^.]+\.(internal\.upstream_rq_\d\d\d|upstream_rq_retry|upstream_rq_(pending_)?active)"
#: What is asked of Envoy's ``/stats``.
FILTER = rf"^({_PREFIX}\.|({_OF_CLUSTER}|{credential_uses.STAT})$)"
#: What Envoy keeps beside that: the gauges that ``admin`` reads, and what says how the process as a whole is. All else
#: of clusters and routes, 130 statistics of each cluster, is not even made: most of the memory of a thousand endpoints.
_KEPT_PREFIXES = ("cluster_manager.", "http.scoring.downstream_", "listener_manager.", "overload.", "server.")
#: Envoy itself reads this one: until it is used, an unhealthy instance is looked at by ``no_traffic_interval``.
_KEPT_SUFFIX = ".upstream_cx_total"
#: What is said of a request whose client left before it was answered; Envoy writes 0 for the code.
CLIENT_GONE = "ClientClosedRequest"


def access_loggers() -> list[dict[str, Any]]:
    """Of the ``access_log`` list of a connection manager: those that count. Health checks are not counted."""
    received = {"stat": _stat("received"), "value_format": "%BYTES_RECEIVED%"}
    sent = {"stat": _stat("sent"), "value_format": "%BYTES_SENT%"}
    outcome = _stat("requests", code="%RESPONSE_CODE%", flags="%RESPONSE_FLAGS%")
    duration = {
        "stat": _stat("duration"),
        "unit": "Microseconds",
        "value_format": "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:us)%",
    }
    # The header is ours where the status is 424, and anything that a model likes elsewhere.
    failed = {"default_value": 424, "runtime_key": "amphitrite.stats.424"}
    failure = _stat("failures", code="%RESP(ms-azureml-model-error-statuscode):3%")
    return [
        _logger(
            {"not_health_check_filter": {}},
            counters=[{"stat": outcome, "value_fixed": 1}, received, sent],
            histograms=[duration],
        ),
        _logger(
            {"status_code_filter": {"comparison": {"op": "EQ", "value": failed}}},
            counters=[{"stat": failure, "value_fixed": 1}],
        ),
    ]


def stats_config() -> dict[str, Any]:
    """The ``StatsConfig`` of the bootstrap."""
    buckets = [round(bound * 1e6) for bound in BUCKETS_S]
    kept: list[dict[str, Any]] = [{"prefix": prefix} for prefix in (f"{_PREFIX}.", *_KEPT_PREFIXES)]
    kept += [
        {"suffix": _KEPT_SUFFIX},
        *({"safe_regex": {"regex": regex}} for regex in (_OF_CLUSTER, credential_uses.STAT)),
    ]
    return {
        "histogram_bucket_settings": [{"match": {"prefix": f"{_PREFIX}.duration"}, "buckets": buckets}],
        "stats_matcher": {"inclusion_list": {"patterns": kept}},
    }


def read(text: str, owners: Mapping[str, Series]) -> Reading:
    """What Envoy says to ``FILTER`` in Prometheus' format. ``owners``: whose each cluster is.

    Lines that are none of these are passed over: Envoy may say more than it was asked for.
    """
    counters: dict[tuple[Series, str, str], float] = defaultdict(float)
    in_flight: dict[Series, int] = defaultdict(int)
    used: dict[Use, int] = {}
    for route, bound, own in _buckets(text):
        counters[_counted(route)[0], le(_INDEX[bound]), ""] += own
    for name, labels, value in _lines(text):
        if name.startswith(_OURS):
            series, reason = _counted(labels["route"])
            field = _field(name.removeprefix(_OURS), labels, reason)
            if field is not None and value:
                counters[series, field, ""] += value
            continue
        if name == credential_uses.NAME and (use := credential_uses.of(labels)) is not None:
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


_OURS = f"envoy_{_PREFIX}_"
#: What Envoy itself sends counts as internal, and of that only copies carry a code; clients' requests are external.
_COPIES = "envoy_cluster_internal_upstream_rq"
_RETRIES = "envoy_cluster_upstream_rq_retry"
_ACTIVE = ("envoy_cluster_upstream_rq_active", "envoy_cluster_upstream_rq_pending_active")
#: Nine lines of ten are of buckets, and have a way of their own.
_BUCKET = re.compile(rf'^{_OURS}duration_bucket\{{route="([^"]*)",le="([^"]*)"\}} (\d+)$', re.MULTILINE)
_LINE = re.compile(rf"^(?!{_OURS}duration_bucket)([a-z_]+)\{{(.*)\}} (\S+)$", re.MULTILINE)
_CODE = re.compile("[1-9][0-9]{2}")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_INDEX = {f"{round(bound * 1e6)}": index for index, bound in enumerate(BUCKETS_S)} | {"+Inf": len(BUCKETS_S)}


def _buckets(text: str) -> Iterator[tuple[str, str, int]]:
    """Route, bound, and how many are in this bucket alone: Envoy's hold those below them, too, and come in order."""
    of, below = "", 0
    for route, bound, value in _BUCKET.findall(text):
        count = int(value)
        if route != of or count < below:
            of, below = route, 0
        if count != below:
            yield route, bound, count - below
        below = count


def _lines(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for match in _LINE.finditer(text):
        yield match[1], dict(_LABEL.findall(match[2])), float(match[3])


def _counted(route: str) -> tuple[Series, str]:
    """``images/blue/`` -> whose request it was, and why it was refused."""
    if not route:
        return NOBODY, ""
    endpoint, deployment, reason = (*route.split("/", 2), "", "")[:3]
    return (endpoint, deployment), reason


def _field(name: str, labels: Mapping[str, str], reason: str) -> str | None:
    if name == "requests":
        return requests(labels["code"], reason or _reason(labels))
    if name == "failures":
        # A model that answers 424 by itself may put anything there.
        return model(labels["code"] if _CODE.fullmatch(labels["code"]) else "-")
    return {"received": "received", "sent": "sent", "duration_sum": "microseconds"}.get(name)


def _reason(labels: Mapping[str, str]) -> str:
    """Our own word for what Envoy says with its flags, else with the status; empty for an answer of the model's."""
    code, flags = labels["code"], labels["flags"]
    for flag in flags.split(","):
        if flag in _WORDS:
            return _WORDS[flag]
    if flags in ("-", "") and labels["route"] and code != "413":
        return "ModelError" if code == "424" else ""
    return _WORDS.get(code, "" if flags == "-" else flags)


def _words() -> dict[str, str]:
    """A flag, or a status where there is none -> the code of the answer that ``replies`` gives for it."""
    found = {"DC": CLIENT_GONE}
    for mapper in local_reply()["mappers"]:
        parts = mapper["filter"].get("and_filter", {}).get("filters", [mapper["filter"]])
        word = mapper["body_format_override"]["json_format"]["error"]["code"]
        for part in parts:
            for flag in part.get("response_flag_filter", {}).get("flags", ()):
                found.setdefault(flag, word)
            if "status_code_filter" in part:
                found.setdefault(str(part["status_code_filter"]["comparison"]["value"]["default_value"]), word)
    return found


_WORDS = _words()


def _stat(name: str, **tags: str) -> dict[str, Any]:
    return {"name": name, "tags": [_ROUTE, *({"name": tag, "value_format": value} for tag, value in tags.items())]}


def _logger(condition: dict[str, Any], **stats: list[dict[str, Any]]) -> dict[str, Any]:
    scope = {"prefix": _PREFIX, "max_counters": _COUNTERS_MAX, "max_histograms": _HISTOGRAMS_MAX}
    return {
        "name": "envoy.access_loggers.stats",
        "filter": condition,
        "typed_config": {"@type": _CONFIG, "stats_scope": scope, **stats},
    }

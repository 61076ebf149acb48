"""The demand on single deployments, among what Envoy counts.

Decides which statistics tell it, and a filter that matches little else: Envoy is asked each second.
Must not know when Envoy is asked, nor what becomes of the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from amphitrite.dataplane.envoy.filters import request_stats
from amphitrite.dataplane.metrics.counters import Series
from amphitrite.dataplane.metrics.demand import Reading

#: The longest filter, in characters. Beyond it everything of these kinds is asked for.
_FILTER_MAX = 8_000
_ALL = rf"^(amphitrite\.({request_stats.BUSY}|requests)\.|cluster\.[^.]+\.upstream_rq_(pending_)?active$)"
_BUSY = re.compile(rf'^envoy_amphitrite_{request_stats.BUSY}\{{route="([^"/]*)/([^"/]*)"\}} (\d+)$', re.MULTILINE)


def pattern(owners: Mapping[str, Series], watched: Sequence[Series]) -> str:
    """The filter for ``watched``. ``owners``: the deployment of each of Envoy's clusters."""
    routes = "|".join(re.escape("/".join(series)) for series in sorted(watched))
    clusters = "|".join(re.escape(cluster) for cluster, series in sorted(owners.items()) if series in watched)
    counted = rf"amphitrite\.({request_stats.BUSY}|requests)\.route\.({routes})(\.|$)"
    narrow = rf"^({counted}|cluster\.({clusters})\.upstream_rq_(pending_)?active$)"
    return narrow if len(narrow) <= _FILTER_MAX else _ALL


def read(text: str, owners: Mapping[str, Series], watched: Sequence[Series]) -> dict[Series, Reading]:
    """The numbers of each of ``watched``. ``text``: Prometheus' text format."""
    found = request_stats.read(text, owners)
    busy = {(endpoint, deployment): int(value) / 1e6 for endpoint, deployment, value in _BUSY.findall(text)}
    answered, refused = dict.fromkeys(watched, 0.0), dict.fromkeys(watched, 0.0)
    for (series, name, _), value in found.counters.items():
        kind, _, outcome = name.partition("/")
        if kind != "requests" or series not in answered:
            continue
        code, _, reason = outcome.partition("/")
        if reason == request_stats.TOO_MANY or code == "429":
            refused[series] += value
        elif code != "0":
            answered[series] += value
    return {
        series: Reading(found.in_flight.get(series, 0), 0, answered[series], busy.get(series, 0.0), refused[series])
        for series in watched
    }

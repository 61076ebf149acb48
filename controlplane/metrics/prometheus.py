"""Metrics of the proxies in Prometheus' text format.

Decides names, labels and help texts. They are an interface: a published metric keeps its name.
Pure. Must not know where the counters come from or who may read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from amphitrite.controlplane.core.scaling.scales import InstanceCounts
from amphitrite.controlplane.store.reports.key_uses import KeyUse
from amphitrite.dataplane.metrics.counters import BUCKETS_S, Series, Totals

#: Every scraper reads version 0.0.4 of the text format.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: The label value for no endpoint or no deployment; no name equals it.
NONE = "-"

_INSTANCES = {
    "wanted": "Instances that a deployment is to have now.",
    "ready": "Instances of a deployment that are ready.",
    "recommended": "Instances that a scaler in mode recommend would set.",
}
#: One line: the suffix of the family's name, its labels, its value.
_Sample = tuple[str, Mapping[str, str], float]
_Fields = Mapping[str, float]


def render(
    proxies: Mapping[str, Totals], keys: Sequence[KeyUse], version: str, instances: Sequence[InstanceCounts] = ()
) -> str:
    """All families. ``proxies``: the counters of each proxy, by its agent's id."""
    lines = [
        *_head("amphitrite_build_info", "gauge", "The version of the control plane that answers."),
        _line("amphitrite_build_info", {"version": version}, 1),
    ]
    for name, kind, description, samples in _FAMILIES:
        lines += _head(name, kind, description)
        for proxy, totals in sorted(proxies.items()):
            for series, fields in sorted(totals.counters.items()):
                owner = {"proxy": proxy, "endpoint": series[0] or NONE, "deployment": series[1] or NONE}
                lines += (_line(name + end, {**owner, **labels}, n) for end, labels, n in samples(series, fields))
    for name, description, gauge in _GAUGES:
        lines += _head(name, "gauge", description)
        for proxy, totals in sorted(proxies.items()):
            for series, n in sorted(gauge(totals).items()):
                lines.append(_line(name, {"proxy": proxy, "endpoint": series[0], "deployment": series[1]}, n))
    name = "amphitrite_answer_difference"
    lines += _head(name, "gauge", "Largest difference between the numbers of a tensor and those of another deployment.")
    for proxy, totals in sorted(proxies.items()):
        for series, differences in sorted(totals.differences.items()):
            labels = {"proxy": proxy, "endpoint": series[0], "deployment": series[1]}
            lines += (_line(name, {**labels, "tensor": one}, n) for one, n in sorted(differences.items()))
    name = "amphitrite_key_last_used_timestamp_seconds"
    lines += _head(name, "gauge", "The minute in which a key, or any token, last authorized a request.")
    lines += (_line(name, {"endpoint": use.endpoint, "key": use.key}, use.at) for use in keys)
    for kind, description in _INSTANCES.items():
        lines += _head(name := f"amphitrite_instances_{kind}", "gauge", description)
        for one in instances:
            labels = {"endpoint": one.endpoint, "deployment": one.deployment}
            if (number := getattr(one, kind)) is not None:
                lines.append(_line(name, labels, number))
    return "\n".join(lines) + "\n"


def _split(prefix: str, *labels: str) -> Callable[[Series, _Fields], Iterator[_Sample]]:
    """The values of fields ``prefix/VALUE/...``, with each part as a label."""

    def samples(series: Series, fields: _Fields) -> Iterator[_Sample]:
        for name, n in sorted(fields.items()):
            first, *values = name.split("/")
            if first == prefix:
                yield "", dict(zip(labels, values, strict=True)), n

    return samples


def _single(field: str) -> Callable[[Series, _Fields], Iterator[_Sample]]:
    def samples(series: Series, fields: _Fields) -> Iterator[_Sample]:
        if field in fields:
            yield "", {}, fields[field]

    return samples


def _durations(series: Series, fields: _Fields) -> Iterator[_Sample]:
    """Of requests with a deployment: the latency of refused requests says nothing about a model."""
    if not series[1] or "microseconds" not in fields:
        return
    total = 0.0
    for index, bound in enumerate((*BUCKETS_S, None)):
        total += fields.get(f"le/{index}", 0)
        yield "_bucket", {"le": "+Inf" if bound is None else f"{bound:g}"}, total
    yield "_sum", {}, fields["microseconds"] / 1e6
    yield "_count", {}, total


_FAMILIES: Sequence[tuple[str, str, str, Callable[[Series, _Fields], Iterator[_Sample]]]] = (
    (
        "amphitrite_requests_total",
        "counter",
        "Requests by status code; reason says why no model answered.",
        _split("requests", "code", "reason"),
    ),
    (
        "amphitrite_model_failures_total",
        "counter",
        "Requests answered 424, by the model's own status code.",
        _split("model", "model_code"),
    ),
    (
        "amphitrite_request_duration_seconds",
        "histogram",
        "Time from the first byte of a request to the last byte of its response.",
        _durations,
    ),
    ("amphitrite_request_bytes_total", "counter", "Bytes of request bodies.", _single("received")),
    ("amphitrite_response_bytes_total", "counter", "Bytes of response bodies.", _single("sent")),
    ("amphitrite_retries_total", "counter", "Requests retried on another instance.", _single("retries")),
    (
        "amphitrite_mirrored_requests_total",
        "counter",
        "Mirrored requests by status code of the discarded response.",
        _split("copies", "code"),
    ),
    (
        "amphitrite_compared_answers_total",
        "counter",
        "Answers compared with those of another deployment, by outcome.",
        _split("answers", "outcome"),
    ),
)

_GAUGES: Sequence[tuple[str, str, Callable[[Totals], Mapping[Series, int]]]] = (
    (
        "amphitrite_requests_in_flight",
        "Requests in flight at a deployment's instances, including mirrored ones.",
        lambda totals: totals.in_flight,
    ),
    (
        "amphitrite_requests_waiting",
        "Requests that wait for a place at a deployment (max_queue_wait_ms); none: no line.",
        lambda totals: totals.waiting,
    ),
)


def _head(name: str, kind: str, description: str) -> list[str]:
    return [f"# HELP {name} {description}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {int(value) if value == int(value) else repr(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

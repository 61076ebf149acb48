"""The proxies' numbers in Prometheus' text format.

Decides the names, the labels and their help, which are an interface: what is once told keeps its name. Pure. Must not
know how the numbers come or who may read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from amphitrite.controlplane.store.reports.key_uses import KeyUse
from amphitrite.dataplane.metrics.counters import BUCKETS_S, Series, Totals

#: Version 0.0.4 is what every scraper reads.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: The label of what no endpoint or no deployment had; no name is that.
NONE = "-"

#: One line: what follows the family's name, its labels, its value.
_Sample = tuple[str, Mapping[str, str], float]
_Fields = Mapping[str, float]


def render(proxies: Mapping[str, Totals], keys: Sequence[KeyUse], version: str) -> str:
    """All families; ``proxies``: by the id of each agent, what its proxy has counted."""
    lines = [
        *_head("amphitrite_build_info", "gauge", "The version of the control plane that answers."),
        _line("amphitrite_build_info", {"version": version}, 1),
    ]
    for name, kind, about, samples in _FAMILIES:
        lines += _head(name, kind, about)
        for proxy, totals in sorted(proxies.items()):
            for series, fields in sorted(totals.counters.items()):
                owner = {"proxy": proxy, "endpoint": series[0] or NONE, "deployment": series[1] or NONE}
                lines += (_line(name + end, {**owner, **labels}, n) for end, labels, n in samples(series, fields))
    name = "amphitrite_requests_in_flight"
    lines += _head(name, "gauge", "Requests at a deployment's instances now, copies included.")
    for proxy, totals in sorted(proxies.items()):
        for series, n in sorted(totals.in_flight.items()):
            lines.append(_line(name, {"proxy": proxy, "endpoint": series[0], "deployment": series[1]}, n))
    name = "amphitrite_key_last_used_timestamp_seconds"
    lines += _head(name, "gauge", "The minute in which a key, or any token, has last let a request in.")
    lines += (_line(name, {"endpoint": use.endpoint, "key": use.key}, use.at) for use in keys)
    return "\n".join(lines) + "\n"


def _split(prefix: str, *labels: str) -> Callable[[Series, _Fields], Iterator[_Sample]]:
    """Of fields ``prefix/VALUE/…``, each value under its label."""

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
    """Of requests that had a deployment: how fast others are refused says nothing of a model."""
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
        "Requests by the code of the answer; reason says why it was not a model that answered.",
        _split("requests", "code", "reason"),
    ),
    (
        "amphitrite_model_failures_total",
        "counter",
        "Requests answered 424, by the model's own code.",
        _split("model", "model_code"),
    ),
    (
        "amphitrite_request_duration_seconds",
        "histogram",
        "From the first byte of a request to the last byte of its answer.",
        _durations,
    ),
    ("amphitrite_request_bytes_total", "counter", "Bytes of requests' bodies.", _single("received")),
    ("amphitrite_response_bytes_total", "counter", "Bytes of answers' bodies.", _single("sent")),
    ("amphitrite_retries_total", "counter", "Requests sent again, to another instance.", _single("retries")),
    (
        "amphitrite_mirrored_requests_total",
        "counter",
        "Copies that mirroring has sent to a deployment, by the code of the answer that nobody saw.",
        _split("copies", "code"),
    ),
)


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {int(value) if value == int(value) else repr(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

"""The counters of one proxy: their names, their sums and their wire form.

Decides the fields of a series, and that no counter ever decreases. A proxy process counts from zero
after each start, so its increases are added up. Pure. Must not know a proxy's own names, files or
HTTP.

A *series* is (endpoint, deployment). The deployment is empty for requests that were refused before
one was chosen. Both are empty for requests to no endpoint.

Its *fields* are ``requests/CODE/REASON``, ``model/CODE``, ``le/INDEX`` (of ``BUCKETS_S``, not
cumulative), ``microseconds``, ``received`` and ``sent`` (bytes), ``retries``, ``copies/CODE`` and
those of ``answer_counts``. The control plane adds ``usage/INSTANCE/WHAT`` of instances (its
``metrics.usage_counters``).

A *credential* of an endpoint is a key, by its fingerprint, or ``TOKEN``: any token.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from amphitrite.dataplane.metrics.answer_counts import (
    FIELDS,
    TENSOR,
    UNBOUNDED,
    Answers,
    Differences,
    largest,
)
from amphitrite.dataplane.table.routing_table import Route

Series = tuple[str, str]
#: The series of requests to an endpoint that does not exist.
NO_ENDPOINT: Series = ("", "")

#: Upper bounds of latency, in seconds. One more bucket is above them all.
BUCKETS_S = (
    *(0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 180.0),
)
#: Seconds for which a series is still reported after it has left the table, so that whoever asks
#: now and then gets its last values.
KEEP_S = 900.0

FIELD = re.compile(
    r"requests/[0-9]{1,3}/[A-Za-z,-]{0,60}|model/([0-9]{3}|-)|le/[0-9]{1,2}"
    r"|microseconds|received|sent|retries|copies/[0-9]{3}"
    r"|usage/[a-z0-9.-]{1,253}/(cpu|memory|samples)|" + "|".join(FIELDS)
)
NAME = re.compile("[A-Za-z0-9-]{0,64}")
#: Tokens are many and expire by themselves: all of one endpoint count as one credential.
TOKEN = "token"
CREDENTIAL = re.compile(f"{TOKEN}|[0-9a-f]{{16}}")
#: (endpoint, credential)
Use = tuple[str, str]


def requests(code: str, reason: str) -> str:
    """The field of a response. ``code`` 0: the client has left. ``reason``: why the model did not
    answer; empty where it did."""
    return f"requests/{code}/{reason}"


def model(code: str) -> str:
    """The field of a model's own status where the response's is 424; ``-``: it is not a status."""
    return f"model/{code}"


def le(index: int) -> str:
    return f"le/{index}"


def copies(code: str) -> str:
    """The field of mirrored requests, by the status of their response, which nobody sees."""
    return f"copies/{code}"


def credentials(route: Route) -> tuple[str, ...]:
    """The credentials that ``route`` accepts."""
    return tuple(key.fingerprint() for key in route.credentials) if route.auth == "key" else (TOKEN,)


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of one proxy process, since its start.

    - ``counters``: by series, field and, for a field of a cluster, the cluster. The cluster of a
      deployment's former instances is removed, and its counters with it.
    - ``uses``: how many requests each credential has let in.
    - ``waiting``: how many requests wait for a place; without those that none waits for.
    """

    counters: Mapping[tuple[Series, str, str], float]
    in_flight: Mapping[Series, int]
    uses: Mapping[Use, int] = field(default_factory=dict)
    waiting: Mapping[Series, int] = field(default_factory=dict)


Numbers = Mapping[Series, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Totals:
    """What a proxy has counted since ``began`` (seconds since the epoch), over all its processes.

    - ``used``: when a reading last showed that the credential had let in a request since the
      reading before.
    - ``differences``: the largest difference of each tensor between the answers of a deployment and
      those that it is compared with. It ends with the comparison.
    """

    began: float
    counters: Numbers = field(default_factory=dict)
    in_flight: Mapping[Series, int] = field(default_factory=dict)
    used: Mapping[Use, float] = field(default_factory=dict)
    waiting: Mapping[Series, int] = field(default_factory=dict)
    differences: Mapping[Series, Differences] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ledger:
    """``totals``, and what is needed to continue them.

    - ``process``: the process of ``last`` and ``uses``, as (pid, start time).
    - ``last``, ``uses``: its newest reading.
    - ``removed``: since when a series is no longer in the table, in seconds since the epoch.
    """

    totals: Totals
    process: tuple[int, float] | None = None
    last: Mapping[tuple[Series, str, str], float] = field(default_factory=dict)
    removed: Mapping[Series, float] = field(default_factory=dict)
    uses: Mapping[Use, int] = field(default_factory=dict)


def add_reading(
    ledger: Ledger,
    process: tuple[int, float],
    reading: Reading,
    current: Collection[Series],
    now: float,
    accepted: Collection[Use] = (),
) -> Ledger:
    """The ledger after ``reading``. ``now``: seconds since the epoch.

    ``current``, ``accepted``: the series and credentials of the table in force. Others end after
    ``KEEP_S``; a credential's time begins with its last use.
    """
    same_process = process == ledger.process
    last = ledger.last if same_process else {}
    active = {*current, NO_ENDPOINT}
    removed = {series: ledger.removed.get(series, now) for series in ledger.totals.counters if series not in active}
    removed = {series: since for series, since in removed.items() if now - since <= KEEP_S}
    counters = {s: dict(fields) for s, fields in ledger.totals.counters.items() if s in active or s in removed}
    for (series, name, cluster), value in reading.counters.items():
        if series not in active and series not in removed:
            continue
        before = last.get((series, name, cluster), 0.0)
        fields = counters.setdefault(series, {})
        # A value below the last one was counted from zero.
        fields[name] = fields.get(name, 0.0) + (value - before if value >= before else value)
    in_flight = {series: n for series, n in reading.in_flight.items() if series in counters or n}
    # Without an earlier reading of this process, a use counts as new. A time that is too late is
    # better than one that is too early: it decides whether a key can be removed.
    uses = ledger.uses if same_process else {}
    used = {use: at for use, at in ledger.totals.used.items() if use in accepted or now - at <= KEEP_S}
    used |= {use: now for use, n in reading.uses.items() if n != uses.get(use, 0)}
    differences = ledger.totals.differences
    totals = Totals(ledger.totals.began, counters, in_flight, used, reading.waiting, differences)
    return Ledger(totals, process, reading.counters, removed, reading.uses)


def add_answers(ledger: Ledger, answers: Mapping[Series, Answers], compared: Collection[Series]) -> Ledger:
    """The ledger with what was counted of ``answers`` since the last call. ``compared``: the series
    whose answers are compared now. The counts stay as long as the series."""
    if not answers and not ledger.totals.differences:
        return ledger
    counters = {series: dict(fields) for series, fields in ledger.totals.counters.items()}
    for series, counted in answers.items():
        fields = counters.setdefault(series, {})
        for name, n in counted.counts.items():
            fields[name] = fields.get(name, 0.0) + n
    before = ledger.totals.differences
    differences = {
        series: largest(before.get(series, {}), answers[series].differences if series in answers else {})
        for series in compared
        if series in before or series in answers
    }
    return replace(ledger, totals=replace(ledger.totals, counters=counters, differences=differences))


def totals_to_json(totals: Totals) -> dict[str, Any]:
    """The wire form. Numbers are integers where possible."""
    return {
        "began": totals.began,
        "counters": _nested(totals.counters),
        "in_flight": _nested(totals.in_flight),
        "used": _nested(totals.used),
        # A control plane of an earlier release does not know it.
        **({"waiting": _nested(totals.waiting)} if totals.waiting else {}),
        # What nobody asks for changes no byte of a report.
        **({"differences": _exact(totals.differences)} if totals.differences else {}),
    }


def totals_from_json(value: Mapping[str, Any]) -> Totals:
    """The inverse. Raises ValueError, with a sentence, for anything else: the value comes from
    another process."""
    counters = {
        series: {_match(FIELD, name): _number(number) for name, number in _object(fields).items()}
        for series, fields in _flat(value.get("counters"))
    }
    in_flight = {series: int(_number(number)) for series, number in _flat(value.get("in_flight"))}
    used = {
        (endpoint, _match(CREDENTIAL, credential)): _number(at)
        for (endpoint, credential), at in _flat(value.get("used"))
    }
    waiting = {series: int(_number(number)) for series, number in _flat(value.get("waiting", {}))}
    differences = {
        series: {_tensor(name): _difference(size) for name, size in _object(sizes).items()}
        for series, sizes in _flat(value.get("differences", {}))
    }
    return Totals(_number(value.get("began")), counters, in_flight, used, waiting, differences)


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    return {
        "totals": totals_to_json(ledger.totals),
        "process": ledger.process,
        "last": [[*series, name, cluster, _rounded(n)] for (series, name, cluster), n in ledger.last.items()],
        "gone": [[*series, since] for series, since in ledger.removed.items()],
        "uses": [[*use, n] for use, n in ledger.uses.items()],
    }


def ledger_from_json(value: Mapping[str, Any]) -> Ledger:
    """The inverse. Raises ValueError, KeyError or TypeError for anything else."""
    process = value["process"]
    return Ledger(
        totals_from_json(value["totals"]),
        None if process is None else (int(process[0]), float(process[1])),
        {((endpoint, deployment), name, cluster): n for endpoint, deployment, name, cluster, n in value["last"]},
        {(endpoint, deployment): since for endpoint, deployment, since in value["gone"]},
        {(endpoint, credential): n for endpoint, credential, n in value.get("uses", ())},
    )


def _nested(of: Mapping[Series, Any]) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for (endpoint, deployment), content in of.items():
        short = {k: _rounded(n) for k, n in content.items()} if isinstance(content, Mapping) else content
        nested.setdefault(endpoint, {})[deployment] = short
    return nested


def _exact(of: Mapping[Series, Differences]) -> dict[str, dict[str, dict[str, float]]]:
    nested: dict[str, dict[str, dict[str, float]]] = {}
    for (endpoint, deployment), sizes in of.items():
        nested.setdefault(endpoint, {})[deployment] = dict(sizes)
    return nested


def _tensor(name: str) -> str:
    if TENSOR.fullmatch(name) is None:
        raise ValueError(f"{name[:80]!r} is not a name of a tensor")
    return name


def _difference(value: object) -> float:
    size = _number(value)
    if size > UNBOUNDED:
        raise ValueError(f"{size!r} is not a difference")
    return size


def _flat(value: object) -> list[tuple[Series, Any]]:
    return [
        ((_match(NAME, endpoint), _match(NAME, deployment)), content)
        for endpoint, deployments in _object(value).items()
        for deployment, content in _object(deployments).items()
    ]


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"an object is needed, found {type(value).__name__}")
    return value


def _match(pattern: re.Pattern[str], name: str) -> str:
    if pattern.fullmatch(name) is None:
        raise ValueError(f"{name[:80]!r} is not a name of a series or a field")
    return name


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        raise ValueError(f"{str(value)[:40]!r} is not a number from 0")
    return value


def _rounded(value: float) -> float:
    return int(value) if value == int(value) else round(value, 3)

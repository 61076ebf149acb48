"""The numbers of one proxy: what they are called, how they add up, and how they travel.

Decides the fields of a series and that none ever goes back: Envoy counts from nothing after each start, so what counts
is how much further it has counted. Pure. Must not know Envoy's names, files or HTTP.

A *series* is (endpoint, deployment): the deployment is empty for what was refused before one was chosen, both are for
requests to no endpoint. Its *fields* are ``requests/CODE/REASON``, ``model/CODE``, ``le/INDEX`` (of ``BUCKETS_S``, not
cumulative), ``microseconds``, ``received``, ``sent``, ``retries`` and ``copies/CODE``.

A *credential* of an endpoint is a key, by its fingerprint, or ``TOKEN``: any token.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from amphitrite.dataplane.table.routing_table import Route

Series = tuple[str, str]
#: The series of requests to an endpoint that there is not.
NOBODY: Series = ("", "")

#: Upper bounds of latency, in seconds; one more bucket is above them all.
BUCKETS_S = (
    *(0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 180.0),
)
#: What has left the table is still told for so long, so that whoever asks now and then hears its last numbers.
KEEP_S = 900.0

FIELD = re.compile(
    r"requests/[0-9]{1,3}/[A-Za-z,-]{0,60}|model/([0-9]{3}|-)|le/[0-9]{1,2}"
    r"|microseconds|received|sent|retries|copies/[0-9]{3}"
)
NAME = re.compile("[A-Za-z0-9-]{0,64}")
#: Tokens end by themselves and are many: all of one endpoint count as one credential.
TOKEN = "token"
CREDENTIAL = re.compile(f"{TOKEN}|[0-9a-f]{{16}}")
#: (endpoint, credential)
Use = tuple[str, str]


def requests(code: str, reason: str) -> str:
    """``code`` 0: the client had gone. ``reason``: why it was not the model that answered; empty where it was."""
    return f"requests/{code}/{reason}"


def model(code: str) -> str:
    """A model's own code where the answer's is 424; ``-`` for one that is none."""
    return f"model/{code}"


def le(index: int) -> str:
    return f"le/{index}"


def copies(code: str) -> str:
    """Mirrored requests by the code of their answer, which nobody sees."""
    return f"copies/{code}"


def credentials(route: Route) -> tuple[str, ...]:
    """Those that ``route`` accepts."""
    return tuple(key.fingerprint() for key in route.credentials) if route.auth == "key" else (TOKEN,)


@dataclass(frozen=True, slots=True)
class Reading:
    """What Envoy says at one moment, since its start. ``counters``: by series, field and, for what is a cluster's, the
    cluster: that of a deployment's former instances goes away, and its numbers with it. ``uses``: how many requests
    each credential has let in."""

    counters: Mapping[tuple[Series, str, str], float]
    in_flight: Mapping[Series, int]
    uses: Mapping[Use, int] = field(default_factory=dict)


Numbers = Mapping[Series, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Totals:
    """What a proxy has counted since ``began`` (seconds since the epoch), whatever became of its Envoys. ``used``: when
    it was last seen that a credential had let a request in since Envoy had been asked before."""

    began: float
    counters: Numbers = field(default_factory=dict)
    in_flight: Mapping[Series, int] = field(default_factory=dict)
    used: Mapping[Use, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ledger:
    """``totals``, and what is needed to go on. ``process``: whose ``last`` and ``uses`` are, (pid, start). ``gone``:
    since when a series is no longer in the table."""

    totals: Totals
    process: tuple[int, float] | None = None
    last: Mapping[tuple[Series, str, str], float] = field(default_factory=dict)
    gone: Mapping[Series, float] = field(default_factory=dict)
    uses: Mapping[Use, int] = field(default_factory=dict)


def advance(
    ledger: Ledger,
    process: tuple[int, float],
    reading: Reading,
    known: Collection[Series],
    now: float,
    accepted: Collection[Use] = (),
) -> Ledger:
    """The ledger after ``reading``. ``known``, ``accepted``: the series and credentials of the table in force; others
    end ``KEEP_S`` later, a credential after its last use."""
    same = process == ledger.process
    last = ledger.last if same else {}
    present = {*known, NOBODY}
    gone = {series: ledger.gone.get(series, now) for series in ledger.totals.counters if series not in present}
    gone = {series: since for series, since in gone.items() if now - since <= KEEP_S}
    counters = {s: dict(fields) for s, fields in ledger.totals.counters.items() if s in present or s in gone}
    for (series, name, cluster), value in reading.counters.items():
        if series not in present and series not in gone:
            continue
        before = last.get((series, name, cluster), 0.0)
        fields = counters.setdefault(series, {})
        # A number below the last one was counted from nothing.
        fields[name] = fields.get(name, 0.0) + (value - before if value >= before else value)
    in_flight = {series: n for series, n in reading.in_flight.items() if series in counters or n}
    # Too late is better than too early where nobody knows what was counted before: it is about taking a key away.
    uses = ledger.uses if same else {}
    used = {use: at for use, at in ledger.totals.used.items() if use in accepted or now - at <= KEEP_S}
    used |= {use: now for use, n in reading.uses.items() if n != uses.get(use, 0)}
    totals = Totals(ledger.totals.began, counters, in_flight, used)
    return Ledger(totals, process, reading.counters, gone, reading.uses)


def totals_to_json(totals: Totals) -> dict[str, Any]:
    """Numbers are whole where they can be."""
    return {
        "began": totals.began,
        "counters": _nested(totals.counters),
        "in_flight": _nested(totals.in_flight),
        "used": _nested(totals.used),
    }


def totals_from_json(value: Mapping[str, Any]) -> Totals:
    """The inverse. Raises ValueError, with a sentence, for anything else: it comes from another process."""
    counters = {
        series: {_checked(FIELD, name): _number(number) for name, number in _object(fields).items()}
        for series, fields in _flat(value.get("counters"))
    }
    in_flight = {series: int(_number(number)) for series, number in _flat(value.get("in_flight"))}
    used = {
        (endpoint, _checked(CREDENTIAL, credential)): _number(at)
        for (endpoint, credential), at in _flat(value.get("used"))
    }
    return Totals(_number(value.get("began")), counters, in_flight, used)


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    return {
        "totals": totals_to_json(ledger.totals),
        "process": ledger.process,
        "last": [[*series, name, cluster, _short(n)] for (series, name, cluster), n in ledger.last.items()],
        "gone": [[*series, since] for series, since in ledger.gone.items()],
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
        short = {k: _short(n) for k, n in content.items()} if isinstance(content, Mapping) else content
        nested.setdefault(endpoint, {})[deployment] = short
    return nested


def _flat(value: object) -> list[tuple[Series, Any]]:
    return [
        ((_checked(NAME, endpoint), _checked(NAME, deployment)), content)
        for endpoint, deployments in _object(value).items()
        for deployment, content in _object(deployments).items()
    ]


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"an object is needed, found {type(value).__name__}")
    return value


def _checked(pattern: re.Pattern[str], name: str) -> str:
    if pattern.fullmatch(name) is None:
        raise ValueError(f"{name[:80]!r} is not a name of a series or a field")
    return name


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        raise ValueError(f"{str(value)[:40]!r} is not a number from 0")
    return value


def _short(value: float) -> float:
    return int(value) if value == int(value) else round(value, 3)

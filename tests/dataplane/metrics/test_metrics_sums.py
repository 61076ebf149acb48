"""What Envoy says as numbers, and that their sum only grows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from amphitrite.dataplane.envoy.filters import request_stats
from amphitrite.dataplane.envoy.xds.metrics_collector import MetricsCollector
from amphitrite.dataplane.metrics.answer_counts import COMPARED, UNBOUNDED, Answers, tensor_name
from amphitrite.dataplane.metrics.counters import (
    BUCKETS_S,
    KEEP_S,
    NO_ENDPOINT,
    TOKEN,
    Ledger,
    Reading,
    Series,
    Totals,
    Use,
    add_answers,
    add_reading,
    ledger_from_json,
    ledger_to_json,
    totals_from_json,
    totals_to_json,
)
from amphitrite.dataplane.table.routing_table import RoutingTable

BLUE: Series = ("images", "blue")
IMAGES_KEY: Use = ("images", "0123456789abcdef")
FIRST, SECOND = (7, 1.0), (8, 2.0)


def reading(of: Mapping[tuple[Series, str, str], float], in_flight: Mapping[Series, int] | None = None) -> Reading:
    return Reading(of, in_flight or {})


@dataclass(frozen=True)
class Row:
    """Readings of one series' field in turn, (process, what each cluster says), and the sums that
    they make."""

    name: str
    said: tuple[tuple[tuple[int, float], Mapping[str, float]], ...]
    sums: tuple[float, ...]


@pytest.mark.parametrize(
    "row",
    [
        Row("grows", ((FIRST, {"": 3}), (FIRST, {"": 3}), (FIRST, {"": 5})), (3, 3, 5)),
        Row("another Envoy", ((FIRST, {"": 3}), (SECOND, {"": 2}), (SECOND, {"": 4})), (3, 5, 7)),
        Row("another Envoy that has counted further", ((FIRST, {"": 3}), (SECOND, {"": 9})), (3, 12)),
        Row("begun anew in one Envoy", ((FIRST, {"": 3}), (FIRST, {"": 1})), (3, 4)),
        Row("dropped and back", ((FIRST, {"": 3}), (FIRST, {}), (FIRST, {"": 2})), (3, 3, 5)),
        Row(
            "the next instances", ((FIRST, {"a": 3}), (FIRST, {"a": 4, "b": 1}), (FIRST, {"b": 2}), (SECOND, {"b": 1})),
            (3, 5, 6, 7),
        ),
    ],
    ids=lambda row: row.name,
)  # fmt: skip
def test_a_sum_never_goes_back(row: Row) -> None:
    ledger, found = Ledger(Totals(1.0)), []
    for process, said in row.said:
        now = reading({(BLUE, "retries", cluster): n for cluster, n in said.items()})
        # Each time as if by a new agent.
        ledger = ledger_from_json(
            json.loads(json.dumps(ledger_to_json(add_reading(ledger, process, now, {BLUE}, 5.0))))
        )
        found.append(ledger.totals.counters[BLUE]["retries"])
    assert tuple(found) == row.sums


def test_what_left_the_table_is_told_for_a_while_and_begins_anew_afterwards() -> None:
    envoy = reading({(BLUE, "sent", ""): 5, (NO_ENDPOINT, "sent", ""): 1})
    ledger = add_reading(Ledger(Totals(1.0)), FIRST, envoy, {BLUE}, 100.0)
    for now, there in ((101.0, True), (101.0 + KEEP_S, True), (102.0 + KEEP_S, False)):
        ledger = add_reading(ledger, FIRST, envoy, (), now)
        assert (BLUE in ledger.totals.counters) == there and NO_ENDPOINT in ledger.totals.counters
    # Envoy still has its number: of a deployment of this name that comes back, only what is new
    # counts.
    ledger = add_reading(ledger, FIRST, reading({(BLUE, "sent", ""): 7}), {BLUE}, 2000.0)
    assert ledger.totals.counters[BLUE] == {"sent": 2}


def test_nothing_is_told_of_what_the_table_never_had() -> None:
    ledger = add_reading(Ledger(Totals(1.0)), FIRST, reading({(BLUE, "sent", ""): 5}), (), 1.0)
    assert ledger.totals.counters == {}


def test_a_key_was_used_when_its_count_was_seen_to_grow() -> None:
    """And what was said of one that is no longer accepted ends, but not as long as nobody may have
    heard it."""
    other = ("images", "f" * 16)
    ledger, seen = Ledger(Totals(1.0)), []
    for now, process, n in ((10.0, FIRST, 3), (15.0, FIRST, 3), (20.0, FIRST, 4), (25.0, SECOND, 0), (30.0, SECOND, 4)):
        uses = {IMAGES_KEY: n} if n else {}
        ledger = add_reading(ledger, process, Reading({}, {}, uses), (), now, {IMAGES_KEY, other})
        ledger = ledger_from_json(json.loads(json.dumps(ledger_to_json(ledger))))
        seen.append(ledger.totals.used)
    assert seen == [{IMAGES_KEY: at} for at in (10.0, 10.0, 20.0, 20.0, 30.0)]
    for now, there in ((30.0 + 2 * KEEP_S, True), (30.0 + 2 * KEEP_S, False)):
        ledger = add_reading(ledger, SECOND, Reading({}, {}, {IMAGES_KEY: 4}), (), now, {IMAGES_KEY} if there else ())
        assert (IMAGES_KEY in ledger.totals.used) == there


TEXT = """\
# TYPE envoy_amphitrite_requests counter
envoy_amphitrite_requests{route="",code="404",flags="NR"} 2
envoy_amphitrite_requests{route="",code="400",flags="DPE"} 1
envoy_amphitrite_requests{route="images//AuthenticationFailed",code="401",flags="-"} 4
envoy_amphitrite_requests{route="images/absent/DeploymentNotReady",code="503",flags="-"} 1
envoy_amphitrite_requests{route="images/blue",code="200",flags="-"} 9
envoy_amphitrite_requests{route="images/blue",code="200",flags="DC"} 1
envoy_amphitrite_requests{route="images/blue",code="413",flags="-"} 1
envoy_amphitrite_requests{route="images//AuthenticationFailed",code="200",flags="-"} 10
envoy_amphitrite_requests{route="images/blue",code="424",flags="-"} 3
envoy_amphitrite_requests{route="images/blue",code="429",flags="UO"} 5
envoy_amphitrite_requests{route="images/blue",code="503",flags="URX,UF"} 6
envoy_amphitrite_requests{route="images/blue",code="503",flags="XYZ"} 7
envoy_amphitrite_failures{route="images/blue",code="400"} 3
envoy_amphitrite_failures{route="images/blue",code="\\"}/"} 1
envoy_amphitrite_failures{route="images/blue",code="a/b"} 1
envoy_amphitrite_sent{route="images/blue"} 0
envoy_amphitrite_received{route="images/blue"} 12
# TYPE envoy_amphitrite_duration histogram
envoy_amphitrite_duration_bucket{route="images/absent/DeploymentNotReady",le="1000"} 1
envoy_amphitrite_duration_bucket{route="images/absent/DeploymentNotReady",le="2000"} 1
envoy_amphitrite_duration_bucket{route="images/absent/DeploymentNotReady",le="+Inf"} 1
envoy_amphitrite_duration_bucket{route="images/blue",le="1000"} 0
envoy_amphitrite_duration_bucket{route="images/blue",le="2000"} 4
envoy_amphitrite_duration_bucket{route="images/blue",le="180000000"} 4
envoy_amphitrite_duration_bucket{route="images/blue",le="+Inf"} 5
envoy_amphitrite_duration_sum{route="images/blue"} 1.5e+3
envoy_amphitrite_duration_count{route="images/blue"} 5
envoy_cluster_internal_upstream_rq{envoy_response_code="200",envoy_cluster_name="cb"} 8
envoy_cluster_upstream_rq_retry{envoy_cluster_name="cb"} 2
envoy_cluster_upstream_rq_active{envoy_cluster_name="cb"} 3
envoy_cluster_upstream_rq_pending_active{envoy_cluster_name="cb"} 1
envoy_cluster_upstream_rq_active{envoy_cluster_name="agent"} 1
envoy_cluster_upstream_cx_total{envoy_cluster_name="cb"} 70
envoy_vhost_vcluster_upstream_rq_total{envoy_virtual_cluster="0123456789abcdef",envoy_virtual_host="images"} 5
envoy_vhost_vcluster_upstream_rq_total{envoy_virtual_cluster="other",envoy_virtual_host="images"} 6
envoy_vhost_vcluster_upstream_rq_total{envoy_virtual_cluster="token",envoy_virtual_host="tokens"} 7
envoy_server_live{} 1
nonsense
"""


def test_what_envoy_says_in_our_words() -> None:
    found = request_stats.read(TEXT, {"cb": BLUE})
    assert found.in_flight == {BLUE: 4}
    assert found.uses == {IMAGES_KEY: 5, ("tokens", TOKEN): 7}
    by_series: dict[Series, dict[str, float]] = {}
    for (series, field, cluster), n in found.counters.items():
        assert cluster == ("cb" if field in ("copies/200", "retries") else "")
        by_series.setdefault(series, {})[field] = n
    assert by_series == {
        NO_ENDPOINT: {"requests/404/ResourceNotFound": 2, "requests/400/BadRequest": 1},
        ("images", ""): {"requests/401/AuthenticationFailed": 14},
        ("images", "absent"): {"requests/503/DeploymentNotReady": 1, "le/0": 1},
        BLUE: {
            "requests/200/": 9, "requests/200/ClientClosedRequest": 1, "requests/413/RequestTooLarge": 1,
            "requests/424/ModelError": 3, "requests/429/TooManyRequests": 5, "requests/503/InstanceConnectionLost": 6,
            "requests/503/XYZ": 7, "model/400": 3, "model/-": 2, "received": 12, "microseconds": 1500, "le/1": 4,
            f"le/{len(BUCKETS_S)}": 1, "copies/200": 8, "retries": 2,
        },
    }  # fmt: skip
    # And all of it may travel.
    totals = add_reading(Ledger(Totals(1.5)), FIRST, found, {*by_series}, 1.0).totals
    assert set(totals.used) == set(found.uses)
    assert totals_from_json(json.loads(json.dumps(totals_to_json(totals)))) == totals


def test_a_thousand_endpoints_fit_into_one_report() -> None:
    """And strangers' requests, whatever they ask for, into one series."""
    fields = [f"requests/{code}/{reason}" for code, reason in (("200", ""), ("424", "ModelError"), ("429", "TooMany"))]
    fields += [f"le/{i}" for i in range(12)] + [
        "model/400",
        "microseconds",
        "received",
        "sent",
        "retries",
        "copies/200",
    ]
    known = [(f"endpoint-with-a-name-{i:04d}", name) for i in range(1000) for name in ("", "blue", "green")]
    counters = {(series, field, ""): 1_234_567.0 for series in known for field in fields}
    ledger = add_reading(Ledger(Totals(1.0)), FIRST, reading(counters), known, 1.0)
    assert len(ledger.totals.counters) == 3000
    assert len(json.dumps(totals_to_json(ledger.totals))) < 2 * 1024**2


def test_numbers_that_cannot_be_read_begin_anew(tmp_path: Path) -> None:
    file = tmp_path / "metrics.json"
    for text in ("{", "[]", '{"totals": {"began": 1, "counters": {"a": 1}, "in_flight": {}}, "process": null}'):
        file.write_text(text)
        collector = MetricsCollector(
            tmp_path / "socket", lambda: None, lambda: RoutingTable(1), file, 5.0, clock=lambda: 9.0
        )
        assert collector.content() == {"began": 9, "counters": {}, "in_flight": {}, "used": {}}


def test_answers_add_up_beside_what_envoy_counts() -> None:
    """Whatever Envoy does: nothing but the sum knows them."""
    ledger, said = Ledger(Totals(1.0)), []
    for process, sizes in ((FIRST, {"a": 0.25}), (SECOND, {"a": 0.125, "b": float("inf")})):
        ledger = add_reading(ledger, process, reading({(BLUE, "sent", ""): 5}), {BLUE}, 100.0)
        ledger = add_answers(ledger, {BLUE: Answers({COMPARED: 2}, sizes)}, {BLUE})
        ledger = add_answers(ledger, {}, {BLUE})
        ledger = ledger_from_json(json.loads(json.dumps(ledger_to_json(ledger))))
        said.append((ledger.totals.counters[BLUE][COMPARED], dict(ledger.totals.differences[BLUE])))
    assert said == [(2, {"a": 0.25}), (4, {"a": 0.25, "b": UNBOUNDED})]
    assert ledger.totals.counters[BLUE]["sent"] == 10
    ended = add_answers(ledger, {}, ())
    assert (ended.totals.counters, ended.totals.differences) == (ledger.totals.counters, {})
    assert "differences" not in totals_to_json(ended.totals)


def test_few_tensors_are_kept_under_names_that_can_be_told() -> None:
    sizes = {tensor_name(f"{n:03}\n\ud800é" + "x" * 200): float(n) for n in range(50)}
    ledger = add_answers(Ledger(Totals(1.0)), {BLUE: Answers({}, sizes)}, {BLUE})
    kept = totals_from_json(json.loads(json.dumps(totals_to_json(ledger.totals)))).differences[BLUE]
    assert len(kept) == 32 and kept["000??é" + "x" * 122] == 0.0
    assert tensor_name("") == "?"

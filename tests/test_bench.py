"""The benchmarks' pure parts: figures of rounds, goals, requests, what is taken out of Envoy's
messages, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amphitrite.dataplane.envoy.translate.bootstrap import BootstrapSettings, bootstrap
from amphitrite.dataplane.table.routing_table import Address
from bench import figures, loadgen, loss, peers, stats
from bench.controls import proxy
from bench.routers import HEADERS, KEY, TARGET, Place, envoy, haproxy, nginx, ours
from bench.routers.edits import PARTS, edited
from tests.dataplane.envoy.translation import translate
from tests.load.background import Load
from tests.system import changing

PLACE = Place(Path("/w"), 20_001, (1,), (20_002, 20_003), (Path("/w/chain.pem"), Path("/w/key.pem")))
SEEN = {
    "requests": 1000, "failed": 1, "unsent": 0, "seconds": 2.0, "cpu_s": 0.5, "p50_us": 150, "p90_us": 200,
    "p99_us": 900, "max_us": 5000, "late_p50_us": 1, "late_p99_us": 12,
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "share", "wanted"),
    [([3.0], 0.5, 3.0), ([4.0, 1.0, 2.0, 3.0], 0.5, 2.0), (list(range(1, 101)), 0.99, 99), ([1.0, 2.0], 1.0, 2.0)],
)
def test_a_percentile_is_a_value_that_was_seen(values: list[float], share: float, wanted: float) -> None:
    assert stats.percentile(values, share) == wanted


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        stats.percentile([], 0.5)


@pytest.mark.parametrize(
    ("values", "wanted"), [([2.0, 2.0, 2.0], 0.0), ([1.0, 2.0, 3.0], 1.0), ([0.0, 0.0], 0.0), ([10.0, 9.0, 11.0], 0.2)]
)
def test_spread_is_a_share_of_the_median(values: list[float], wanted: float) -> None:
    assert stats.spread(values) == pytest.approx(wanted)


def test_ratios_are_those_of_one_round() -> None:
    assert stats.paired([2.0, 8.0, 1.0], [1.0, 4.0, 0.0]) == [2.0, 2.0]
    assert stats.differences([2.0, 8.0], [1.0, 4.0]) == [1.0, 4.0]


@pytest.mark.parametrize(
    ("bound", "value", "wanted"),
    [("at most", 1.25, "yes"), ("at most", 1.26, "no"), ("at least", 1.2, "no"), ("at least", 2.0, "yes"),
     ("at least", None, "not measured")],
)  # fmt: skip
def test_a_goal_says_whether_it_holds(bound: Any, value: float | None, wanted: str) -> None:
    assert stats.Goal("g", bound, 1.25, value).row()["holds"] == wanted


def test_a_table_has_the_columns_of_all_its_rows() -> None:
    assert stats.table([{"a": 1}, {"a": 22, "note": "x"}]) == " a  note\n 1      \n22     x"


def test_what_the_generator_says_in_units_of_the_tables() -> None:
    load = loadgen.read(SEEN, cpu_s=0.1)
    assert (load.rps, load.p50_ms, load.late_p99_ms, load.busy) == (500.0, 0.15, 0.012, 0.25)
    assert load.cpu_us == pytest.approx(100.0) and load.per_core == pytest.approx(10_000.0)
    assert load.good and not loadgen.read({**SEEN, "failed": 2}, 0.1).good
    assert load.costing(0.2).cpu_us == pytest.approx(200.0)


def test_a_request_is_sent_as_it_is(tmp_path: Path) -> None:
    text = loadgen.request_file(tmp_path / "r", TARGET, HEADERS, b"abc").read_bytes()
    assert text.startswith(f"POST {TARGET} HTTP/1.1\r\n".encode()) and text.endswith(b"Content-Length: 3\r\n\r\nabc")


@pytest.mark.parametrize("form", ["raw", "base64", "v2"])
def test_a_peer_gets_the_tensor(form: str) -> None:
    assert (b"AAECAw==" in peers.body(form, bytes(range(4)))) == (form != "raw")


def test_every_proxy_has_the_same_rule() -> None:
    for text in (nginx.configuration(PLACE), haproxy.configuration(PLACE), json.dumps(envoy.configuration(PLACE))):
        assert f"Bearer {KEY}" in text and "90" in text and "20002" in text and "20003" in text and "401" in text


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_there_to_be_taken_out(part: str) -> None:
    sockets = Path("/run/a"), Path("/run/b"), Path("/run/c"), Path("/run/d")
    start = bootstrap(BootstrapSettings("p", Address("127.0.0.1", 1), *sockets, Path("/log")))
    values = [
        start,
        *(
            dict(r.value)
            for named in translate(ours.table([Address("127.0.0.1", port) for port in (1, 2)])).values()
            for r in named.values()
        ),
    ]
    changed = [edited(value, [part]) != value for value in values]
    assert any(changed)
    assert all(edited(value, []) == value for value in values)


def test_a_change_turns_one_endpoint() -> None:
    before = proxy.table(3, 20_002)
    after = proxy.turned(before, 1)
    assert after.version == before.version + 1 and after.routes[1].split == (("green", 100),)
    assert [a == b for a, b in zip(after.routes, before.routes, strict=True)] == [True, False, True]
    assert proxy.turned(after, 1).routes == before.routes


def test_a_million_requests_see_all_that_is_claimed() -> None:
    shape = changing.Shape.of(1_000_000)
    order = shape.order()
    assert {kind: order.count(kind) for kind in order} == shape.changes
    assert sorted(shape.changes.values()) == [5, 10, 10, 100, 100, 1000]
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    assert all(abs(halves[0].count(kind) - halves[1].count(kind)) <= 1 for kind in shape.changes)


def test_what_is_lost_is_judged() -> None:
    seen = {"failed": 1, "requests": 20, "latency_ms": {"p50": 1.0, "p99": 2.0, "max": 3.0}}
    rows = loss.request_rows(Load({"kept": seen, "anew": {**seen, "failed": 0}}), 2.4)
    assert [(row["client"], row["requests"], row["failed"]) for row in rows] == [
        ("kept", 20, 1), ("anew", 20, 0), ("all", 40, 1),
    ]  # fmt: skip
    kills = [{"kills": 2, "failed": failed} for failed in (0, 12)]
    said = [goal.row()["holds"] for goal in loss.goals(changing.Shape.of(41), rows, kills)]
    assert said == ["no", "no", "yes", "yes"]


def test_figures_are_placed_between_their_marks() -> None:
    page = f"# T\n{figures.BEGIN}former\n{figures.END}end\n"
    result = {
        "benchmark": "b", "when": "2026-01-02T03:04:05+00:00", "machine": {"cpu": "c", "cores": 2},
        "goals": [{"goal": "g", "holds": "no"}], "tables": {"t": [{"a": 1}], "long": [{"a": 1}] * 99}, "notes": ["n"],
    }  # fmt: skip
    made = figures.placed(page, figures.render([result]))
    assert "former" not in made and made.startswith("# T\n") and made.endswith("end\n")
    for line in (
        "### b",
        "2026-01-02, c, 2 cores.",
        "| g | no |",
        "| 1 |",
        "**long**: 99 rows, in `bench/results/`.",
        "- n",
    ):
        assert f"{line}\n" in made
    assert figures.placed(made, figures.render([result])) == made
    with pytest.raises(ValueError, match="no place"):
        figures.placed("# T\n", "")


def test_the_page_shows_the_results_that_are_there() -> None:
    page = figures.PAGE.read_text()
    assert figures.placed(page, figures.render(figures.load())) == page

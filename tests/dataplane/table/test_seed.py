"""The seed of a new proxy: what is encoded comes back, what is not one is refused, and its bound is
told."""

from __future__ import annotations

import gzip
import json
import random
import string
from dataclasses import replace
from pathlib import Path

import pytest

from amphitrite.dataplane.table import seed
from amphitrite.dataplane.table.json_codec import to_json
from amphitrite.dataplane.table.routing_table import Address, Cluster, Route, RoutingTable, Secret, Target
from amphitrite.dataplane.table.seed import decode_seed, encode_seed, load_seed, newer
from amphitrite.dataplane.table.text_codec import TableText
from amphitrite.schemas.errors import Error


def table(endpoints: int, version: int = 1) -> RoutingTable:
    """Endpoints of two deployments, each with two random keys, as a busy cluster has them."""
    chance = random.Random(endpoints)
    letters = string.ascii_letters + string.digits
    clusters, routes = [], []
    for n in range(endpoints):
        names = [f"endpoint-{n:04}-{color}-{chance.randrange(16**10):010x}" for color in ("blue", "green")]
        clusters += [
            Cluster(name, tuple(Address(f"10.{n % 256}.{n // 256}.{i}", 8000) for i in range(2)), 2, 5.0)
            for name in names
        ]
        targets = tuple(
            Target(color, name, 5.0, f"/v2/models/model-{n}/infer")
            for color, name in zip(("blue", "green"), names, strict=True)
        )
        keys = tuple(Secret("".join(chance.choices(letters, k=32))) for _ in range(2))
        routes.append(Route(f"endpoint-{n:04}", keys, targets, (("blue", 90), ("green", 10))))
    return RoutingTable(version, tuple(routes), tuple(sorted(clusters, key=lambda c: c.name)))


def test_a_seed_comes_back_and_is_the_same_each_time() -> None:
    some = table(20)
    assert decode_seed(encode_seed(some)) == some
    assert encode_seed(some) == encode_seed(table(20))


def test_a_thousand_endpoints_fit_five_times() -> None:
    assert len(encode_seed(table(1000))) * 5 < seed.MAX_BYTES


def test_what_does_not_fit_a_secret_is_refused() -> None:
    few = table(1)
    noise = "".join(random.Random(1).choices(string.printable, k=2 * seed.MAX_BYTES))
    route = replace(few.routes[0], credentials=(Secret(noise),))
    with pytest.raises(Error) as caught:
        encode_seed(replace(few, routes=(route,)))
    assert (caught.value.code, str(seed.MAX_BYTES) in caught.value.message) == ("LimitExceeded", True)
    assert noise[:20] not in caught.value.message


WHOLE = encode_seed(table(3))


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", WHOLE[:-1], WHOLE[: len(WHOLE) // 2], gzip.compress(b"{}"), gzip.compress(b"[]"), gzip.compress(b"{")],
    ids=["empty", "plain", "torn at the end", "half", "no table", "no object", "no JSON"],
)
def test_what_is_no_seed_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "routing-table.json.gz"
    path.write_bytes(data)
    with pytest.raises(Error, match=str(path)) as caught:
        load_seed(path)
    assert caught.value.code == "LocalFileError"


def test_a_seed_that_unfolds_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed, "_MAX_UNFOLDED", 1000)
    with pytest.raises(Error):
        decode_seed(gzip.compress(b" " * 10_000))


def test_no_file_is_no_seed(tmp_path: Path) -> None:
    assert load_seed(tmp_path / "absent") is None


def test_the_newer_of_seed_and_saved_table() -> None:
    old, new = table(1, 4), table(1, 5)
    assert newer(new, old) is new
    assert newer(new, None) is new
    assert [newer(*pair) for pair in ((old, new), (old, old), (None, old), (None, None))] == [None] * 4


def test_a_digest_is_of_the_content_alone() -> None:
    some, digest = table(2), TableText().digest
    assert digest(some) == digest(replace(some, version=9))
    assert digest(some) != digest(replace(some, max_body_bytes=1))
    whole = replace(some, clusters=tuple(replace(c, drain_timeout_s=5) for c in some.clusters))
    assert json.dumps(to_json(whole)) != json.dumps(to_json(some))
    assert digest(whole) == digest(some)

"""Grants and signed paths open what they are for, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.auth.fetch_grants import GRANT_PERIOD_S, URL_LIFETIME_S, Delivery, Grant
from amphitrite.dataplane.table.routing_table import Secret

ONE, OTHER = "1" * 64, "2" * 64
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)


def delivery(now: float = 1000.0, key: str = "key") -> Delivery:
    return Delivery(Secret(key), lambda: now)


@given(digest=DIGESTS, workload=st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=63))
def test_a_grant_says_what_it_is_for(digest: str, workload: str) -> None:
    text = delivery().grant(workload, digest)
    grant = delivery(now=9e9).read_grant(text)
    assert grant is not None
    assert (grant.digest, grant.workload) == (digest, workload)
    assert delivery(key="another").read_grant(text) is None


@given(workload=st.text("abc-", min_size=1, max_size=9), now=st.floats(0, 4e9))
def test_a_grant_ends_and_its_successor_comes_first(workload: str, now: float) -> None:
    text = delivery(now).grant(workload, ONE)
    grant = delivery(now).read_grant(text)
    assert grant is not None
    assert grant.ends is not None
    assert GRANT_PERIOD_S <= grant.ends - int(now) <= 2 * GRANT_PERIOD_S
    assert not delivery(grant.ends - 1).has_ended(grant)
    assert delivery(grant.ends).has_ended(grant)
    assert delivery(grant.ends - GRANT_PERIOD_S - 1).grant(workload, ONE) == text, "the same for a whole period"
    assert delivery(grant.ends - GRANT_PERIOD_S).grant(workload, ONE) != text, "replaced a period before it ends"


def test_grants_of_many_workloads_are_not_replaced_at_once() -> None:
    ends = {delivery().grant(f"w-{n}", ONE).split(".")[1] for n in range(1000)}
    assert len(ends) > 900


@pytest.mark.parametrize("change", [str.upper, lambda g: g + "A", lambda g: g[:-1], lambda g: "", lambda g: f"{g}\n"])
def test_a_changed_grant_opens_nothing(change: object) -> None:
    assert delivery().read_grant(change(delivery().grant("w", ONE))) is None  # type: ignore[operator]


@pytest.mark.parametrize(("part", "value"), [(1, "999999999999"), (2, "other"), (3, OTHER)])
def test_a_grant_with_another_part_opens_nothing(part: int, value: str) -> None:
    parts = delivery().grant("w", ONE).split(".")
    parts[part] = value
    assert delivery().read_grant(".".join(parts)) is None


@given(text=st.text())
def test_no_text_is_a_grant(text: str) -> None:
    assert delivery().read_grant(text) is None
    assert not delivery().is_signed(ONE, "2000", text)


def test_a_grant_of_an_earlier_release_names_no_workload() -> None:
    mac = hmac.new(b"key", f"grant\n{ONE}".encode(), hashlib.sha256).digest()
    signature = base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
    assert delivery().read_grant(f"v1.{ONE}.{signature}") == Grant(ONE)
    assert delivery().read_grant(f"v1.{OTHER}.{signature}") is None
    assert not delivery(9e9).has_ended(Grant(ONE))


def test_a_signed_path_is_good_for_its_content_and_its_time() -> None:
    path = urlsplit(delivery(now=1000.9).signed_path(ONE))
    query = {name: values[0] for name, values in parse_qs(path.query).items()}
    assert (path.path, query["expires"]) == (f"/fetch/v1/content/{ONE}", str(1000 + URL_LIFETIME_S))
    assert delivery().is_signed(ONE, query["expires"], query["signature"])
    assert not delivery().is_signed(OTHER, query["expires"], query["signature"])
    assert not delivery().is_signed(ONE, "9" + query["expires"], query["signature"])
    assert not delivery(now=1599.9).is_expired(query["expires"])
    assert delivery(now=1600.0).is_expired(query["expires"])


def test_a_grant_is_no_signature_of_content() -> None:
    assert not delivery().is_signed(ONE, "", delivery().grant("w", ONE).split(".")[4])

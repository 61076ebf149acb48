"""Grants and signed paths open what they are for, and nothing else."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.controlplane.auth.fetch_grants import URL_LIFETIME_S, Delivery
from amphitrite.dataplane.table.routing_table import Secret

ONE, OTHER = "1" * 64, "2" * 64
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)


def delivery(now: float = 1000.0, key: str = "key") -> Delivery:
    return Delivery(Secret(key), lambda: now)


@given(digest=DIGESTS, other=DIGESTS)
def test_a_grant_opens_its_model_alone(digest: str, other: str) -> None:
    grant = delivery().grant(digest)
    assert delivery(now=9e9).is_grant_for(grant, digest)
    assert delivery().is_grant_for(grant, other) == (digest == other)
    assert not delivery(key="another").is_grant_for(grant, digest)


@pytest.mark.parametrize("change", [str.upper, lambda g: g + "A", lambda g: g[:-1], lambda g: "", lambda g: f"{g}\n"])
def test_a_changed_grant_opens_nothing(change: object) -> None:
    assert not delivery().is_grant_for(change(delivery().grant(ONE)), ONE)  # type: ignore[operator]


@given(text=st.text())
def test_no_text_is_a_grant(text: str) -> None:
    assert not delivery().is_grant_for(text, ONE)
    assert not delivery().is_signed(ONE, "2000", text)


def test_a_grant_with_another_models_name_opens_nothing() -> None:
    version, _, signature = delivery().grant(ONE).split(".")
    assert not delivery().is_grant_for(f"{version}.{OTHER}.{signature}", OTHER)


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
    assert not delivery().is_signed(ONE, "", delivery().grant(ONE).split(".")[2])

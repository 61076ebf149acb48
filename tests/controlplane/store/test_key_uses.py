"""When keys were last used, on both databases: told of the keys that an endpoint has now."""

from __future__ import annotations

import pytest

from amphitrite.controlplane.store.reports.key_uses import KEEP_S, KeyUse, KeyUses
from amphitrite.controlplane.store.state.database import SqlStore

MADE = 1_800_000_030.0  # half a minute
MINUTE = 1_800_000_000


@pytest.fixture
def uses(store: SqlStore) -> KeyUses:
    for name in ("Cats", "dogs"):
        store.put_endpoint({"name": name}, if_match=None, if_none_match=True, now=MADE)
    return KeyUses(store.database)


def fingerprints(store: SqlStore, endpoint: str) -> tuple[str, str]:
    primary, secondary = store.get_keys(endpoint)
    return primary.fingerprint(), secondary.fingerprint()


def test_the_newest_minute_of_each_key_whoever_says_it(store: SqlStore, uses: KeyUses) -> None:
    primary, secondary = fingerprints(store, "cats")
    uses.put({("Cats", primary): MADE + 1, ("Cats", secondary): MADE + 200, ("dogs", "token"): MADE}, MADE + 300)
    # Another control plane hears of another proxy, whose clock is ahead.
    other = KeyUses(store.database)
    other.put({("Cats", primary): MADE + 9999, ("Cats", secondary): MADE + 100}, MADE + 400)
    uses.put({("Cats", primary): MADE + 2}, MADE + 500)
    cats = [KeyUse("Cats", "primary", MINUTE + 420), KeyUse("Cats", "secondary", MINUTE + 180)]
    assert uses.newest() == other.newest() == [*cats, KeyUse("dogs", "token", MINUTE)]
    assert uses.newest("CATS") == cats


def test_a_new_key_is_unused_and_a_former_endpoint_another(store: SqlStore, uses: KeyUses) -> None:
    primary, secondary = fingerprints(store, "cats")
    used = {("Cats", primary): MADE, ("Cats", secondary): MADE, ("dogs", "token"): MADE - 60, ("gone", "token"): MADE}
    uses.put(used, MADE)
    store.regenerate_key("cats", "primary", now=MADE)
    # A proxy that has not heard of the new key yet.
    uses.put({("Cats", primary): MADE + 60}, MADE + 60)
    assert uses.newest() == [KeyUse("Cats", "secondary", MINUTE)]


def test_it_is_forgotten_after_a_year_and_more(store: SqlStore, uses: KeyUses) -> None:
    primary, secondary = fingerprints(store, "cats")
    uses.put({("Cats", primary): MADE}, MADE)
    uses.put({("Cats", secondary): MADE + KEEP_S + 60}, MADE + KEEP_S + 60)
    assert [use.key for use in uses.newest()] == ["secondary"]

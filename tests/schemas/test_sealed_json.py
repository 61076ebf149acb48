"""Sealed JSON: what was written is read, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from amphitrite.schemas.sealed_json import seal, unseal

VALUE = {"pid": 4711, "name": "Zoë, sha256", "address": {"port": 8443}, "times": [1.5, None]}
TEXT = seal(json.dumps(VALUE))


def test_what_was_sealed_is_read() -> None:
    assert unseal(TEXT) == VALUE and json.loads(TEXT).keys() == {*VALUE, "sha256"}


@pytest.mark.parametrize("value", [{}, {"a": 1}, [], "x"])
def test_a_text_without_a_digest_is_read_as_it_is(value: Any) -> None:
    assert unseal(json.dumps(value)) == value


@pytest.mark.parametrize("bit", range(8))
def test_no_changed_byte_gives_another_value(bit: int) -> None:
    for at in range(len(TEXT.encode())):
        data = bytearray(TEXT.encode())
        data[at] ^= 1 << bit
        with pytest.raises(ValueError):  # Of JSON, of UTF-8, or ours.
            unseal(data.decode())

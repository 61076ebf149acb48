"""What one of Triton's clients asks, and what it must find.

Decides the calls. Must not know which client makes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from .served import LENGTHS, PATIENCE_S, SEQUENCES
from .triton import Array, Call, Grpc, Http

Client = Http | Grpc

NUMBERS = np.arange(16, dtype=np.int32).reshape(1, 16)
ONES = np.ones((1, 16), np.int32)
PAIR = {"INPUT0": ("INT32", NUMBERS), "INPUT1": ("INT32", ONES)}
#: A text with a null, one that is no text, an empty one.
TEXTS = np.array([[b"he\x00llo", b"\x00\x01\x02\x03", b""]], np.object_)


def _sums(client: Client, **options: Any) -> None:
    found = client.infer(Call("simple", PAIR, **options))
    assert np.array_equal(found.as_numpy("OUTPUT0"), NUMBERS + 1)
    assert np.array_equal(found.as_numpy("OUTPUT1"), NUMBERS - 1)


def as_json(client: Client) -> None:
    _sums(client, binary=False)


def binary(client: Client) -> None:
    """Of 32 bits and of 8."""
    _sums(client)
    small = {name: ("INT8", values.astype(np.int8)) for name, (_, values) in PAIR.items()}
    assert np.array_equal(client.infer(Call("simple_int8", small)).as_numpy("OUTPUT0"), NUMBERS + 1)


def gzipped(client: Client) -> None:
    _sums(client, compression="gzip")


def deflated(client: Client) -> None:
    _sums(client, compression="deflate")


def texts(client: Client) -> None:
    """As they are, and read as numbers."""
    found = client.infer(Call("simple_identity", {"INPUT0": ("BYTES", TEXTS)}))
    assert np.array_equal(found.as_numpy("OUTPUT0"), TEXTS)
    spelled: dict[str, tuple[str, Array]] = {
        name: ("BYTES", values.astype(str).astype(np.object_)) for name, (_, values) in PAIR.items()
    }
    sums = client.infer(Call("simple_string", spelled)).as_numpy("OUTPUT0")
    assert np.array_equal(sums.astype(np.int32), NUMBERS + 1)


def classes(client: Client) -> None:
    colors = np.array([[3, 1, 2]], np.float32)
    found = client.infer(Call("color_classes", {"colors": ("FP32", colors)}, classes=2)).as_numpy("class")
    assert found.tolist() == [[b"3.000000:0:red", b"2.000000:2:blue"]]


def sequence(client: Client) -> None:
    """Numbered and named: START adds 1, END adds the number."""
    one = {"INPUT": ("INT32", np.ones((1, 1), np.int32))}
    for name, model, sums in (
        (43, "simple_sequence", [2, 1, 1]),
        (44, "simple_dyna_sequence", [2, 1, 45]),
        ("1009", "simple_string_dyna_sequence", [1, 2, 1012]),
        ("fe1d-c0de", "simple_sequence", [2, 1, 1]),
    ):
        found = []
        for at in range(3):
            state = {"sequence_id": name, "sequence_start": at == 0, "sequence_end": at == 2}
            answer = client.infer(Call(model, one, endpoint=SEQUENCES, sequence=state))
            found.append(int(answer.as_numpy("OUTPUT").flat[0]))
        assert found == sums, (name, model)


def stream(client: Client) -> None:
    assert isinstance(client, Grpc)
    asked = {
        "IN": ("INT32", np.array([7, 8, 9], np.int32)),
        "DELAY": ("UINT32", np.zeros(3, np.uint32)),
        "WAIT": ("UINT32", np.zeros(1, np.uint32)),
    }
    found = client.stream(Call("repeat_int32", asked), 3)
    assert [int(one.as_numpy("OUT")[0]) for one in found] == [7, 8, 9]


def late(client: Client) -> None:
    """The client's own patience ends first."""
    numbers = np.ones((1, next(LENGTHS)), np.int32)
    slow = Call("waits_for_others", {"INPUT0": ("INT32", numbers)}, timeout_s=PATIENCE_S)
    if client.protocol == "http":
        with pytest.raises((TimeoutError, asyncio.TimeoutError)):  # One and the same from Python 3.11 on.
            client.infer(slow)
    else:
        with pytest.raises(InferenceServerException, match="DEADLINE_EXCEEDED"):
            client.infer(slow)


def about(client: Client) -> None:
    told = {"ready": True, "server": "triton", "input": "INPUT0", "batch": 8, "counted": "simple"}
    assert client.about() == told


def refused(client: Client) -> None:
    """Triton's refusal, the proxy's, and both can be printed."""
    for call, text in (
        (Call("nothing", PAIR), "unknown model"),
        (Call("simple", PAIR, key="wrong"), "AuthenticationFailed" if client.protocol == "http" else "UNAUTHENTICATED"),
    ):
        with pytest.raises(InferenceServerException) as caught:
            client.infer(call)
        assert text in str(caught.value)


ASKS: dict[str, Callable[[Client], None]] = {
    "JSON": as_json,
    "binary": binary,
    "gzip": gzipped,
    "deflate": deflated,
    "texts": texts,
    "classes": classes,
    "sequence": sequence,
    "stream": stream,
    "time-out": late,
    "about": about,
    "errors": refused,
}
#: What a protocol does not have.
ABSENT = {"http": {"stream"}, "grpc": {"JSON"}}

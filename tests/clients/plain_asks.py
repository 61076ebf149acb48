"""What a client that knows HTTP alone asks, and what it must find.

Decides the requests, as Triton's HTTP API has them. Must not know which client sends them.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from .plain import Answer, Ask, Request
from .served import LENGTHS, PATIENCE_S, SEQUENCES, SIMPLE, Served

NUMBERS = list(range(16))
ONES = [1] * 16
SUMS = [number + 1 for number in NUMBERS]
#: A text with a null, one outside of ASCII, an empty one.
TEXTS = ["he\x00llo", "größer", ""]
COLORS = [3.0, 1.0, 2.0]


def request(served: Served, path: str, document: Any = None, *, endpoint: str = SIMPLE, **headers: str) -> Request:
    """A GET without a ``document``, else a POST of it."""
    given = {"Authorization": f"Bearer {served.keys[endpoint]}"}
    if document is None:
        return Request("GET", served.uri(endpoint) + path, served.trust, {**given, **headers})
    given["Content-Type"] = "application/json"
    return Request(
        "POST", served.uri(endpoint) + path, served.trust, {**given, **headers}, json.dumps(document).encode()
    )


def tensor(name: str, kind: str, data: list[Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "datatype": kind, "shape": [1, len(data)], "data": data, **more}


def outputs(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer
    return {one["name"]: one.get("data") for one in json.loads(answer.body)["outputs"]}


PAIR = {"inputs": [tensor("INPUT0", "INT32", NUMBERS), tensor("INPUT1", "INT32", ONES)]}
INFER = "v2/models/simple/infer"


def as_json(ask: Ask, served: Served) -> None:
    assert outputs(ask(request(served, INFER, PAIR)))["OUTPUT0"] == SUMS


def binary(ask: Ask, served: Served) -> None:
    """Both inputs and one output behind the JSON."""
    data = np.array([NUMBERS, ONES], np.int32).tobytes()
    sizes = {"parameters": {"binary_data_size": len(data) // 2}}
    document = {
        "inputs": [{"name": f"INPUT{at}", "datatype": "INT32", "shape": [1, 16], **sizes} for at in (0, 1)],
        "outputs": [{"name": "OUTPUT1", "parameters": {"binary_data": True}}],
    }
    head = json.dumps(document).encode()
    asked = request(served, INFER, document, **{"Inference-Header-Content-Length": str(len(head))})
    headers = {**asked.headers, "Content-Type": "application/octet-stream"}
    found = ask(replace(asked, headers=headers, body=head + data))
    assert found.status == 200, found
    length = int(found.headers["inference-header-content-length"])
    assert np.frombuffer(found.body[length:], np.int32).tolist() == [number - 1 for number in NUMBERS]


def _compressed(ask: Ask, served: Served, algorithm: str, compress: Callable[[bytes], bytes]) -> None:
    asked = request(served, INFER, PAIR, **{"Content-Encoding": algorithm, "Accept-Encoding": algorithm})
    assert asked.body is not None
    found = ask(replace(asked, body=compress(asked.body)))
    assert found.status == 200, found
    # Most clients undo what the answer's header says; the others leave it to their user.
    begins = {"gzip": b"\x1f\x8b", "deflate": b"\x78"}[algorithm]
    if found.body.startswith(begins):
        body = gzip.decompress(found.body) if algorithm == "gzip" else zlib.decompress(found.body)
        found = replace(found, body=body)
    else:
        assert found.headers.get("content-encoding", algorithm) == algorithm
    assert outputs(found)["OUTPUT0"] == SUMS


def gzipped(ask: Ask, served: Served) -> None:
    _compressed(ask, served, "gzip", gzip.compress)


def deflated(ask: Ask, served: Served) -> None:
    _compressed(ask, served, "deflate", zlib.compress)


def texts(ask: Ask, served: Served) -> None:
    document = {"inputs": [tensor("INPUT0", "BYTES", TEXTS)]}
    assert outputs(ask(request(served, "v2/models/simple_identity/infer", document)))["OUTPUT0"] == TEXTS


def classes(ask: Ask, served: Served) -> None:
    document = {
        "inputs": [tensor("colors", "FP32", COLORS)],
        "outputs": [{"name": "class", "parameters": {"classification": 2}}],
    }
    found = outputs(ask(request(served, "v2/models/color_classes/infer", document)))
    assert found["class"] == ["3.000000:0:red", "2.000000:2:blue"]


def sequence(ask: Ask, served: Served) -> None:
    """Numbered and named: START adds 1, END adds the number."""
    for name, model, sums in (
        (42, "simple_dyna_sequence", [2, 1, 43]),
        ("1007", "simple_string_dyna_sequence", [1, 2, 1010]),
    ):
        found = []
        for at in range(3):
            state = {"sequence_id": name, "sequence_start": at == 0, "sequence_end": at == 2}
            document = {"parameters": state, "inputs": [tensor("INPUT", "INT32", [1])]}
            answer = ask(request(served, f"v2/models/{model}/infer", document, endpoint=SEQUENCES))
            found += outputs(answer)["OUTPUT"]
        assert found == sums


def stream(ask: Ask, served: Served) -> None:
    document = {"IN": [7, 8, 9], "DELAY": [0, 0, 0], "WAIT": 0}
    found = ask(request(served, "v2/models/repeat_int32/generate_stream", document))
    assert found.headers["content-type"].startswith("text/event-stream"), found
    events = [line[6:] for line in found.body.decode().splitlines() if line.startswith("data: ")]
    assert [json.loads(event)["OUT"] for event in events] == [7, 8, 9]


def late(ask: Ask, served: Served) -> None:
    document = {"inputs": [tensor("INPUT0", "INT32", [1] * next(LENGTHS))]}
    asked = request(served, "v2/models/waits_for_others/infer", document)
    with pytest.raises(TimeoutError):
        ask(replace(asked, timeout_s=PATIENCE_S))


def told(ask: Ask, served: Served) -> None:
    """Health, metadata, configuration, statistics."""

    def get(path: str) -> Any:
        found = ask(request(served, path))
        assert found.status == 200, found
        return json.loads(found.body or b"null")

    assert get("v2/health/live") is get("v2/health/ready") is get("v2/models/simple/ready") is None
    assert get("v2")["name"] == "triton"
    assert get("v2/models/simple")["inputs"][0]["shape"] == [-1, 16]
    assert get("v2/models/simple/config")["max_batch_size"] == 8
    assert get("v2/models/simple/stats")["model_stats"][0]["name"] == "simple"


def refused(ask: Ask, served: Served) -> None:
    """Triton's refusal and the proxy's have one form below ``/v2``, a text."""
    nowhere = request(served, "v2/models/nothing/infer", PAIR)
    wrong = replace(request(served, INFER, PAIR), headers={"Authorization": "Bearer wrong"})
    for asked, status, text in ((nowhere, 424, "unknown model"), (wrong, 401, "AuthenticationFailed")):
        found = ask(asked)
        assert found.status == status, found
        assert text in json.loads(found.body)["error"]


ASKS: dict[str, Callable[[Ask, Served], None]] = {
    "JSON": as_json,
    "binary": binary,
    "gzip": gzipped,
    "deflate": deflated,
    "texts": texts,
    "classes": classes,
    "sequence": sequence,
    "stream": stream,
    "time-out": late,
    "about": told,
    "errors": refused,
}

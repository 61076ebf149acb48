"""Answers of KServe V2 and what two of them have in common, row by row and against numpy."""

from __future__ import annotations

import gzip
import json
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amphitrite.dataplane.comparison.answer_tensors import Tensor
from amphitrite.dataplane.comparison.answers import BODY_MAX, decoded, parse
from amphitrite.dataplane.comparison.verdicts import ELEMENTS_MAX, Verdict, compare

NAN, INF = math.nan, math.inf


def in_json(*outputs: dict[str, Any]) -> tuple[bytes, str]:
    return json.dumps({"model_name": "m", "outputs": outputs}).encode(), ""


def output(datatype: str, shape: Sequence[int], data: object, name: str = "o") -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape), "data": data}


def in_binary(*outputs: tuple[str, Sequence[int], bytes]) -> tuple[bytes, str]:
    """Outputs o0, o1 and so on as binary tensor data."""
    listed = [
        {"name": f"o{i}", "datatype": kind, "shape": list(shape), "parameters": {"binary_data_size": len(data)}}
        for i, (kind, shape, data) in enumerate(outputs)
    ]
    text = json.dumps({"outputs": listed}).encode()
    return text + b"".join(data for *_, data in outputs), str(len(text))


def elements(*texts: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def verdict(base: tuple[bytes, str], candidate: tuple[bytes, str], tolerance: float = 0.0) -> Verdict:
    return compare(parse(*base), parse(*candidate), tolerance)


@pytest.mark.parametrize(
    ("datatype", "data", "numbers"),
    [
        ("BOOL", b"\x00\x01", (0, 1)),
        ("UINT8", b"\x00\xff", (0, 255)),
        ("INT8", b"\x01\xff", (1, -1)),
        ("UINT16", b"\x01\x02", (513,)),
        ("INT16", b"\xfe\xff", (-2,)),
        ("UINT32", b"\x00\x00\x00\x80", (2**31,)),
        ("INT32", b"\xff\xff\xff\xff", (-1,)),
        ("UINT64", b"\xff" * 8, (2**64 - 1,)),
        ("INT64", b"\xff" * 8, (-1,)),
        ("FP16", b"\x00\x3c\x00\xc0", (1.0, -2.0)),
        ("BF16", b"\x80\x3f\x49\xc0", (1.0, -3.140625)),
        ("FP32", struct.pack("<f", 0.5), (0.5,)),
        ("FP64", struct.pack("<d", 0.1), (0.1,)),
    ],
)
def test_binary_data_is_read_by_its_datatype(datatype: str, data: bytes, numbers: tuple[float, ...]) -> None:
    (tensor,) = parse(*in_binary((datatype, [len(numbers)], data)))
    assert tuple(tensor.numbers(0, len(numbers))) == numbers
    assert tensor.numeric and tensor.ranked == (datatype != "BOOL" and len(numbers) > 1)


def test_both_forms_may_be_mixed_and_are_sorted_by_name() -> None:
    binary = {"name": "b", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}
    text = json.dumps({"outputs": [binary, output("BYTES", [2], ["x", "ü"], "a")]}).encode()
    first, second = parse(text + struct.pack("<2f", 1, 2), str(len(text)))
    assert (first.name, first.texts()) == ("a", [b"x", "ü".encode()])
    assert (second.name, second.numbers(0, 2)) == ("b", (1.0, 2.0))
    nested = parse(*in_json(output("INT32", [2, 1, 2], [[[1, 2]], [[3, 4]]])))
    assert nested[0].numbers(0, 4) == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("body", "length", "message"),
    [
        (b"", "", "not JSON"),
        (b"[1]", "", "no list of outputs"),
        (b'{"error":"no such model"}', "", "no list of outputs"),
        (b"[" * 100_000, "", "not JSON"),
        (b'{"outputs":[1]}', "", "no list 'data'"),
        (*in_json({"name": "o", "datatype": "FP32", "shape": [1]}), "no list 'data'"),
        (*in_json(output("FP8", [1], [1])), "none of KServe V2"),
        (*in_json(output("FP32", [2], [1])), "another number of elements"),
        (*in_json(output("FP32", [-1], [])), "no shape"),
        (*in_json(output("FP32", [True], [1])), "no shape"),
        (*in_json(output("FP32", [1], ["a"])), "not of the datatype FP32"),
        (*in_json(output("FP32", [2, 1], [[1], 2])), "not of one depth"),
        (*in_json(output("FP32", [2], [[1], [2, [3]]])), "not of the datatype"),
        (*in_json(output("BYTES", [1], [1])), "not of the datatype BYTES"),
        (*in_json(output("FP32", [1], [1]), output("FP32", [1], [1])), "one name"),
        (*in_json({**output("FP32", [1], [1]), "name": 1}), "no text 'name'"),
        (*in_json(output("FP32", [2**30, 2**30], [])), "another number"),
        (b'{"outputs":[]}', "15", "not a length"),
        (b'{"outputs":[]}', "x", "not a length"),
        (b'{"outputs":[]}more', "14", "after its binary data"),
        (in_binary(("FP32", [2], bytes(8)))[0][:-1], in_binary(("FP32", [2], bytes(8)))[1], "before its binary"),
        (*in_binary(("FP32", [1], bytes(5))), "within an element"),
        (*in_binary(("BYTES", [1], b"\x02\x00\x00\x00x")), "longer than its tensor"),
        (*in_binary(("BYTES", [1], b"\x02\x00")), "has no length"),
        (*in_binary(("BYTES", [2], elements(b"x"))), "another number"),
        (b'{"outputs":[{"name":"o","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":-4}}]}', "", "not a"),
    ],
)
def test_what_is_no_answer_is_refused(body: bytes, length: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(body, length)


@given(st.binary(max_size=200), st.sampled_from(["", "0", "2", "20"]))
def test_no_body_does_more_than_be_refused(body: bytes, length: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(body, length)


@pytest.mark.parametrize(("coding", "encode"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_codings_are_read_within_bounds(coding: str, encode: Any) -> None:
    assert decoded(encode(b"text"), coding) == b"text"
    for body in (encode(bytes(BODY_MAX + 1)), encode(b"text")[:-5], b"plain"):
        with pytest.raises(ValueError, match="the body is"):
            decoded(body, coding)
    assert decoded(b"text", "identity") == decoded(b"text", "") == b"text"
    with pytest.raises(ValueError, match="is not read"):
        decoded(b"text", "br")


ROWS = [
    # base, candidate, tolerance, differs, disagrees, largest difference
    ([1, 2], [1, 2], 0, False, False, 0.0),
    ([1, 2], [1, 2.5], 0.5, False, False, 0.5),
    ([1, 2], [1, 2.5], 0.49, True, False, 0.5),
    ([1, 2], [2.5, 2], 2, False, True, 1.5),
    ([NAN, 1], [NAN, 1], 0, False, False, 0.0),
    ([NAN, 1], [0, 1], 9, True, True, INF),
    ([0, 1], [NAN, 1], 9, True, True, INF),
    ([INF, 1], [INF, 1], 0, False, False, 0.0),
    ([INF, 1], [-INF, 1], 9, True, True, INF),
    ([INF, INF], [INF, 1], 9, True, False, INF),
    ([1, INF], [NAN, INF], 9, True, True, INF),
    ([10**400, 1], [10**400, 2], 1, False, False, 1.0),
    ([10**400, 1], [0.5, 1], 1, True, True, INF),
    ([5, 5], [4, 5], 1, False, False, 1.0),  # Both places of the base have the largest number.
    ([4, 5], [5, 5], 1, False, False, 1.0),
    ([7], [9], 2, False, False, 2.0),  # One in a row: there is no largest.
    ([], [], 0, False, False, 0.0),
]


@pytest.mark.parametrize(("base", "candidate", "tolerance", "differs", "disagrees", "largest"), ROWS)
def test_numbers_in_json(
    base: list[Any], candidate: list[Any], tolerance: float, differs: bool, disagrees: bool, largest: float
) -> None:
    first, second = (in_json(output("FP64", [1, len(base)], data)) for data in (base, candidate))
    assert verdict(first, second, tolerance) == Verdict(differs, disagrees, (("o", largest),))
    if max([abs(n) for n in base if n == n], default=0) < 2**1000 or INF in map(abs, base):
        shape = [1, len(base)]
        first, second = (in_binary(("FP64", shape, struct.pack(f"<{len(n)}d", *n))) for n in (base, candidate))
        assert verdict(first, second, tolerance) == Verdict(differs, disagrees, (("o0", largest),))


ONE = output("FP32", [1, 2], [0.1, 0.9])


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        ([{**ONE, "name": "p"}], Verdict(True, True)),
        ([{**ONE, "shape": [2]}], Verdict(True, True)),
        ([{**ONE, "datatype": "FP64"}], Verdict(True, True)),
        ([], Verdict(True, True)),
        ([ONE, output("INT8", [1], [1], "p")], Verdict(True, True, (("o", 0.0),))),
    ],
    ids=str,
)
def test_another_form_differs_and_disagrees(candidate: list[dict[str, Any]], expected: Verdict) -> None:
    assert verdict(in_json(ONE), in_json(*candidate), 100.0) == expected


def test_bytes_are_equal_or_differ() -> None:
    base, other = in_binary(("BYTES", [2], elements(b"a", b""))), in_binary(("BYTES", [2], elements(b"", b"a")))
    assert verdict(base, base) == Verdict(False, False)
    assert verdict(base, other, 100.0) == Verdict(True, False)
    texts = in_json({**output("BYTES", [2], ["a", ""]), "name": "o0"})
    assert verdict(base, texts) == Verdict(False, False)


def test_each_row_has_its_own_largest() -> None:
    base = in_json(output("FP32", [2, 2], [0.1, 0.9, 0.8, 0.2]))
    other = in_json(output("FP32", [2, 2], [0.1, 0.9, 0.2, 0.8]))
    assert verdict(base, other, 1.0).disagrees and not verdict(base, base).disagrees
    first, second = (in_json(output("BOOL", [2], flags)) for flags in ([True, False], [False, True]))
    assert verdict(first, second, 1.0) == Verdict(False, False, (("o", 1.0),))


NUMBERS = st.one_of(st.floats(width=32), st.sampled_from([0.0, 1.0, NAN, INF, -INF]))


@given(st.data(), st.integers(1, 4), st.integers(1, 6), st.sampled_from([0.0, 0.5, 1e9]))
def test_it_says_what_numpy_says(data: st.DataObject, rows: int, row: int, tolerance: float) -> None:
    size = rows * row
    base = data.draw(st.lists(NUMBERS, min_size=size, max_size=size))
    other = [data.draw(st.one_of(st.just(n), NUMBERS)) for n in base]
    first, second = (in_binary(("FP32", [rows, row], struct.pack(f"<{size}f", *v))) for v in (base, other))
    found = verdict(first, second, tolerance)
    a, b = (np.array(v, dtype=np.float32).astype(np.float64).reshape(rows, row) for v in (base, other))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        far = np.where(same, 0.0, np.abs(a - b))
    largest = float(np.max(np.where(np.isnan(far), np.inf, far)))
    assert found.differences == (("o0", largest),)
    assert found.differs == (largest > tolerance)
    if (np.argmax(a, axis=1) == np.argmax(b, axis=1)).all():
        assert not found.disagrees
    ties = any(np.sum(x == np.max(x)) > 1 or np.sum(np.isnan(x)) > 1 for x in (*a, *b))
    if not ties and row > 1:
        assert found.disagrees == bool((np.argmax(a, axis=1) != np.argmax(b, axis=1)).any())
    assert verdict(second, first, tolerance) == found


@pytest.mark.parametrize("shape", [(1, 300_000), (300_000,), (300_000, 1), (300, 1000), (3, 100, 1000)])
def test_work_is_bounded_and_no_part_is_left_out_everywhere(shape: tuple[int, ...]) -> None:
    """Every so many rows are looked at, from the first on; a row is looked at as a whole."""
    base = np.zeros(300_000, dtype=np.float32)
    looked_at: list[int] = []

    class Counting(bytes):
        def __getitem__(self, key: Any) -> Any:
            looked_at.append(key.stop - key.start)
            return super().__getitem__(key)

    other = Tensor("o", "FP32", shape, (base + 1).tobytes())
    found = compare([Tensor("o", "FP32", shape, Counting(base.tobytes()))], [other], 0.5)
    assert found == Verdict(True, False, (("o", 1.0),))
    assert max(looked_at) <= 4 * 4096
    elements_looked_at = sum(looked_at) // 4
    assert elements_looked_at == 300_000 if shape[-1] == 300_000 else elements_looked_at <= ELEMENTS_MAX
    assert elements_looked_at > ELEMENTS_MAX * 0.9

"""Rows: the text of a config.pbtxt, and what is read of it or said about it."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.schemas.repository.config.syntax_tree import Message
from amphitrite.schemas.repository.config.text_format import parse


def plain(message: Message) -> dict[str, Any]:
    """Field -> values, without places."""
    return {
        name: [plain(v.value) if isinstance(v.value, Message) else v.value for v in values]
        for name, values in message.values.items()
        if values
    }


GOOD: list[tuple[str, dict[str, Any]]] = [
    ("", {}),
    ("# nothing\n", {}),
    ('name: "a"', {"name": ["a"]}),
    ("name: 'a' \"b\"\n'c'", {"name": ["abc"]}),
    (r'name: "\x41\102\n\"\u00e4"', {"name": ['AB\n"ä']}),
    ("max_batch_size: 0x10", {"max_batch_size": [16]}),
    ("max_batch_size: 010;", {"max_batch_size": [8]}),
    ("max_batch_size: - 1,", {"max_batch_size": [-1]}),
    ("input { dims: [ 1, -1 ] }", {"input": [{"dims": [1, -1]}]}),
    ("input { dims: 1 dims: 2 }", {"input": [{"dims": [1, 2]}]}),
    ("input: < data_type: TYPE_FP32 >", {"input": [{"data_type": [11]}]}),
    ("input { data_type: 11 }", {"input": [{"data_type": [11]}]}),
    ("input [ { }, { } ] input { }", {"input": [{}, {}, {}]}),
    ("instance_group: [ ]", {}),
    ("response_cache { enable: t }", {"response_cache": [{"enable": [True]}]}),
    ("response_cache { enable: 0 }", {"response_cache": [{"enable": [False]}]}),
    (
        'parameters { key: "a" value { string_value: "b" } }',
        {"parameters": [{"key": ["a"], "value": [{"string_value": ["b"]}]}]},
    ),
    (
        "sequence_batching { direct { minimum_slot_utilization: 1e-1f } }",
        {"sequence_batching": [{"direct": [{"minimum_slot_utilization": [0.1]}]}]},
    ),
]

BAD = [
    ("max_batch_sizes: 8", "c:1:1: max_batch_sizes: unknown field `max_batch_sizes` in the configuration of a model"),
    ("max_batch_size: 8.0", "c:1:17: max_batch_size: must be a whole number; found `8.0`; allowed: a whole number"),
    ("max_batch_size: 8name", "c:1:17: max_batch_size: a space is missing after the number; found `8name`"),
    ("max_batch_size: 08", "c:1:17: max_batch_size: a number with a leading 0 is octal"),
    ("max_batch_size: 4294967296", "c:1:17: max_batch_size: the number is out of range"),
    ("max_batch_size 8", "c:1:16: max_batch_size: expected `:` after `max_batch_size`; found `8`"),
    (
        "max_batch_size: 1\nmax_batch_size: 2",
        "c:2:1: max_batch_size: duplicate field `max_batch_size`; the first one is in line 1",
    ),
    (
        "dynamic_batching { }\nsequence_batching { }",
        "c:2:1: sequence_batching: `sequence_batching` cannot be combined with",
    ),
    ("name: m", "c:1:7: name: must be a string in quotes; found `m`"),
    ('name: "m', "c:1:7: name: the closing quote is missing on this line"),
    (r'name: "\q"', r"c:1:7: name: `\q` is not an escape sequence"),
    ("input { dims: [ 1, ] }", "c:1:20: input[0].dims: expected a value after `,`; found `]`"),
    ("input { dims: [ 1 2 ] }", "c:1:19: input[0].dims: expected `,` or `]`; found `2`"),
    ("input { dims: [ 1", "c:1:15: input[0].dims: `[` is not closed"),
    ("input { name: 'x'", "c:1:7: input[0]: `{` is not closed"),
    ("}", "c:1:1: `}` closes nothing"),
    ("input { data_type: FP32 }", "c:1:20: input[0].data_type: unknown value; found `FP32`"),
    ("instance_group { kind: GPU }", "c:1:24: instance_group[0].kind: unknown value; found `GPU`"),
    ("response_cache { enable: True1 }", "c:1:26: response_cache.enable: must be true or false; found `True1`"),
    ("// a", "c:1:1: expected a field's name; found `/`"),
    ("\ufeffname: 'm'", "c:1:1: a character (U+FEFF) is allowed only inside quotes"),
    ("\tmax_batch_size: x", "c:1:25: max_batch_size: must be a whole number; found `x`"),
    ("model_metrics { }", "c:1:1: model_metrics: Triton 2.51 does not know the field `model_metrics`"),
]

HINTS = [
    ("max_batch_sizes: 8", 'did you mean "max_batch_size"?'),
    ("input { data_type: float32 }", 'did you mean "TYPE_FP32"?'),
    ("instance_group { kind: GPU }", 'did you mean "KIND_GPU"?'),
    ("input { dim: 4 }", 'did you mean "dims"?'),
    ("max_batch_size: '8'", "write 8, without quotes"),
    ("name: m", 'write "m"'),
    ("// a", "begin a comment with `#`"),
    ("model_metrics { }", "remove it; Triton 2.60 and later know it"),
]


@pytest.mark.parametrize(("text", "values"), GOOD)
def test_what_is_read(text: str, values: dict[str, Any]) -> None:
    root, findings = parse(text, "c")
    assert (plain(root), findings) == (values, [])


@pytest.mark.parametrize(("text", "line"), BAD)
def test_what_is_said_first(text: str, line: str) -> None:
    _, findings = parse(text, "c")
    assert str(findings[0]).startswith(line)


@pytest.mark.parametrize(("text", "hint"), HINTS)
def test_what_to_do(text: str, hint: str) -> None:
    assert parse(text, "c")[1][0].hint == hint


def test_all_errors_of_a_file_are_told_at_once() -> None:
    text = """name: m
max_batch_size: 8.5
inptu [ { name: "x" dims: [ 1, 2 ] } ]
output { name: "y" data_type: FP32 dims: [ 4, ] }
instance_group [ { count: "2" } ]
"""
    root, findings = parse(text, "c")
    assert [finding.line for finding in findings] == [1, 2, 3, 4, 4, 5]
    assert plain(root)["output"] == [{"name": ["y"], "dims": [4]}]


def test_a_later_triton_knows_more() -> None:
    assert parse("model_metrics { }", "c", (2, 60))[1] == []

"""Which YAML is read, how, and where its problems are."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.cli.documents.yaml_source import MAX_VALUES, parse
from amphitrite.schemas.errors import Error

VALUES: list[tuple[str, Any]] = [
    ("a: 1\nb: [x, 'y', \"z\"]\n", {"a": 1, "b": ["x", "y", "z"]}),
    ("a: yes\nb: ~\nc:\nd: 1.5\ne: 0x10\n", {"a": True, "b": None, "c": None, "d": 1.5, "e": 16}),
    ("a: 2026-11-20\nb: =\n", {"a": "2026-11-20", "b": "="}),
    ("1: a\ntrue: b\n~: c\n", {"1": "a", "true": "b", "~": "c"}),
    ("a: !!str 1\nb: !!int '2'\nc: ! 3\n", {"a": "1", "b": 2, "c": "3"}),
    ("\ufeffa: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
    ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}),
    ("base: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n", {"base": {"b": 1, "c": 2}, "d": {"c": 3, "b": 1}}),
    ("d: {<<: [{b: 1}, {b: 2, c: 3}]}\n", {"d": {"b": 1, "c": 3}}),
    ("n: " + "9" * 41, {"n": "9" * 41}),
    ('{"json": [1, {"too": null}]}', {"json": [1, {"too": None}]}),
]
LONG_CHAIN = "a0: &a0 {}\n" + "".join(f"a{i}: &a{i} {{<<: *a{i - 1}}}\n" for i in range(1, 200))
BOMB = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9))
MERGE_BOMB = "a0: &a0 {}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40))
PROBLEMS: list[tuple[str, list[str]]] = [
    ("a: 1\nb: 2\na: 3\nb: 4\n",
     ["f:3:1: a: duplicate key; the first one is at f:1:1", "f:4:1: b: duplicate key; the first one is at f:2:1"]),
    ("x:\n  - {k: 1, k: 2}\n", ["f:2:12: x[0].k: duplicate key; the first one is at f:2:6"]),
    ("ä: 'ö'\nb: \x07\n", ["f:2:4: YAML does not allow the character U+0007"]),
    ("a: *x\n", ["f:1:4: alias *x has no anchor &x before it"]),
    ("a: &x [*x]\n", ["f:1:4: a[0]: the alias refers to a value that contains it"]),
    ("a: &x {<<: *x}\n", ["f:1:4: a: the alias refers to a value that contains it"]),
    ("a: {<<: 1}\n", ["f:1:9: a: << must be a mapping or a list of mappings"]),
    ("[1]: a\n", ["f:1:1: a key must be text"]),
    ("? \n: a\n", ["f:1:2: a key must be text"]),
    ("a: !!python/object:os.system x\n",
     ["f:1:4: a: the tag tag:yaml.org,2002:python/object:os.system is not allowed"]),
    ("a: !!set {x}\nb: !env HOME\n",
     ["f:1:4: a: the tag tag:yaml.org,2002:set is not allowed", "f:2:4: b: the tag !env is not allowed"]),
    ("a: !!int x\nb: !!bool 7\n",
     ["f:1:4: a: found 'x'; allowed: a value of YAML's type int",
      "f:2:4: b: found '7'; allowed: a value of YAML's type bool"]),
    ("[" * 100, ["f:1:66: the nesting is too deep; allowed: 64 levels"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "want"), VALUES)
def test_value(text: str, want: object) -> None:
    parsed = parse(text.removeprefix("\ufeff"), "f")
    assert [document.value for document in parsed] == [want]


@pytest.mark.parametrize(("text", "want"), PROBLEMS)
def test_problem(text: str, want: list[str]) -> None:
    with pytest.raises(Error) as caught:
        parse(text, "f")
    assert caught.value.code == "InvalidDocument"
    assert [str(violation) for violation in caught.value.violations] == want


@pytest.mark.parametrize(
    ("text", "location", "hint"),
    [
        ("a: [1, 2\n", "f:2:1", None),
        ("a:\n\tb: 1\n", "f:2:1", "indent with spaces, not with tabs"),
        ("é: 'x' y\n", "f:1:8", None),
    ],
)
def test_a_syntax_error_has_its_place(text: str, location: str, hint: str | None) -> None:
    with pytest.raises(Error) as caught:
        parse(text, "f")
    assert [(violation.location, violation.hint) for violation in caught.value.violations] == [(location, hint)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LONG_CHAIN, "the nesting is too deep; allowed: 64 levels"),
        (BOMB, f"the document has too many values, with aliases expanded; allowed: {MAX_VALUES}"),
        (MERGE_BOMB, f"the document has too many values, with aliases expanded; allowed: {MAX_VALUES}"),
    ],
)
def test_aliases_are_bounded(text: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        parse(text, "f")
    assert message in {violation.message for violation in caught.value.violations}


def test_many_documents_are_read_in_order() -> None:
    parsed = parse("a: 1\n---\nb: 2\n...\n---\n- c\n", "f")
    assert [document.value for document in parsed] == [{"a": 1}, {"b": 2}, ["c"]]
    assert [str(document.marks[()]) for document in parsed] == ["1:1", "3:1", "6:1"]


def test_marks_and_texts() -> None:
    (parsed,) = parse("é: {b: 1.10}\nc:\n  - d: on\n", "f")
    assert str(parsed.marks["é", "b"]) == "1:8"
    assert str(parsed.keys["é", "b"]) == "1:5"
    assert str(parsed.marks["c",]) == "2:1"
    assert str(parsed.marks["c", 0]) == "3:5"
    assert parsed.texts == {("é", "b"): "1.10", ("c", 0, "d"): "on"}


def test_what_is_merged_is_where_it_was_written() -> None:
    (parsed,) = parse("x: &x {a: 1, b: 2.50}\ny:\n  <<: *x\n  a: 3\n", "f")
    assert str(parsed.marks["y", "b"]) == "1:17"
    assert str(parsed.marks["y", "a"]) == "4:6"
    assert parsed.texts["y", "b"] == "2.50"

"""The generic update: what --set, --add and --remove do to a document, and that they do nothing
else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amphitrite.cli.documents import edits
from amphitrite.cli.documents.assignments import parse_value
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.documents.edits import Edit
from amphitrite.cli.terminal.arguments import SEPARATOR
from amphitrite.schemas.errors import Error

START: dict[str, Any] = {"name": "x", "tags": {"team": "a", "size": "b"}, "list": [{"id": "1"}, {"id": "2", "k": "v"}]}


def after(value: Any, *wanted: str, force_string: bool = False) -> Any:
    """``value`` after ``set a=b``, ``add path value ...``, ``remove path``."""
    made = []
    for text in wanted:
        kind, *words = text.split(" ")
        made.append(Edit(kind, tuple(words), force_string))  # type: ignore[arg-type]
    return edits.apply(Document("it", value, Path()), made).value


@pytest.mark.parametrize(
    ("value", "wanted", "want"),
    [
        ({"a": 1}, ["set a=2 b.c=3"], {"a": 2, "b": {"c": 3}}),
        ({"a": [1]}, ["add a 2 [3] x"], {"a": [1, 2, [3], "x"]}),
        ({}, ["add a k=v l=w"], {"a": [{"k": "v", "l": "w"}]}),
        ({}, ["add a k=v x l=w m=u"], {"a": [{"k": "v"}, "x", {"l": "w", "m": "u"}]}),
        ({}, ["add a k=1"], {"a": [{"k": "1"}]}),  # as az: text, whatever it looks like
        ({}, ['add a {"k":1} "a=b"'], {"a": [{"k": 1}, "a=b"]}),
        ({"a": {"b": [1]}}, ["add a.b 2"], {"a": {"b": [1, 2]}}),
        ({"a": [[1]]}, ["add a[0] 2"], {"a": [[1, 2]]}),
        ({"a": 1, "b": 2}, ["remove a"], {"b": 2}),
        ({"a": {"b": 1, "c": 2}}, ["remove a.b"], {"a": {"c": 2}}),
        ({"a": [1, 2, 3]}, ["remove a 1"], {"a": [1, 3]}),
        ({"a": [1, 2, 3]}, ["remove a[0]", "remove a 1"], {"a": [2]}),
        ({"a": [{"id": 1, "k": 2}]}, ["remove a[0].k"], {"a": [{"id": 1}]}),
        (START, ["set list[id=2].k=w", "remove list[id=1]"], {**START, "list": [{"id": "2", "k": "w"}]}),
        ({}, ["set a=1", "remove a", "set a=2"], {"a": 2}),
    ],
)
def test_edits(value: Any, wanted: list[str], want: object) -> None:
    before = json.dumps(value)
    assert after(value, *wanted) == want
    assert json.dumps(value) == before, "the value itself was changed"


def test_text_stays_text_when_it_is_forced() -> None:
    got = after({}, "set a=1 b=true c=[1]", "add d 1", force_string=True)
    assert got == {"a": "1", "b": "true", "c": "[1]", "d": ["1"]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("1.50", 1.5), ("true", True), ("null", None), ('"1"', "1"), ('{"a": [1]}', {"a": [1]}),
        ("True", True), ("None", None), ("'x'", "x"), ("{'a': 1}", {"a": 1}), ("['a', True]", ["a", True]),
        ("(1, 2)", [1, 2]), ("x", "x"), ("", ""), ("a b", "a b"), ("1e999", "1e999"), ("NaN", "NaN"),
        ("Infinity", "Infinity"), ("{a}", "{a}"), ("{1, 2}", "{1, 2}"), ("'\\d", "'\\d"),
        ("__import__('os')", "__import__('os')"),
        ("1_000", "1_000"), ("0x10", "0x10"), ("[" * 100_000, "[" * 100_000), ("(" * 500, "(" * 500), ("01", "01"),
    ],
)  # fmt: skip
def test_values_are_read_as_az_reads_them(text: str, value: object) -> None:
    got = parse_value(text)
    assert (got, type(got)) == (value, type(value))


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ("remove tag", "--remove tag: no field `tag` in the document; found: list, name, tags", "did you mean tags?"),
        (
            "remove tags.tema",
            "--remove tags.tema: no field `tema` in tags; found: size, team",
            "did you mean tags.team?",
        ),
        ("remove name.x", "--remove name.x: no field `x` in name; it has no fields", None),
        ("remove list 2", "--remove list: found index 2; allowed: 0 to 1", None),
        ("remove list[7]", "--remove list[7]: found index 7; allowed: 0 to 1", None),
        ("remove tags 0", "--remove tags: tags is not a list, so it has no index", None),
        ("remove list -1", "--remove: found list -1; allowed: PATH, or PATH INDEX for a list", "--remove"),
        ("remove a..b", "--remove: found 'a..b'; allowed: a path such as", None),
        ("add list", "--add: found list; allowed: PATH VALUE ...", "--add"),
        ("add tags a=b", "--add tags: the field is a mapping; only a list can be added to", "--set tags.KEY=VALUE"),
        ("add name x", "--add name: the field is a single value; only a list can be added to", "--set name=VALUE"),
        ("set list[id=3].k=v", "--set list[id=3].k: [id=3] must match one entry; it matches no entry of 2", None),
        ("set tags[0]=v", "--set tags[0]: found a mapping; allowed: a list", None),
        ("set tags[a=b].c=v", "--set tags[a=b].c: found a mapping; allowed: a list", None),
        ("set =v", "--set: found '=v'; allowed: PATH=VALUE", "for example"),
    ],
)
def test_refused(wanted: str, message: str, hint: str | None) -> None:
    with pytest.raises(Error) as caught:
        after(START, wanted)
    assert caught.value.code == "UsageError"
    assert caught.value.message.startswith(message)
    assert (hint or "") in (caught.value.hint or "")


def test_options_are_read_in_the_order_of_the_command_line() -> None:
    read = edits.parse_edits([f"1{SEPARATOR}a=1{SEPARATOR}b=2"], [f"2{SEPARATOR}l{SEPARATOR}x"], [f"0{SEPARATOR}c"])
    assert [(edit.kind, edit.words) for edit in read] == [
        ("remove", ("c",)),
        ("set", ("a=1", "b=2")),
        ("add", ("l", "x")),
    ]
    assert edits.parse_edits(["a=1", "b=2"]) == [Edit("set", ("a=1",)), Edit("set", ("b=2",))]


KEYS = st.text("abcxyz_", min_size=1, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(value=st.dictionaries(KEYS, VALUES, max_size=6), key=KEYS, new=VALUES)
def test_what_is_not_named_stays(value: dict[str, Any], key: str, new: object) -> None:
    others = {name: entry for name, entry in value.items() if name != key}
    document = Document("it", value, Path())
    assert edits.apply(document, [Edit("set", (f"{key}={json.dumps(new)}",))]).value == {**others, key: new}
    if key in value:
        assert edits.apply(document, [Edit("remove", (key,))]).value == others

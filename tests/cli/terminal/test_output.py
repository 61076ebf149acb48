"""Data as text: what each format prints."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.cli.terminal.output import render, select
from amphitrite.schemas.errors import Error

ENDPOINT = {"name": "ep", "traffic": {"blue": 90, "green": 10}, "tags": {}, "ready": True, "keys": [1, 2], "none": None}


@pytest.mark.parametrize(
    ("value", "form", "wanted"),
    [
        ("Succeeded", "tsv", "Succeeded\n"),
        (3, "tsv", "3\n"),
        (True, "tsv", "true\n"),
        (None, "tsv", ""),
        ([], "tsv", ""),
        (["a", "b"], "tsv", "a\nb\n"),
        ([["a", 1], ["b", None]], "tsv", "a\t1\nb\tNone\n"),
        (ENDPOINT, "tsv", "2\tep\tNone\tTrue\t\t\n"),
        ("text", "json", '"text"\n'),
        ({"ä": [1]}, "json", '{\n  "ä": [\n    1\n  ]\n}\n'),
        ({"a": "ä", "b": [1]}, "jsonc", '{\n  "a": "ä",\n  "b": [\n    1\n  ]\n}\n'),
        ("text", "yaml", "text\n"),
        ({"b": 1, "a": {"c": "1"}}, "yaml", "b: 1\na:\n  c: '1'\n"),
        ({"b": 1}, "yamlc", "b: 1\n"),
        # az's rules for tsv, row by row: what is nested in a row is a length or nothing, null is
        # None.
        ([None, "a"], "tsv", "None\na\n"),
        ([1.5, False], "tsv", "1.5\nfalse\n"),
        ([{"b": 1, "a": None, "c": {"d": 1}, "e": [1, 2], "f": True}], "tsv", "None\t1\t\t2\tTrue\n"),
        ([["x", ["y", "z"], {"k": 1}]], "tsv", "x\t2\t\n"),
        ({}, "tsv", "\n"),
        ("x", "table", "Result\n------\nx\n"),
        # az's rules for tables that nobody chose the columns of: neither null nor what is nested,
        # nor id, type, etag.
        (
            [
                {"name": "a", "id": "/x", "type": "t", "etag": "e", "n": 1, "ok": True, "deep": {}, "none": None},
                {"n": 2},
            ],
            "table",
            "Name  N  Ok\n----  -  ----\na     1  True\n      2\n",
        ),
        ({"provisioning_state": "Succeeded"}, "table", "Provisioning_state\n------------------\nSucceeded\n"),
        (
            [["a", None, {"b": [1]}]],
            "table",
            'Column1  Column2  Column3\n-------  -------  ----------\na                 {"b": [1]}\n',
        ),
        (["a\nb", "c"], "table", "Result\n------\na b\nc\n"),
        ([], "table", ""),
        ([["a", 1]], "table", "Column1  Column2\n-------  -------\na        1\n"),
        (
            ENDPOINT,
            "table",
            "Name  Traffic           Ready\n----  ----------------  -----\nep    blue=90 green=10  true\n",
        ),
        (ENDPOINT, "none", ""),
    ],
)
def test_formats(value: Any, form: str, wanted: str) -> None:
    columns = ("name", "traffic", "tags", "ready") if value is ENDPOINT else ()
    assert render(value, form, columns=columns) == wanted


def test_color_is_only_around_the_text() -> None:
    import re

    colored = render(ENDPOINT, "jsonc", color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render(ENDPOINT, "json")


@pytest.mark.parametrize("value", [{}, [{"id": "x"}], [{"a": [1]}, {"b": None}]])
def test_a_table_of_nothing_is_refused(value: Any) -> None:
    with pytest.raises(Error, match="no values that a table can show") as caught:
        render(value, "table")
    assert caught.value.code == "UsageError"


def test_columns_that_say_nothing_are_left_out_and_a_query_chooses_its_own() -> None:
    assert render([{"name": "a", "tags": {}, "n": 1}], "table", columns=("name", "tags")) == "Name\n----\na\n"
    made = select([ENDPOINT], "[].{Where: name, State: ready}")
    assert render(made, "table") == "Where  State\n-----  -----\nep     True\n"


def test_a_query_keeps_the_order_of_its_own_objects() -> None:
    made = select(ENDPOINT, "{z: name, a: ready}")
    assert render(made, "tsv") == "ep\tTrue\n"


@pytest.mark.parametrize("query", ["a b", "[", "length(name", "nope(@)", "length(`1`)"])
def test_a_bad_query_is_a_usage_error(query: str) -> None:
    with pytest.raises(Error) as caught:
        select(ENDPOINT, query)
    assert caught.value.code == "UsageError"

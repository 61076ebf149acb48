"""--set path=value."""

from __future__ import annotations

from typing import Any

import pytest

from amphitrite.cli.documents.assignments import apply_set, parse_assignment
from amphitrite.schemas.errors import Error


@pytest.mark.parametrize(
    ("value", "assignments", "want"),
    [
        ({"a": 1}, ["a=2"], {"a": 2}),
        ({}, ["a.b.c=x=y"], {"a": {"b": {"c": "x=y"}}}),
        ({}, ["a="], {"a": ""}),
        ({}, ["a=null", 'b=["x", 1]', 'c={"d": true}', "e=1.10", "f=NaN", 'g="1"'],
         {"a": None, "b": ["x", 1], "c": {"d": True}, "e": 1.1, "f": "NaN", "g": "1"}),
        ({}, ["identity.user_assigned_identities[0].resource_id=/sub/x"],
         {"identity": {"user_assigned_identities": [{"resource_id": "/sub/x"}]}}),
        ({"a": [1, 2]}, ["a[1]=5", "a[2]=6"], {"a": [1, 5, 6]}),
        ({}, ["a[0][0]=1"], {"a": [[1]]}),
        ({"environment_variables": None}, ["environment_variables.A=b c"], {"environment_variables": {"A": "b c"}}),
        (None, ["name=x"], {"name": "x"}),
        ({}, ["a=" + "[" * 100_000], {"a": "[" * 100_000}),
    ],
)  # fmt: skip
def test_set(value: Any, assignments: list[str], want: object) -> None:
    assert apply_set(value, assignments) == want


@pytest.mark.parametrize(
    ("value", "assignment", "message"),
    [
        ({}, "a", "--set: found 'a'; allowed: PATH=VALUE"),
        ({}, "=1", "--set: found '=1'; allowed: PATH=VALUE"),
        ({}, "a..b=1", "--set: found 'a..b=1'; allowed: PATH=VALUE"),
        ({}, "a[x]=1", "--set: found 'a[x]=1'; allowed: PATH=VALUE"),
        ({}, "a[1]=1", "--set a[1]: found index 1; allowed: 0 to 0"),
        ({"model": "azureml:m:1"}, "model.path=x", "--set model.path: found text; allowed: a mapping"),
        ({"a": {}}, "a[0]=x", "--set a[0]: found a mapping; allowed: a list"),
        ([], "a=x", "--set a: found a list; allowed: a mapping"),
    ],
)
def test_refused(value: Any, assignment: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        apply_set(value, [assignment])
    assert (caught.value.code, caught.value.message) == ("UsageError", message)


def test_the_value_itself_is_not_changed() -> None:
    value: dict[str, Any] = {"a": {"b": [1]}}
    apply_set(value, ["a.b[0]=2", "c=1"])
    assert value == {"a": {"b": [1]}}


def test_an_assignment_knows_its_text() -> None:
    assignment = parse_assignment("model.version=1.10")
    assert (assignment.path, assignment.value, assignment.text) == (("model", "version"), 1.1, "1.10")
    assert assignment.origin == "--set model.version"

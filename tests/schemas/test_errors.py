"""The one error: every code travels to a body and back unchanged."""

from __future__ import annotations

import json

import pytest

from amphitrite.schemas import error_text
from amphitrite.schemas.errors import CODES, Error, Violation


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_survives_the_wire(code: str) -> None:
    error = Error(
        code,
        "what happened",
        target="ep",
        hint="what to do",
        violations=[Violation(("deployments", 0, "name"), "too long", "shorten it"), Violation((), "not an object")],
    )
    assert Error.from_body(json.loads(json.dumps(error.to_body()))) == error


def test_a_code_that_does_not_exist_cannot_be_raised() -> None:
    with pytest.raises(ValueError, match="unknown error code 'Oops'"):
        Error("Oops", "no")


def test_a_newer_servers_code_is_kept_in_the_message() -> None:
    error = Error.from_body({"code": "FromTheFuture", "message": "hello"})
    assert (error.code, error.message) == ("InternalServerError", "FromTheFuture: hello")


@pytest.mark.parametrize(
    ("violation", "text"),
    [
        (Violation((), "empty"), "empty"),
        (Violation(("traffic", "blue"), "too much"), "traffic.blue: too much"),
        (Violation(("a", 0, "b"), "no", location="f.yml:1:2"), "f.yml:1:2: a[0].b: no"),
    ],
)
def test_a_violation_says_where(violation: Violation, text: str) -> None:
    assert str(violation) == text


def test_what_an_error_quotes_stays_on_its_place() -> None:
    error = Error("BadArgument", "no \x1b[2Jsuch\r\x9b name\nbut\ttwo lines", hint="h\u202eint")
    said = "error: no \\u001b[2Jsuch\\u000d\\u009b name [BadArgument]\n  but\ttwo lines\nhint: h\\u202eint\n"
    assert error_text.render(error) == said

"""How a command line is read."""

from __future__ import annotations

import pytest

from amphitrite.cli.terminal.arguments import repeat_options
from amphitrite.cli.terminal.options import Options, Scope, scope

SET = frozenset({"--set", "--tags"})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("--set a=1", "--set a=1"),
        ("--set a=1 b=2", "--set a=1 --set b=2"),
        ("--set a=1 b=2 -n x c", "--set a=1 --set b=2 -n x c"),
        ("--set=a=1 b=2", "--set=a=1 --set b=2"),
        ("-n x --set a=1 --tags b=2 c=3 --set d=4", "-n x --set a=1 --tags b=2 --tags c=3 --set d=4"),
        ("--set", "--set"),
        ("", ""),
    ],
)
def test_words_after_a_repeatable_option(given: str, wanted: str) -> None:
    assert repeat_options(given.split(), SET) == wanted.split()


def test_options_after_the_verb_win() -> None:
    inner, outer = Options(output="tsv"), Options(output="json", workspace="ws", debug=True)
    assert inner.merged_with(outer) == Options(output="tsv", workspace="ws", debug=True)


def test_scope_comes_from_options_then_environment_then_local() -> None:
    environ = {"ML_RESOURCE_GROUP": "rg", "ML_WORKSPACE": "other"}
    assert scope(Options(workspace="ws"), environ) == Scope("local", "rg", "ws")

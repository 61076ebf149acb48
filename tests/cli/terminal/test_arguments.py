"""Abbreviated options, several words at once, and edits in their order."""

from __future__ import annotations

import pytest

from amphitrite.cli.main import main
from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.terminal.arguments import SEPARATOR, OptionTable, expand_abbreviations, join_edit_values
from amphitrite.cli.terminal.options import Options as GlobalOptions
from amphitrite.schemas.errors import Error

OPTIONS = OptionTable(
    {
        "--endpoint-name": "endpoint_name",
        "--endpoint": "endpoint_name",
        "-e": "endpoint_name",
        "--query": "query",
        "--no-wait": "no_wait",
        "--name": "name",
        "-n": "name",
        "--set": "set",
    },
    frozenset({"--endpoint-name", "--endpoint", "-e", "--query", "--name", "-n", "--set"}),
    frozenset({"--set"}),
)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("--endpoint x", "--endpoint x"),
        ("--end x --no-w", "--endpoint-name x --no-wait"),
        ("--na=x --q=y=z", "--name=x --query=y=z"),
        ("--name --que", "--name --que"),  # the word after an option is its value
        ("-n --que --que -n", "-n --que --query -n"),
        ("--set a=--na --na x", "--set a=--na --name x"),
        ("--unknown x --na y", "--unknown x --name y"),
        ("-- --na", "-- --na"),
        ("--name", "--name"),
        ("", ""),
    ],
)
def test_a_unique_beginning_stands_for_the_option(given: str, wanted: str) -> None:
    assert expand_abbreviations(given.split(), OPTIONS) == wanted.split()


def test_a_beginning_of_several_is_refused_and_names_them() -> None:
    with pytest.raises(ValueError, match=r"^ambiguous option: --n could be --name, --no-wait$"):
        expand_abbreviations(["--n", "x"], OPTIONS)


def test_what_follows_a_verb_is_the_verbs() -> None:
    assert expand_abbreviations(["--que", "x", "verb", "--na"], OPTIONS, to_first_word=True) == [
        "--query",
        "x",
        "verb",
        "--na",
    ]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("--set a=1 b=2 -n x", "--set 0|a=1|b=2 -n x"),
        ("--add l a=b --set c=d --add l e", "--add 0|l|a=b --set 1|c=d --add 2|l|e"),
        ("--add l -1 -.5 --remove l 0", "--add 0|l|-1|-.5 --remove 1|l|0"),
        ("--set=a=1 b=2", "--set 0|a=1|b=2"),
        ("--set -n x", "--set -n x"),
        ("x --set", "x --set"),
    ],
)
def test_an_edit_keeps_its_words_and_its_place(given: str, wanted: str) -> None:
    edits = frozenset({"--set", "--add", "--remove"})
    assert join_edit_values(given.split(), edits) == wanted.replace("|", SEPARATOR).split(" ")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("--resource rg online-end show -n x", 2, "Did you mean 'online-endpoint'?"),
        ("--resource rg online-endpoint show --nam x --outp TSV", 3, "no control plane"),
        (
            "online-endpoint update --na x --re y",
            2,
            "ambiguous option: --re could be --reason, --remove, --resource-group",
        ),
        ("online-deployment get-logs --na x --end y --li 3 --cont inference-server", 3, "no control plane"),
        ("online-endpoint show --nname x", 2, "--nname"),
    ],
)
def test_in_a_command(line: str, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    def nobody(options: GlobalOptions) -> Client:
        raise Error("ServerUnreachable", "no control plane")

    assert main(line.split(), nobody) == code
    assert said in capsys.readouterr().err

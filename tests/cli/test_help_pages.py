"""The pages of ``--help``: examples for every verb, the global options last, nothing cut.

``tests/system/test_help_examples.py`` runs the examples.
"""

from __future__ import annotations

import shlex

import pytest

from amphitrite.cli.main import main
from amphitrite.cli.session import help_pages
from amphitrite.cli.session.program import Root, program
from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.terminal.options import Options

from .conftest import Stage
from .test_reference import verbs

#: Each visible verb once, by the name of its group, without the aliases.
ALIASES = {name for name, (_, summary) in Root.groups.items() if not summary}
VERBS = [name for name, verb in verbs() if not verb.hidden and name.split()[0] not in ALIASES]

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
INSTANCE_TYPES = """\
instance_types:
  - name: small
    resources:
      requests: {cpu: "1", memory: 2Gi}
"""


def nobody(options: Options) -> Client:
    raise AssertionError("help needs no server")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def page(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*words.split(), "--help"], nobody) == 0
    return capsys.readouterr().out


def test_every_verb_has_an_example() -> None:
    assert [name for name in VERBS if not help_pages.examples_of(name)] == []


def test_every_example_belongs_to_one_verb_and_says_what_it_does() -> None:
    owners = {example: [name for name in VERBS if example.is_of(name)] for example in help_pages.examples()}
    assert [example.lines for example, names in owners.items() if len(names) != 1] == []
    assert [example.lines for example in owners if not (example.about.endswith(".") and example.lines)] == []
    # All lines but the last go on in the next: a second command would never be run.
    assert [
        one.lines for one in owners if [line.endswith("\\") for line in one.lines].index(False) + 1 != len(one.lines)
    ] == []


@pytest.mark.parametrize("name", VERBS)
def test_a_page(name: str, terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    text = page(name, capsys)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    own, _, last = text.partition("\nGlobal options")
    assert "--output" not in own and "--output" in last
    examples = own.partition("\nExamples:\n")[2]
    shown = ["\n".join(f"    {line}" for line in one.lines) for one in help_pages.examples_of(name)]
    assert [example for example in shown if example not in examples] == []
    assert "Not supported" not in text


@pytest.mark.parametrize(
    ("alias", "name"), [("endpoint show", "online-endpoint show"), ("deployment list", "online-deployment list")]
)
def test_an_alias_has_the_examples_of_its_group(
    alias: str, name: str, terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"    ml {name} " in page(alias, capsys)


@pytest.mark.parametrize("name", ["", *(name for name in Root.groups if ":" not in Root.groups[name][0])])
def test_the_page_of_a_group_cuts_no_summary(name: str, terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    root = program()
    command = root.get_command(None, name) if name else root
    if not hasattr(command, "summaries"):
        return
    words = " ".join(page(name, capsys).partition("\nCommands:\n")[2].split())
    assert command.summaries()
    assert [one for one, summary in command.summaries() if f"{one} {summary}" not in words] == []
    assert [summary for _, summary in command.summaries() if not summary.endswith(".")] == []


def test_the_examples_of_computes_work(stage: Stage) -> None:
    (stage.directory / "kubeconfig.yml").write_text(KUBECONFIG)
    (stage.directory / "instance-types.yml").write_text(INSTANCE_TYPES)
    lines = [one.command for one in help_pages.examples() if one.command.startswith("ml compute")]
    assert len(lines) > 6
    answers = {line: stage.run(*shlex.split(line)[1:]) for line in lines}
    assert {line: err for line, (code, _, err) in answers.items() if code} == {}

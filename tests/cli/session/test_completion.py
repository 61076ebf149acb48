"""What shells are told to offer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from amphitrite.cli.main import main
from amphitrite.cli.session.program import program
from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.terminal.options import Options
from amphitrite.cli.verbs.completion import candidates


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["onl"], ["online-deployment", "online-endpoint"]),
        (["-o", ""], ["json", "jsonc", "none", "table", "tsv", "wide", "yaml", "yamlc"]),
        (["-o", "tsv", "online-e"], ["online-endpoint"]),
        (["online-endpoint", "cr"], ["create"]),
        (["endpoint", "get-"], ["get-credentials"]),
        (["online-endpoint", "update", "--mi"], ["--mirror-traffic"]),
        (["online-endpoint", "update", "-n", "x", "--set", "a=b", "--mi"], ["--mirror-traffic"]),
        (["online-endpoint", "show", "-n", ""], []),
        (["online-endpoint", "show", "--name", "--qu"], []),
        (["online-endpoint", "show", "--output", "t"], ["table", "tsv"]),
        (["nonsense", ""], []),
        (["online-endpoint", "nonsense", "--"], []),
    ],
)
def test_candidates(words: list[str], offered: list[str]) -> None:
    assert sorted(name for name, _ in candidates(program(), words)) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    def nobody(options: Options) -> Client:
        raise AssertionError

    assert main(["completion", shell], nobody) == 0
    assert "ml completion candidates --" in capsys.readouterr().out
    assert main(["completion", "tcsh"], nobody) == 2


def test_bash_completes(tmp_path: Path) -> None:
    program = """
    eval "$(ml completion bash)"
    COMP_WORDS=(ml online-endpoint show --que); COMP_CWORD=3
    _ml_candidates && echo "${COMPREPLY[@]}"
    COMP_WORDS=(ml online-endpoint show -o ""); COMP_CWORD=4
    _ml_candidates && echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", program],
        env={"PATH": path, "ML_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["--query", "json jsonc yaml yamlc table wide tsv none"]

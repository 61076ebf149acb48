"""What shells are told to offer, and what they make of it when somebody presses Tab."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import uvicorn

from amphitrite.cli.main import main
from amphitrite.cli.session.completion_values import CHOICES
from amphitrite.cli.session.connection import connect
from amphitrite.cli.session.program import Root, program
from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.terminal.options import Options
from amphitrite.cli.verbs.completion import candidates
from amphitrite.controlplane.auth import certificates
from amphitrite.controlplane.process.app import create_app

from ...tiny_onnx import tiny
from ...waiting import wait_until
from ..conftest import Stage

DEPLOYMENT = "endpoint_name: pictures\nmodel: azureml:pets:1\ninstance_type: Standard_DS3_v2\n"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["onl"], ["online-deployment", "online-endpoint"]),
        (["online-endpoint", "cr"], ["create"]),
        (["endpoint", "get-"], ["get-credentials"]),
        (["online-endpoint", "update", "--mi"], ["--mirror-traffic"]),
        (["online-endpoint", "update", "-n", "x", "--set", "a=b", "--mi"], ["--mirror-traffic"]),
        (["online-endpoint", "show", "-n", ""], []),
        (["online-endpoint", "show", "--name", "--qu"], []),
        (["nonsense", ""], []),
        (["online-endpoint", "nonsense", "--"], []),
        (["online-endpoint", "--nonsense=", ""], ["create"]),
    ],
)
def test_verbs_and_options(words: list[str], offered: list[str]) -> None:
    found = sorted(name for name, _ in candidates(program(), words))
    assert found == offered or (offered == ["create"] and "create" in found)


@pytest.fixture
def served(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """The stage behind TLS, as a shell's ``ml`` finds it, with something to offer."""
    for name in ("blue", "green"):
        (stage.directory / f"{name}.yml").write_text(f"name: {name}\n{DEPLOYMENT}")
    (stage.directory / "repository/m/1").mkdir(parents=True)
    (stage.directory / "repository/m/1/model.onnx").write_bytes(tiny("x"))
    for line in (
        "model create -n pets -p repository -t triton_model",
        "model create -n pets -p repository -t triton_model --description second",
        "environment create -n tritons --image nvcr.io/nvidia/tritonserver:24.08-py3",
        "endpoint create -n pictures",
        "deployment create -f blue.yml",
        "deployment create -f green.yml",
    ):
        assert stage.run(*line.split())[0] == 0
    services = stage.machine.services
    made = certificates.ensure(services.settings.home, ["127.0.0.1"], time.time())
    config = uvicorn.Config(
        create_app(services),
        ssl_certfile=str(made.certificate_file),
        ssl_keyfile=str(made.key_file),
        log_config=None,
        access_log=False,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        monkeypatch.setenv("ML_SERVER_URL", f"https://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("ML_CA_FILE", str(made.ca_file))
        monkeypatch.setenv("ML_TOKEN", services.credentials.token.reveal())
        # The machine of a test may be busy.
        monkeypatch.setenv("ML_COMPLETION_TIMEOUT_S", "60")
        yield stage
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive()


#: A line up to the cursor, and what is offered there.
OFFERED = [
    ("online-endpoint show -n ", "pictures"),
    ("endpoint invoke -n pictures -d g", "green"),
    ("endpoint invoke -n pictures --deployment-n=g", "--deployment-n=green"),
    ("online-endpoint create -n ", ""),
    ("online-endpoint create --auth-mode a", "aml_token aad_token"),
    ("online-endpoint regenerate-keys --key-type ", "primary secondary"),
    ("online-endpoint update -n pictures --traffic ", "blue= green="),
    ("online-endpoint update -n pictures --traffic blue=50 g", "green="),
    ("online-deployment show -e ", "pictures"),
    ("online-deployment show -e pictures --name b", "blue"),
    ("online-deployment show -n ", ""),
    ("online-deployment get-logs -c s", "storage-initializer"),
    ("online-deployment update -n blue -e pictures --set instance_type=standard_nc6s", ""),
    ("online-deployment update -n blue -e pictures --set instance_type=Standard_DS3", "instance_type=Standard_DS3_v2"),
    ("online-deployment update -n blue -e pictures --set model=", "model=azureml:pets:"),
    ("online-deployment update -n blue --set model=azureml:pets:", "model=azureml:pets:2 model=azureml:pets:1"),
    ("online-deployment create --set environment=azureml:tritons:", "environment=azureml:tritons:1"),
    ("model show -n p", "pets"),
    ("model delete -n pets --version ", "2 1"),
    ("model show -n pets -l ", "latest"),
    ("model validate x --instance-type Standard_DS3_", "Standard_DS3_v2"),
    ("environment show -n ", "tritons"),
    ("environment show -n tritons -v ", "1"),
    ("compute show -n ", "local"),
    ("-o tsv compute list -o t", "table tsv"),
    ("-w elsewhere online-endpoint show -n ", ""),
    ("--server-url https://127.0.0.1:1 online-endpoint show -n ", ""),
    ("server start --runtime ", "local kubernetes"),
    ("explain ResourceNot", "ResourceNotFound ResourceNotReady"),
    ("completion z", "zsh"),
    ("model validate ", ""),
]


def test_values_come_from_the_server(served: Stage) -> None:
    played = {line: " ".join(offered(served, line)) for line, _ in OFFERED}
    assert played == dict(OFFERED)


@pytest.mark.parametrize(
    ("line", "option", "names"),
    [
        ("online-deployment list", "'--endpoint-name' / '--endpoint' / '-e'", "pictures"),
        ("online-deployment show -e pictures", "'--name' / '-n'", "blue, green"),
        ("model show -l latest", "'--name' / '-n'", "pets"),
    ],
)
def test_the_names_for_a_missing_option(served: Stage, line: str, option: str, names: str) -> None:
    command = " ".join(line.split()[:2])
    code, _, err = served.run(*line.split())
    assert (code, err) == (
        2,
        f"error: Missing option {option}. [UsageError]\nhint: use one of {names}; or run `ml {command} --help`\n",
    )


def offered(stage: Stage, line: str) -> list[str]:
    stage.capture.readouterr()
    assert main(["completion", "candidates", "--", *line.split(" ")], connect) == 0
    said = stage.capture.readouterr()
    assert said.err == ""
    return [one.partition("\t")[0] for one in said.out.splitlines()]


def test_without_a_server_nothing_is_offered_and_nothing_said(served: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "online-endpoint show -n "
    for variable, value in (
        ("ML_COMPLETION_TIMEOUT_S", "0"),
        ("ML_COMPLETION_TIMEOUT_S", "soon"),
        ("ML_TOKEN", "wrong"),
        ("ML_SERVER_URL", "http://x"),
        ("ML_SERVER_URL", ""),
    ):
        with monkeypatch.context() as context:
            context.setenv(variable, value)
            assert offered(served, line) == []
    assert offered(served, line) == ["pictures"]


def test_every_choice_belongs_to_an_option() -> None:
    root = program()
    groups = {name: root.get_command(None, name) for name, (_, summary) in Root.groups.items() if summary}
    parameters = {
        (name, option.name)
        for name, command in groups.items()
        for verb in getattr(command, "commands", {"": command}).values()
        for option in verb.params
    }
    anywhere = {("", name) for _, name in parameters}
    assert CHOICES.keys() - parameters - anywhere == set()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    def nobody(options: Options) -> Client:
        raise AssertionError

    assert main(["completion", shell], nobody) == 0
    assert "ml completion " in capsys.readouterr().out
    assert main(["completion", "tcsh"], nobody) == 2


#: What a shell is started with, and what its user has in the file of its settings.
SHELLS: Mapping[str, tuple[list[str], str]] = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$(ml completion bash)"'),
    "zsh": (["-f", "-i"], "autoload -U compinit; compinit -u -D; source <(ml completion zsh)"),
    "fish": (["--no-config", "-i"], "ml completion fish | source"),
}
#: What somebody types, with Tab, and the line that results.
TYPED = [
    ("ml online-endpoint show -n \t", "ml online-endpoint show -n pictures"),
    ("ml online-endp\tsh\t-n pic\t", "ml online-endpoint show -n pictures"),
    ("ml online-deployment show -e pictures -n gr\t--que\t", "ml online-deployment show -e pictures -n green --query"),
    (
        "ml online-endpoint update -n pictures --traffic gr\t50",
        "ml online-endpoint update -n pictures --traffic green=50",
    ),
    (
        "ml deployment update -n blue -e pictures --set instance_type=Standard_DS3\t--no-w\t",
        "ml deployment update -n blue -e pictures --set instance_type=Standard_DS3_v2 --no-wait",
    ),
    ("ml online-endpoint show -o tab\t", "ml online-endpoint show -o table"),
]


@pytest.mark.parametrize("shell", SHELLS)
def test_somebody_presses_tab(served: Stage, shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed: apt install {shell}")
    arguments, settings = SHELLS[shell]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # A terminal that can nothing makes no codes between the letters.
    environment = {
        **os.environ,
        "PATH": path,
        "HOME": str(tmp_path),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "200",
    }
    with Terminal(program, arguments, environment) as terminal:
        terminal.type(f"{settings}\necho rea''dy\n")
        terminal.wait_for("\nready")
        for typed, line in TYPED:
            # The beginning of the line, and a command that prints the rest.
            terminal.type(f"{typed}\x01echo got: \n")
            terminal.wait_for(f"\ngot: {line}")


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, program: str, arguments: list[str], environment: dict[str, str]) -> None:
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.execve(program, [program, *arguments], environment)
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self._read(), f"the shell prints {text!r}", detail=lambda: self._seen)

    def _read(self) -> str:
        while select.select([self._fd], [], [], 0)[0]:
            try:
                self._seen += os.read(self._fd, 65536).decode(errors="replace").replace("\r", "")
            except OSError:  # The shell has ended.
                break
        return self._seen

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._fd)

"""``ml server``: what is said about a control plane, and how one that refuses to start is heard.

A control plane that runs is started by the tests of the whole system.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from amphitrite.cli.server import server_process
from amphitrite.cli.terminal import home_directory as homes
from amphitrite.schemas.errors import Error

from ..conftest import Stage


@pytest.fixture
def home(stage: Stage) -> Path:
    return stage.directory.parent / "home"


def write_state(home: Path, **more: Any) -> dict[str, Any]:
    """What a control plane writes that is this very process."""
    (home / "header file").write_text("it's a secret\n")
    state = {
        "state": "running",
        "version": "0.2.0",
        "runtime": "local",
        "api_url": "https://127.0.0.1:8443",
        "scoring_url": "https://127.0.0.1:9443",
        "host": "127.0.0.1",
        "port": 8443,
        "scoring_port": 9443,
        "studio_url": None,
        "ca_file": "/ca.pem",
        "bundle_file": "/some where/bundle.pem",
        "identity_endpoint": "https://127.0.0.1:8443/identity/token",
        "identity_header_file": str(home / "header file"),
        "pid": os.getpid(),
        "create_time": psutil.Process().create_time(),
        "subscription": "local",
        "resource_group": "local",
        "workspace": "local",
        **more,
    }
    (home / "server.json").write_text(json.dumps(state))
    return state


def status(stage: Stage) -> dict[str, Any]:
    code, out, err = stage.run("server", "status")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_status_when_nothing_runs(stage: Stage, home: Path) -> None:
    found = status(stage)
    assert list(found) == [
        *(
            "state",
            "version",
            "runtime",
            "isolation",
            "api_url",
            "scoring_url",
            "scoring_domain",
            "studio_url",
            "ca_file",
            "home",
            "pid",
            "leader",
        ),
    ]
    assert (found["state"], found["home"], found["pid"]) == ("stopped", str(home), None)


def test_status_tells_a_living_process_from_a_dead_one(stage: Stage, home: Path) -> None:
    state = write_state(home)
    found = status(stage)
    assert (found["state"], found["pid"], found["api_url"]) == ("running", os.getpid(), state["api_url"])
    write_state(home, state="starting")
    assert status(stage)["state"] == "starting"
    write_state(home, create_time=1.0)  # another process has the number now
    assert (status(stage)["state"], status(stage)["pid"]) == ("stopped", None)


def test_status_of_one_that_does_not_answer(stage: Stage, home: Path) -> None:
    write_state(home)
    stage.machine.faults = [httpx.ReadTimeout("timed out")]
    assert status(stage)["state"] == "unhealthy"


def test_alive_is_judged_by_more_than_the_number() -> None:
    started = psutil.Process().create_time()
    assert homes.is_alive({"pid": os.getpid(), "create_time": started})
    assert not homes.is_alive({"pid": os.getpid(), "create_time": started - 60})
    ended = subprocess.Popen([sys.executable, "-c", ""])
    record = {"pid": ended.pid, "create_time": psutil.Process(ended.pid).create_time()}
    ended.wait()
    assert not homes.is_alive(record)


def test_env_can_be_read_by_a_shell(stage: Stage, home: Path) -> None:
    state = write_state(home)
    code, out, _ = stage.run("server", "env")
    script = f'{out}\nprintf "%s|%s|%s" "$IDENTITY_HEADER" "$SSL_CERT_FILE" "$ML_WORKSPACE"'
    told = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert (code, told) == (0, f"it's a secret|{state['bundle_file']}|local")
    as_json = json.loads(stage.run("server", "env", "--shell", "json")[1])
    assert [line.partition("=")[0] for line in out.splitlines()] == [f"export {name}" for name in as_json]
    assert list(as_json) == [
        *("AZUREML_DEV_URL_MFE", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"),
        *("CURL_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NODE_EXTRA_CA_CERTS"),
        *("ML_SUBSCRIPTION", "ML_RESOURCE_GROUP", "ML_WORKSPACE"),
    ]


#: Options of ``ml server env`` -> what a client's environment has, and what it must not have any
#: more.
WAYS: dict[str, tuple[set[str], set[str]]] = {
    "": ({"AZUREML_DEV_URL_MFE", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"}, set()),
    "--discovery metadata": (
        {"ARM_CLOUD_METADATA_URL", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"},
        {"AZUREML_DEV_URL_MFE"},
    ),
    "--authentication environment": (
        {"AZUREML_DEV_URL_MFE", "AZURE_AUTHORITY_HOST", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"},
        {"IDENTITY_ENDPOINT", "IDENTITY_HEADER"},
    ),
}


@pytest.mark.parametrize("options", WAYS)
def test_env_for_each_way_in(stage: Stage, home: Path, options: str) -> None:
    state = write_state(home)
    wanted, unset = WAYS[options]
    code, out, _ = stage.run("server", "env", *options.split())
    assert code == 0
    lines = out.splitlines()
    assert {line.removeprefix("unset ") for line in lines if line.startswith("unset ")} == unset
    as_json = json.loads(stage.run("server", "env", *options.split(), "--shell", "json")[1])
    assert {name for name in as_json if name.startswith(("AZURE", "ARM", "IDENTITY"))} == wanted
    assert as_json.get("AZURE_AUTHORITY_HOST", state["api_url"]) == state["api_url"]
    secret = as_json.get("AZURE_CLIENT_SECRET") or as_json["IDENTITY_HEADER"]
    assert secret == "it's a secret"
    metadata = as_json.get("ARM_CLOUD_METADATA_URL", f"{state['api_url']}/metadata/endpoints?api-version=2022-09-01")
    assert metadata == f"{state['api_url']}/metadata/endpoints?api-version=2022-09-01"


@pytest.mark.parametrize("option", ["--shell", "--authentication", "--discovery"])
def test_env_names_what_is_allowed(stage: Stage, option: str) -> None:
    code, out, err = stage.run("server", "env", option, "other")
    assert (code, out) == (2, "") and f"{option}: found `other`; allowed: " in err


def test_starting_what_runs_already(stage: Stage, home: Path) -> None:
    write_state(home)
    said = f"already running: https://127.0.0.1:8443 (pid {os.getpid()})\n"
    assert stage.run("server", "start", "-d") == (0, "", said)
    assert stage.run("server", "start", "--detach", "--port", "8443", "--scoring-port", "9443") == (0, "", said)


@pytest.fixture
def used_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.slow
def test_a_used_port_is_named_and_nothing_is_left_behind(
    stage: Stage, used_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ML_HOME", str(tmp_path / "new"))
    code, out, err = stage.run("server", "start", "-d", "--port", str(used_port), "--only-show-errors")
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and str(used_port) in err and "\nhint: " in err
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-d",)], ids=["foreground", "detached"])
@pytest.mark.parametrize(
    ("name", "says"),
    [("with space", "does not quote paths"), ("$(id)", "does not quote paths"), ("file/home", "cannot ")],
)
def test_a_home_that_cannot_be_one_is_refused_and_nothing_is_left_behind(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ML_HOME", str(tmp_path / name))
    # A process of its own: in the foreground the command becomes the control plane.
    ml = [sys.executable, "-c", "from amphitrite.cli.main import run; run()"]
    ended = subprocess.run(
        [*ml, "server", "start", *options, "--only-show-errors"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: ") and says in ended.stderr
    assert not (tmp_path / name).exists()


def test_stopping_what_does_not_run(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ML_HOME", str(tmp_path / "new"))
    assert stage.run("server", "stop") == (0, "", "no control plane was running\n")
    assert not (tmp_path / "new").exists()


def test_the_command_line_alone_says_what_to_install() -> None:
    with pytest.raises(Error) as caught:
        server_process.require_server(["json", "a_module_that_is_not_there"])
    assert caught.value == Error(
        "Unsupported",
        "the control plane is not installed; missing Python modules: a_module_that_is_not_there",
        hint="in a checkout of amphitrite: make install",
    )


def test_logs_of_all_processes(stage: Stage, home: Path) -> None:
    (home / "logs/controlplane.log").write_text("one\ntwo\n")
    (home / "logs/envoy.log").write_text("three\n")
    assert stage.run("server", "logs", "-l", "1") == (0, "controlplane: two\nenvoy: three\n", "")


@pytest.fixture
def tokyo() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


def test_logs_are_read_by_time(stage: Stage, home: Path, tokyo: None) -> None:
    """Envoy writes local time, the others UTC."""
    request = {"method": "PUT", "path": "/a", "status": 201, "ms": 1.5, "client_request_id": None}
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    (home / "logs/controlplane.log").write_text(
        '{"time": "2026-11-22T22:00:02.000Z", "level": "info", "logger": "r", "message": "PUT /a 201", '
        f"{json.dumps(request)[1:]}\n"
        '{"time": "2026-11-22T22:00:04.000Z", "level": "error", "message": "failed", "traceback": "one\\ntwo"}\n'
    )
    (home / "logs/agent.log").write_text(
        '{"time": "2026-11-22T22:00:03.500+00:00", "level": "info", "message": "table in force", "version": 7}\n'
        f'{{"time": "{now}", "level": "info", "message": "just now"}}\n'
    )
    (home / "logs/envoy.log").write_text(
        "[2026-11-23 07:00:01.123][31][info][main] [source/server/server.cc:463] starting\n  more of it\n"
    )
    assert stage.run("server", "logs")[1].splitlines()[:-1] == [
        "2026-11-22 22:00:01.123 info envoy: starting",
        "envoy:   more of it",
        "2026-11-22 22:00:02.000 info controlplane: PUT /a 201 ms=1.5",
        "2026-11-22 22:00:03.500 info agent: table in force version=7",
        "2026-11-22 22:00:04.000 error controlplane: failed",
        "  one",
        "  two",
    ]
    young = stage.run("server", "logs", "--since", "10m")[1].splitlines()
    assert len(young) == 1 and young[0].endswith(" info agent: just now")
    as_json = [json.loads(line) for line in stage.run("server", "logs", "--json")[1].splitlines()]
    assert [(line["log"], line["message"]) for line in as_json[:3]] == [
        ("envoy", "starting"),
        ("envoy", "  more of it"),
        ("controlplane", "PUT /a 201"),
    ]
    assert as_json[0]["time"] == "2026-11-22T22:00:01.123Z"


def test_no_logs_yet(stage: Stage) -> None:
    code, _, err = stage.run("server", "logs")
    assert code == 1 and err.startswith("error: no logs in ")


def test_a_server_elsewhere(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ML_SERVER_URL", "https://elsewhere")
    monkeypatch.setenv("ML_CA_FILE", "/its/ca.pem")
    found = status(stage)
    assert (found["state"], found["api_url"], found["leader"], found["pid"]) == (
        "running",
        "https://elsewhere",
        True,
        None,
    )
    variables = json.loads(stage.run("server", "env", "--shell", "json")[1])
    assert variables["AZUREML_DEV_URL_MFE"] == "https://elsewhere"
    assert variables["REQUESTS_CA_BUNDLE"] == variables["SSL_CERT_FILE"] == "/its/ca.pem"
    assert variables["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] == "/its/ca.pem"
    code, out, err = stage.run("server", "logs")
    assert (code, out) == (1, "") and err.startswith(
        "error: the logs of https://elsewhere are stored on its machine only [Unsupported]\nhint: "
    )

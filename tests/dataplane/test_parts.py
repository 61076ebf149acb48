"""The small parts of the agent that need no Envoy."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from amphitrite.dataplane.agent.settings import parse
from amphitrite.dataplane.envoy.process.binary import find_envoy
from amphitrite.dataplane.envoy.process.file_names import access_log, envoy_log
from amphitrite.dataplane.envoy.process.log_output import parse_line
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.machine.log_rotation import rotate
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.table import saved_table
from amphitrite.dataplane.table.routing_table import Address
from amphitrite.dataplane.table.saved_table import SavedTable
from amphitrite.dataplane.table.text_codec import TableText
from amphitrite.schemas.errors import Error

from .rule_table import rule_table
from .upstream import Upstream


def test_process_is_known_by_pid_and_start_time(tmp_path: Path) -> None:
    own = processes.own()
    assert own.pid == os.getpid()
    assert processes.alive(own)
    assert not processes.alive(replace(own, create_time=own.create_time - 60))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    record = processes.of(child.pid)
    assert processes.alive(record)
    assert processes.send_signal(record)
    # A zombie still has its pid until somebody asks for its end; it does not count.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.alive(record)
    child.communicate()
    assert not processes.send_signal(record)


def test_record_file_is_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "envoy.json"
    assert processes.read(path) is None
    processes.write(path, ProcessRecord(7, 1.5), digest="x")
    assert processes.read(path) == ProcessRecord(7, 1.5)
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["envoy.json"]
    path.write_text("{")
    assert processes.read(path) is None


def test_saved_table_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "routing-table.json"
    assert saved_table.load(path) is None
    with Upstream("a") as upstream:
        upstreams = dict.fromkeys(("blue", "green", "grey", "ill", "red", "solo"), upstream)
        saved = SavedTable(rule_table(upstreams, {}), 3, 2.5)
    saved_table.save(path, saved, TableText())
    assert saved_table.load(path) == saved
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text('{"table": {}}')
    with pytest.raises(Error) as caught:
        saved_table.load(path)
    assert caught.value.code == "LocalFileError"


def test_log_is_set_aside_when_full(tmp_path: Path) -> None:
    small, large = tmp_path / "a.log", tmp_path / "b.log"
    small.write_text("x")
    large.write_text("x" * 10)
    reopened: list[int] = []
    assert rotate((small, large, tmp_path / "absent"), lambda: reopened.append(1), max_bytes=10)
    assert sorted(os.listdir(tmp_path)) == ["a.log", "b.log.1"]
    assert not rotate((small,), lambda: reopened.append(1), max_bytes=10)
    assert reopened == [1]


def test_envoy_is_where_it_is_said_to_be(tmp_path: Path) -> None:
    own = tmp_path / "envoy"
    own.write_text("#!/bin/sh\n")
    with pytest.raises(Error, match=str(own)):
        find_envoy({"ENVOY": str(own)})
    own.chmod(0o700)
    assert find_envoy({"ENVOY": str(own)}) == own
    assert find_envoy({}).name == "envoy"


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("state", "run", "logs", "ca-file", "token-file", "certificate", "private-key")
    argv = ["--id", "local", "--control-plane", "https://127.0.0.1:8443"]
    argv += [word for name in names for word in (f"--{name}", f"/x/{name}")]
    settings = parse([*argv, "--listen", "[::1]:9443"])
    assert settings.proxy.listen == Address("::1", 9443)
    assert settings.table_file == Path("/x/state/routing-table.json")
    assert (settings.seed, settings.linger_s, settings.grace_s, settings.proxy.concurrency) == (None, 0.0, None, None)
    assert access_log(settings.proxy.logs) == Path("/x/logs/access.log")
    pod = ["--listen", "0.0.0.0:9443", "--logs", "-", "--seed", "/s", "--linger-s", "5", "--grace-s", "30.5"]
    settings = parse([*argv, *pod, "--concurrency", "2"])
    logs = settings.proxy.logs
    assert (logs, access_log(logs), envoy_log(logs)) == (None, None, None)
    assert (settings.seed, settings.linger_s, settings.grace_s, settings.proxy.concurrency) == (
        Path("/s"),
        5.0,
        30.5,
        2,
    )
    for option, text in (("listen", "9443"), ("linger-s", "-1"), ("grace-s", "soon"), ("concurrency", "0")):
        with pytest.raises(SystemExit):
            parse([*argv, "--listen", "127.0.0.1:9443", f"--{option}={text}"])
        assert f"'{text}' is not " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[2026-01-01 00:00:00.000][7][critical][main] [source/x.cc:1] no way", ("error", "envoy.main", "no way")),
        ("[2026-01-01 00:00:00.000][7][info][upstream] cds: [a] b", ("info", "envoy.upstream", "cds: [a] b")),
        ("anything else", ("info", "envoy", "anything else")),
    ],
)
def test_a_line_of_envoy_s_log_becomes_one_of_ours(line: str, told: tuple[str, str, str]) -> None:
    assert parse_line(line) == told

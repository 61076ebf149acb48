"""The pure parts of the local runtime, row by row: probe counts, reasons, logs, instance types."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from amphitrite.controlplane.core.desired import instance_types
from amphitrite.controlplane.core.desired.resources import Probe
from amphitrite.controlplane.runtimes import exit_reasons
from amphitrite.controlplane.runtimes.local import instance_logs, listeners
from amphitrite.controlplane.runtimes.local.probe_counts import ProbeState, step
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.table.routing_table import Address
from amphitrite.schemas.errors import Error

TWO_THEN_THREE = Probe(initial_delay=0, period=1, timeout=1, success_threshold=2, failure_threshold=3)


@pytest.mark.parametrize(
    ("results", "passing"),
    [
        ("+", "-"),
        ("++", "-+"),
        ("+-++", "---+"),
        ("++--+---", "-++++++-"),
        ("++----", "-+++--"),
        ("++---++", "-+++--+"),
    ],
)
def test_thresholds(results: str, passing: str) -> None:
    state, seen = ProbeState(passing=False), ""
    for result in results:
        state = step(state, result == "+", TWO_THEN_THREE)
        seen += "+" if state.passing else "-"
    assert seen == passing


NOISE = 'E1121 04:16:43.731600 7535 server.cc:241] "CudaDriverHelper has not been initialized."\n'
LOAD = (
    "2026-11-21T04:34:55Z E 28679 model_lifecycle.cc:642] \"failed to load 'm' version 1: Internal: Error: input "
    "\\'x\\' is odd\\n\\nAt:\\n  /a/b.py(21): initialize\\n\"\n"
    "2026-11-21T04:34:55Z I 28679 model_lifecycle.cc:777] \"failed to load 'm'\"\n"
    "error: creating server: Internal - failed to load all models\n"
)
REASON = "failed to load 'm' version 1: Internal: Error: input 'x' is odd"


def raised(why: str, *frames: str) -> str:
    """Triton's log of a Python model that raises, innermost frame first."""
    at = "".join(f"  {frame}\\n" for frame in frames)
    return (
        f"E1121 04:34:55.731600 7535 model_lifecycle.cc:642] \"failed to load 'm' version 1: Internal: {why}"
        f'\\n\\nAt:\\n{at}"\n'
    )


IMPORT = "<frozen importlib._bootstrap>(241): _call_with_frames_removed"
REASONS = [
    (raised("ValueError: no", "/h/models/ab/m/1/model.py(9): initialize"), 1, False, "m/1/model.py:9: ValueError: no"),
    (
        raised("ValueError: no", "/h/m/1/a/b.py(7): f", "/h/m/1/model.py(9): i"),
        1,
        False,
        "m/1/a/b.py:7: ValueError: no",
    ),
    (
        raised(
            "OSError: x: y",
            *("/v/lib/python3.11/site-packages/m/f.py(3): load", IMPORT, "/v/lib/python3.11/json/m/a.py(1): b"),
            *("/h/m/1/model.py(2): <module>", IMPORT),
        ),
        *(1, False, "m/1/model.py:2: OSError: x: y"),
    ),
    (
        raised("SyntaxError: invalid syntax (model.py, line 3)").replace("\\n\\nAt:\\n", ""),
        *(1, False, "m/1/model.py:3: SyntaxError: invalid syntax"),
    ),
    (
        raised("SyntaxError: invalid syntax (help.py, line 3)", IMPORT, "/h/m/1/model.py(2): <module>"),
        *(1, False, "m/1/model.py:2: SyntaxError: invalid syntax (help.py, line 3)"),
    ),
    (
        raised("RuntimeError: odd", "/x/triton/backends/m/session.py(30): open"),
        *(1, False, "failed to load 'm' version 1: Internal: RuntimeError: odd"),
    ),
    (NOISE + LOAD, 1, False, REASON),
    (NOISE + LOAD + LOAD, 1, False, REASON),
    (NOISE + LOAD, None, False, REASON),
    (NOISE + LOAD, 1, True, "tritonserver exited with code 1"),
    (NOISE + LOAD, -9, False, "tritonserver was killed by SIGKILL"),
    (NOISE, 1, False, "tritonserver exited with code 1"),
    (NOISE + "error: creating server: Internal - no\n", 1, False, "error: creating server: Internal - no"),
    ("x: error while loading shared libraries: l.so\n", 127, False, "x: error while loading shared libraries: l.so"),
    ('E1121 04:16:43.7 75 a.cc:1] "Poll failed for x"\n', 1, False, "Poll failed for x"),
]


@pytest.mark.parametrize(("log", "exit_code", "was_ready", "reason"), REASONS)
def test_reasons(log: str, exit_code: int | None, was_ready: bool, reason: str) -> None:
    assert exit_reasons.reason(log, exit_code, was_ready=was_ready) == reason


def test_a_port_belongs_to_the_process_that_listens_on_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        assert listeners.owns_grpc(processes.own(), at(port), 1)
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
            assert not listeners.owns_grpc(processes.of(other.pid), at(port), 1)
            with socket.create_connection(("127.0.0.1", port)) as client:
                # The other end of a connection has a port too, on which nobody listens.
                assert not listeners.owns_grpc(processes.own(), at(client.getsockname()[1]), 1)
            other.communicate(b"\n")
        gone = processes.ProcessRecord(other.pid, 0.0)
    assert not listeners.owns_grpc(processes.own(), at(port), 1)
    assert not listeners.owns_grpc(gone, at(port), 1)


def at(port: int) -> Address:
    return Address("127.0.0.1", 1, port)


def test_a_reason_is_bounded() -> None:
    text = exit_reasons.reason(LOAD.replace("is odd", "x" * 9000), 1, was_ready=False)
    assert len(text) == exit_reasons.MAX_CHARACTERS


def test_a_log_is_rotated_and_read_across_the_rotation(tmp_path: Path) -> None:
    log = instance_logs.open_for_append(tmp_path)
    try:
        with open(log, "w", closefd=False) as server:
            for number in range(10):
                print(number, file=server, flush=True)
                instance_logs.rotate(tmp_path, max_bytes=6)
    finally:
        os.close(log)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["server.log", "server.log.1"]
    assert all(p.stat().st_size <= 8 for p in tmp_path.iterdir())
    assert instance_logs.tail(tmp_path, 3) == ["7", "8", "9"]
    assert instance_logs.tail(tmp_path, 0) == []
    assert instance_logs.tail(tmp_path / "nothing", 3) == []


#: As Triton 2.51 writes it for each connection to a UNIX socket.
NODELAY = (
    "[\x1b[1;33mWARN\x1b[0;39m]  \x1b[33mevhtp.c:4050     \x1b[39m\x1b[94mNODELAY NOT SUPPORTED\x1b[39m :: "
    "\x1b[35m(errno: Operation not supported)\x1b[39m\n"
)


def test_connections_take_no_room_in_a_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        f"{NODELAY}one\na print without a line end{NODELAY}\n{NODELAY * 9}WARN evhtp.c of a model\n{NODELAY}"
    )
    said = ["one", "a print without a line end", "WARN evhtp.c of a model"]
    assert instance_logs.tail(tmp_path, 10) == said
    assert instance_logs.end(tmp_path, 24) == said[-1]
    for _ in range(3):
        instance_logs.rotate(tmp_path, max_bytes=1000)
        assert log.stat().st_size == 0
        assert instance_logs.tail(tmp_path, 10) == said
        log.write_text(NODELAY * 9)
    log.write_text(f"{NODELAY * 9}{'x' * 990}\n")
    instance_logs.rotate(tmp_path, max_bytes=1000)
    assert (tmp_path / "server.log.1").stat().st_size <= 1000
    assert instance_logs.tail(tmp_path, 10) == ["x" * 990]
    assert (tmp_path / "server.log.1").stat().st_mode & 0o777 == 0o600


def test_blank_lines_of_a_log_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("one\n\ntwo\n\n\nthree\n\n")
    assert instance_logs.tail(tmp_path, 2) == ["two", "", "", "three", ""]
    assert instance_logs.tail(tmp_path, 9) == ["one", "", "two", "", "", "three", ""]


@pytest.mark.parametrize(
    ("name", "cores", "gpus", "gpu_class"),
    [
        ("Standard_NC6s_v3", 6, 1, "V100"),
        ("standard_nc24ads_a100_v4", 24, 1, "A100"),
        ("STANDARD_DS3_V2", 4, 0, None),
        ("Standard_F4s_v2", 4, 0, None),
        ("Standard_D2as_v4", 2, 0, None),
        ("defaultinstancetype", 2, 0, None),
    ],
)
def test_instance_types(name: str, cores: int, gpus: int, gpu_class: str | None) -> None:
    found = instance_types.find(name)
    assert (found.cores, found.gpus, found.gpu_class) == (cores, gpus, gpu_class)


def test_an_unknown_instance_type_has_a_suggestion() -> None:
    with pytest.raises(Error) as caught:
        instance_types.find("Standard_NC6_v3")
    assert caught.value.code == "BadArgument"
    assert "Standard_NC6s_v3" in (caught.value.hint or "")

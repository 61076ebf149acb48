"""Supervision of a process while this process has no descriptor left, or while something in it
fails."""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from amphitrite.controlplane.core.desired.containers import Container
from amphitrite.controlplane.runtimes.local import instance_logs, instance_processes, supervision
from amphitrite.controlplane.runtimes.local.instance_records import InstanceRecord
from amphitrite.controlplane.runtimes.local.supervision import Supervision
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.triton import http_api

from ...ports import free_port
from ...waiting import wait_until
from .runtime_subjects import PROBE, workload

#: A server that answers each GET with 200, as Triton's routes of health do.
SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
#: More failed probes in a row than any threshold here.
PROBES = 2 * PROBE.failure_threshold + 1


@contextlib.contextmanager
def no_descriptors(spare: int = 0) -> Iterator[Callable[[], None]]:
    """This process can open nothing more, but ``spare`` descriptors. The function that it yields
    takes what has been closed since, for example by threads of other tests or the collector of
    garbage."""
    limits, taken = resource.getrlimit(resource.RLIMIT_NOFILE), []
    highest = os.dup(0)
    os.close(highest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 32, limits[1]))

    def take_all() -> None:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))

    try:
        take_all()
        for _ in range(spare):
            os.close(taken.pop())
        yield take_all
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for one in taken:
            os.close(one)


class Instance:
    """A ready instance, as a control plane adopts it."""

    def __init__(self, home: Path) -> None:
        self.directory, self.home, port = home / "instances" / "one", home, free_port()
        self.directory.mkdir(parents=True)
        marker = {instance_processes.MARKER: instance_processes.marker(home, "one")}
        log = instance_logs.open_for_append(self.directory)
        argv = [sys.executable, "-c", SERVER, str(port)]
        process = instance_processes.spawn(argv, os.environ | marker, self.directory, log)
        os.close(log)
        spec = replace(workload(), container=Container("x", port, "/live", "/ready", "/", "/models", "m"))
        now = time.time()
        self.record = InstanceRecord(
            "one", spec, 0, 0, PROBE, PROBE, now, port=port, process=process, phase="ready", ready_at=now
        )
        self.pid = process.pid

    def requests(self) -> int:
        return (self.directory / instance_logs.FILE).read_text().count("GET")

    def supervise(self) -> Supervision:
        def launch(record: InstanceRecord) -> InstanceRecord:
            raise AssertionError("nothing starts here")

        return Supervision(self.home, self.directory, self.record, launch, lambda: None)


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    monkeypatch.setattr(supervision, "FAULT_PAUSE_S", 0.02)
    one = Instance(tmp_path)
    wait_until(lambda: supervision.Supervision._ready(one.record, http_api.anybody), "the instance answers")
    try:
        yield one
    finally:
        instance_processes.kill_all(instance_processes.marker(tmp_path, "one"))
        instance_processes.reap(one.pid)


def said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in record.getMessage() for record in caplog.records)


def test_probes_without_descriptors_are_no_results(instance: Instance, caplog: pytest.LogCaptureFixture) -> None:
    asked = instance.requests()
    supervised = instance.supervise()
    try:
        wait_until(lambda: instance.requests() > asked, "the first probe")
        with no_descriptors() as take_all:

            def tried() -> bool:
                take_all()
                return said(caplog, "cannot probe one") > PROBES

            wait_until(tried, "probes were tried without descriptors")
            assert (supervised.record.phase, supervised.record.live) == ("ready", True)
        # It is supervised as before.
        supervised.stop(0)
        wait_until(lambda: supervised.record.phase == "exited", "the stop is carried out")
        assert supervised.record.exit_code is not None
    finally:
        supervised.close()


def test_an_instance_is_supervised_once_there_are_descriptors(
    instance: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    """Its process cannot even be looked at when its thread begins."""
    with no_descriptors(spare=1):
        supervised = instance.supervise()
        wait_until(lambda: said(caplog, "supervision of one failed") > PROBES, "supervision was tried")
        assert supervised.record.phase == "ready"
    try:
        assert processes.alive(instance.record.process or processes.own())
        supervised.stop(0)
        wait_until(lambda: supervised.record.phase == "exited", "the stop is carried out")
    finally:
        supervised.close()


def test_an_unexpected_failure_is_logged_and_supervision_goes_on(
    instance: Instance, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(directory: Path) -> None:
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(instance_logs, "rotate", fails)
        supervised = instance.supervise()
        wait_until(lambda: said(caplog, "supervision of one failed") > 1, "it failed and went on")
    try:
        assert any(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)
        assert supervised.record.phase == "ready"
        subprocess.run(["kill", "-9", str(instance.pid)], check=True)
        wait_until(lambda: supervised.record.phase == "exited", "the exit is noticed")
        assert supervised.record.exit_code == -9
    finally:
        supervised.close()

"""The agent with a proxy that is none of the product's: it knows the protocol alone, and keeps its
order."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amphitrite.dataplane.agent.agent import Agent
from amphitrite.dataplane.agent.control_plane_client import ControlPlane
from amphitrite.dataplane.agent.settings import Settings
from amphitrite.dataplane.proxy.proxy import (
    AgentCallbacks,
    GracefulShutdown,
    Progress,
    Proxy,
    ProxyProcess,
    ProxySettings,
)
from amphitrite.dataplane.table.routing_table import Address, RoutingTable
from amphitrite.dataplane.table.saved_table import SavedTable, load, save
from amphitrite.dataplane.table.seed import encode_seed
from amphitrite.dataplane.table.text_codec import TableText
from amphitrite.schemas.errors import Error

from .agents import eventually
from .fake_control_plane import TOKEN, FakeControlPlane


class RecordingProxy:
    """Puts each table into force at once, and records what it was asked to do. ``refusing``: it
    cannot be started."""

    def __init__(self, agent: AgentCallbacks, *, predecessor: bool = False, refusing: bool = False) -> None:
        self.calls: list[str] = []
        self._agent, self._predecessor, self._refusing = agent, predecessor, refusing
        self._progress = Progress()

    def prepare(self, table: SavedTable | None) -> None:
        self.calls.append(f"prepare {table.table.version if table else None}")

    def has_predecessor(self) -> bool:
        return self._predecessor

    def start(self, predecessor_grace_s: float) -> None:
        self.calls.append(f"start {predecessor_grace_s:g}")
        if self._refusing:
            raise Error("PortInUse", "the port is in use")

    def submit(self, table: RoutingTable) -> None:
        self.calls.append(f"submit {table.version}")
        self._agent.save_table(SavedTable(table, table.version, 0.0))
        self._progress = Progress(table.version, table.version)
        self._agent.on_progress()

    def maintain(self) -> None: ...

    def stop(self, shutdown: GracefulShutdown) -> None:
        self.calls.append(f"stop {shutdown.linger_s:g} {shutdown.grace_s:g}")

    def close(self) -> None:
        self.calls.append("close")

    def progress(self) -> Progress:
        return self._progress

    def process(self) -> ProxyProcess:
        return ProxyProcess(7, "3.1")

    def metrics(self) -> Mapping[str, Any]:
        return {"began": 1.0, "counters": {}, "in_flight": {}, "used": {}}

    def samples(self) -> Mapping[str, Any] | None:
        return None

    def samples_sent(self) -> None: ...

    def drain_timeout_s(self) -> float:
        return 400.0

    def children(self) -> tuple[int, ...]:
        return ()

    def fail(self) -> None:
        """One of its threads fails."""
        self._agent.start_thread("broken", _raise)


def _raise() -> None:
    raise ValueError("broken")


class Started:
    """An agent in a thread of this process."""

    def __init__(self, settings: Settings, **proxy: bool) -> None:
        self.proxy: RecordingProxy
        self.agent = Agent(settings, lambda _, callbacks: self._make(callbacks, proxy))
        self.exit_code: int | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _make(self, callbacks: AgentCallbacks, proxy: dict[str, bool]) -> Proxy:
        self.proxy = RecordingProxy(callbacks, **proxy)
        return self.proxy

    def _run(self) -> None:
        try:
            self.exit_code = self.agent.run()
        except Error:
            self.exit_code = -1

    def wait(self) -> int | None:
        self._thread.join(20)
        return self.exit_code


@pytest.fixture
def control_plane(certificate: tuple[Path, Path]) -> Iterator[FakeControlPlane]:
    made = FakeControlPlane(*certificate)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def settings(tmp_path: Path, certificate: tuple[Path, Path], control_plane: FakeControlPlane) -> Settings:
    (tmp_path / "token").write_text(TOKEN)
    proxy = ProxySettings("test", tmp_path, tmp_path, None, Address("127.0.0.1", 1), *certificate)
    return Settings(proxy, ControlPlane(control_plane.url, certificate[0], tmp_path / "token"))


def saved(settings: Settings, version: int, drain_timeout_s: float = 0.0) -> None:
    save(settings.table_file, SavedTable(RoutingTable(version), version, drain_timeout_s), TableText())


def test_a_new_proxy_gets_the_control_plane_s_table(settings: Settings, control_plane: FakeControlPlane) -> None:
    started = Started(settings)
    control_plane.publish(RoutingTable(4))
    control_plane.wait_for(acknowledged_version=4)
    assert control_plane.reports[-1]["envoy"] == {"pid": 7, "version": "3.1"}
    found = load(settings.table_file)
    assert found is not None and found.table.version == 4
    started.agent.stop()
    assert started.wait() == 0
    # How long requests in flight get is the table's choice, up to three minutes.
    assert started.proxy.calls[-2:] == ["stop 0 180", "close"]
    assert {"prepare None", "start 1", "submit 4"} <= set(started.proxy.calls)
    assert control_plane.gone == ["test"]


@pytest.mark.parametrize(
    ("table", "seed", "calls"),
    [
        (5, None, ["prepare 5", "start 30"]),
        (None, 3, ["prepare 3", "start 1"]),
        (5, 3, ["prepare 5", "start 30"]),
        (5, 6, ["prepare 5", "start 30", "submit 6"]),
    ],
)
def test_what_a_proxy_begins_with(settings: Settings, table: int | None, seed: int | None, calls: list[str]) -> None:
    """Its own table before any other, also where the seed is newer."""
    if table is not None:
        saved(settings, table, drain_timeout_s=30.0)
    if seed is not None:
        settings = replace(settings, seed=settings.proxy.state / "seed", grace_s=9.0, linger_s=0.5)
        assert settings.seed is not None
        settings.seed.write_bytes(encode_seed(RoutingTable(seed)))
    started = Started(settings, predecessor=True)
    eventually(lambda: len(started.proxy.calls) >= len(calls))
    started.agent.stop()
    assert started.wait() == 0
    assert started.proxy.calls == [*calls, "stop 0.5 9" if seed is not None else "stop 0 180", "close"]


def test_a_part_that_fails_ends_the_agent_and_not_the_proxy(
    settings: Settings, control_plane: FakeControlPlane
) -> None:
    started = Started(settings)
    eventually(lambda: bool(control_plane.reports))
    started.proxy.fail()
    assert started.wait() == 1
    assert started.proxy.calls == ["prepare None", "start 1", "close"]
    assert control_plane.gone == []


def test_a_proxy_that_cannot_be_started_is_closed(settings: Settings) -> None:
    started = Started(settings, refusing=True)
    assert started.wait() == -1
    assert started.proxy.calls == ["prepare None", "start 1", "close"]

"""A certificate, and one agent with one Envoy for all tests that only ask; those that kill make
their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ..certificate import write_certificate
from .agents import BEARER, INFER, RunningAgent, eventually
from .grpc_upstream import GrpcUpstream
from .minting import mint
from .rule_table import DOMAIN, REVOKED_KEY, REVOKED_KID, before, rule_table
from .upstream import Upstream

MakeAgent = Callable[[], RunningAgent]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def make_agent(tmp_path: Path, certificate: tuple[Path, Path]) -> Iterator[MakeAgent]:
    """Agents that are not started yet; whatever is left of them is ended after the test."""
    made: list[RunningAgent] = []

    def make() -> RunningAgent:
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(RunningAgent(directory, *certificate))
        return made[-1]

    yield make
    for agent in made:
        agent.close()


@pytest.fixture(scope="session")
def by_grpc() -> Iterator[dict[str, GrpcUpstream]]:
    """Those of the upstreams of ``rules`` that speak gRPC too."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(GrpcUpstream(name)) for name in ("blue", "green")}


@pytest.fixture(scope="session")
def rules(
    tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path], by_grpc: dict[str, GrpcUpstream]
) -> Iterator[tuple[RunningAgent, dict[str, Upstream]]]:
    """One agent with everything that a request can meet (see ``rule_table``) and the upstreams by
    name."""
    names = ("blue", "green", "grey", "ill", "red", "solo")
    with ExitStack() as stack:
        upstreams = {name: stack.enter_context(Upstream(name)) for name in names}
        agent = RunningAgent(tmp_path_factory.mktemp("agent"), *certificate)
        stack.callback(agent.close)
        agent.options = ("--scoring-domain", DOMAIN)
        agent.start()
        table = rule_table(upstreams, by_grpc)
        agent.control_plane.publish(before(table))
        agent.control_plane.wait_for(acknowledged_version=1, timeout=30)
        for endpoint, revoked in (("images", REVOKED_KEY), ("tokens", mint(kid=REVOKED_KID))):
            shown = {"authorization": f"Bearer {revoked}"}
            assert agent.client.post(INFER.replace("images", endpoint), headers=shown).status_code == 200
        agent.put_in_force(table)
        upstreams["ill"].ready = False
        eventually(lambda: agent.client.post("/endpoints/ill/v2", headers=BEARER).status_code == 503)
        yield agent, upstreams
        # Whatever clients have done, nothing failed in Envoy. Of its start it says nothing.
        said = (agent.logs / "envoy.log").read_text().splitlines()
        assert [line for line in said if "][error]" in line or "][info][main]" in line] == []


@pytest.fixture
def scoring(rules: tuple[RunningAgent, dict[str, Upstream]]) -> Iterator[RunningAgent]:
    """The shared agent, with upstreams that remember nothing and hold nobody."""
    agent, upstreams = rules
    for upstream in upstreams.values():
        upstream.hold()
        upstream.requests.clear()
    yield agent
    for upstream in upstreams.values():
        upstream.release()

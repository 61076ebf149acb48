"""How an agent is told where everything is.

Decides the command line and the names of the files in the agent's directories. Read once, in ``__main__``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amphitrite.dataplane.follow import ControlPlane
from amphitrite.dataplane.routing import Address


@dataclass(frozen=True, slots=True)
class Settings:
    """``state``, ``run`` (sockets) and ``logs`` are directories; ``id`` is unique among a control plane's agents."""

    id: str
    state: Path
    run: Path
    logs: Path
    control_plane: ControlPlane
    listen: Address
    certificate: Path
    private_key: Path

    @property
    def table_file(self) -> Path:
        return self.state / "routing-table.json"

    @property
    def bootstrap_file(self) -> Path:
        return self.state / "bootstrap.json"

    @property
    def envoy_record(self) -> Path:
        return self.state / "envoy.json"

    @property
    def agent_record(self) -> Path:
        return self.state / "agent.json"

    @property
    def lock_file(self) -> Path:
        return self.state / "agent.lock"

    @property
    def agent_socket(self) -> Path:
        return self.run / "ads.sock"

    @property
    def admin_socket(self) -> Path:
        return self.run / "envoy-admin.sock"

    @property
    def access_log(self) -> Path:
        return self.logs / "access.log"

    @property
    def envoy_log(self) -> Path:
        return self.logs / "envoy.log"


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Exits with status 2 on a bad command line."""
    parser = argparse.ArgumentParser(
        prog="python -m amphitrite.dataplane", description="Keeps one Envoy in step with the control plane."
    )
    parser.add_argument("--id", required=True, help="this agent's name")
    parser.add_argument("--state", required=True, type=Path, help="directory for what must survive a restart")
    parser.add_argument("--run", required=True, type=Path, help="directory for UNIX sockets")
    parser.add_argument("--logs", required=True, type=Path, help="directory for Envoy's logs")
    parser.add_argument("--control-plane", required=True, help="URL of the control plane")
    parser.add_argument("--ca-file", required=True, type=Path, help="who may sign the control plane's certificate")
    parser.add_argument("--token-file", required=True, type=Path, help="the agents' bearer token")
    parser.add_argument("--listen", required=True, type=_address, metavar="HOST:PORT", help="for clients")
    parser.add_argument("--certificate", required=True, type=Path, help="PEM chain shown to clients")
    parser.add_argument("--private-key", required=True, type=Path, help="its key, PEM")
    given = parser.parse_args(arguments)
    return Settings(
        id=given.id,
        state=given.state.absolute(),
        run=given.run.absolute(),
        logs=given.logs.absolute(),
        control_plane=ControlPlane(given.control_plane, given.ca_file, given.token_file),
        listen=given.listen,
        certificate=given.certificate,
        private_key=given.private_key,
    )


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return Address(host.strip("[]"), int(port))

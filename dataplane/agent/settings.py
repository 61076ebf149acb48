"""How an agent is told where everything is.

Decides the command line and the names of the files in the agent's directories. Read once, in ``__main__``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amphitrite.dataplane.agent.control_plane_client import ControlPlane
from amphitrite.dataplane.table.routing_table import Address


@dataclass(frozen=True, slots=True)
class Settings:
    """``state``, ``run`` (sockets) and ``logs`` are directories; ``id`` is unique among a control plane's agents.

    ``logs`` None: Envoy's access log goes to standard output, its own log to the agent's. ``seed``: see ``seed.py``;
    the file need not be there. ``linger_s``, ``grace_s``: see ``departure.py``; a ``grace_s`` of None is as long as the
    table in force gives its requests. ``concurrency``: Envoy's worker threads; None: as machine and quota allow.
    ``metrics_every_s``: how often Envoy is asked for its numbers. ``scoring_domain``: see ``envoy.hosts``.
    """

    id: str
    state: Path
    run: Path
    logs: Path | None
    control_plane: ControlPlane
    listen: Address
    certificate: Path
    private_key: Path
    seed: Path | None = None
    linger_s: float = 0.0
    grace_s: float | None = None
    concurrency: int | None = None
    metrics_every_s: float = 5.0
    scoring_domain: str | None = None

    @property
    def table_file(self) -> Path:
        return self.state / "routing-table.json"

    @property
    def metrics_file(self) -> Path:
        return self.state / "metrics.json"

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
    def access_log(self) -> Path | None:
        return None if self.logs is None else self.logs / "access.log"

    @property
    def envoy_log(self) -> Path | None:
        return None if self.logs is None else self.logs / "envoy.log"


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Exits with status 2 on a bad command line."""
    parser = argparse.ArgumentParser(
        prog="python -m amphitrite.dataplane", description="Keeps one Envoy in step with the control plane."
    )
    parser.add_argument("--id", required=True, help="this agent's name")
    parser.add_argument("--state", required=True, type=Path, help="directory for what must survive a restart")
    parser.add_argument("--run", required=True, type=Path, help="directory for UNIX sockets")
    parser.add_argument(
        "--logs",
        required=True,
        help="directory for Envoy's logs; -: requests to stdout, all else to stderr, as JSON lines",
    )
    parser.add_argument("--control-plane", required=True, help="URL of the control plane")
    parser.add_argument("--ca-file", required=True, type=Path, help="who may sign the control plane's certificate")
    parser.add_argument("--token-file", required=True, type=Path, help="the agents' bearer token")
    parser.add_argument("--listen", required=True, type=_address, metavar="HOST:PORT", help="for clients")
    parser.add_argument("--certificate", required=True, type=Path, help="PEM chain shown to clients")
    parser.add_argument("--private-key", required=True, type=Path, help="its key, PEM")
    parser.add_argument("--seed", type=Path, help="file with the table to begin with when no control plane answers")
    parser.add_argument(
        "--linger-s",
        type=_seconds,
        default=0.0,
        metavar="S",
        help="when told to end, take new connections for so long, while health checks fail (default 0)",
    )
    parser.add_argument(
        "--grace-s",
        type=_seconds,
        metavar="S",
        help="when told to end, wait at most so long for requests in flight (default: the longest that the table in "
        "force gives its requests, at most 180)",
    )
    parser.add_argument(
        "--concurrency",
        type=_threads,
        metavar="N",
        help="Envoy's worker threads (default: the cores, the CPU quota rounded up, at most 8)",
    )
    parser.add_argument(
        "--metrics-every-s",
        type=_seconds,
        default=5.0,
        metavar="S",
        help="how often Envoy's numbers are gathered and reported (default 5)",
    )
    parser.add_argument("--scoring-domain", metavar="DOMAIN", help="endpoints are also at <endpoint>.DOMAIN")
    given = parser.parse_args(arguments)
    return Settings(
        id=given.id,
        state=given.state.absolute(),
        run=given.run.absolute(),
        logs=None if given.logs == "-" else Path(given.logs).absolute(),
        control_plane=ControlPlane(given.control_plane, given.ca_file, given.token_file),
        listen=given.listen,
        certificate=given.certificate,
        private_key=given.private_key,
        seed=given.seed,
        linger_s=given.linger_s,
        grace_s=given.grace_s,
        concurrency=given.concurrency,
        metrics_every_s=max(given.metrics_every_s, 0.1),
        scoring_domain=given.scoring_domain,
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to a day")
    return value


def _threads(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1024")
    return int(text)


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return Address(host.strip("[]"), int(port))

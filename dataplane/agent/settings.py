"""The agent's command line.

Decides its options, and the names of the agent's own files. Read once, in ``__main__``. Must
not know what the values are used for.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amphitrite.dataplane.agent.control_plane_client import ControlPlane
from amphitrite.dataplane.proxy.proxy import ProxySettings
from amphitrite.dataplane.table.routing_table import Address

_SECONDS_MAX = 86400
_THREADS_MAX = 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """``proxy``: what the proxy is built from; the agent has the same id and directories.

    ``seed``: the file with the table to begin with when no control plane answers (see ``seed.py``);
    it may be absent. ``linger_s``, ``grace_s``: see ``GracefulShutdown``; a ``grace_s`` of None
    stands for the longest time that the table in force gives a request.
    """

    proxy: ProxySettings
    control_plane: ControlPlane
    seed: Path | None = None
    linger_s: float = 0.0
    grace_s: float | None = None

    @property
    def table_file(self) -> Path:
        return self.proxy.state / "routing-table.json"

    @property
    def agent_record(self) -> Path:
        return self.proxy.state / "agent.json"

    @property
    def lock_file(self) -> Path:
        return self.proxy.state / "agent.lock"


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """The settings of a command line; None: of this process. Exits with status 2 on a bad one."""
    parser = argparse.ArgumentParser(
        prog="python -m amphitrite.dataplane", description="Keeps one proxy in step with the control plane."
    )
    parser.add_argument("--id", required=True, help="this agent's name")
    parser.add_argument("--state", required=True, type=Path, help="directory for what must survive a restart")
    parser.add_argument("--run", required=True, type=Path, help="directory for UNIX sockets")
    parser.add_argument(
        "--logs",
        required=True,
        help="directory for the proxy's logs; -: requests to stdout, all else to stderr, as JSON lines",
    )
    parser.add_argument("--control-plane", required=True, help="URL of the control plane")
    parser.add_argument("--ca-file", required=True, type=Path, help="who may sign the control plane's certificate")
    parser.add_argument("--token-file", required=True, type=Path, help="the agents' bearer token")
    parser.add_argument("--listen", required=True, type=_address, metavar="HOST:PORT", help="where clients connect")
    parser.add_argument("--certificate", required=True, type=Path, help="PEM chain shown to clients")
    parser.add_argument("--private-key", required=True, type=Path, help="its key, PEM")
    parser.add_argument("--seed", type=Path, help="file with the table to begin with when no control plane answers")
    parser.add_argument(
        "--linger-s",
        type=_seconds,
        default=0.0,
        metavar="S",
        help="after SIGTERM, accept new connections for this long while health checks fail (default 0)",
    )
    parser.add_argument(
        "--grace-s",
        type=_seconds,
        metavar="S",
        help="after that, wait at most this long for requests in flight (default: the longest time that the table in "
        "force gives a request, at most 180)",
    )
    parser.add_argument(
        "--concurrency",
        type=_threads,
        metavar="N",
        help="the proxy's worker threads (default: the cores, the CPU quota rounded up, at most 8)",
    )
    parser.add_argument(
        "--metrics-every-s",
        type=_seconds,
        default=5.0,
        metavar="S",
        help="how often the proxy's counters are read and reported (default 5)",
    )
    parser.add_argument("--scoring-domain", metavar="DOMAIN", help="serve endpoints at <endpoint>.DOMAIN too")
    options = parser.parse_args(arguments)
    return Settings(
        proxy=ProxySettings(
            id=options.id,
            state=options.state.absolute(),
            run=options.run.absolute(),
            logs=None if options.logs == "-" else Path(options.logs).absolute(),
            listen=options.listen,
            certificate=options.certificate,
            private_key=options.private_key,
            concurrency=options.concurrency,
            metrics_every_s=max(options.metrics_every_s, 0.1),
            scoring_domain=options.scoring_domain,
        ),
        control_plane=ControlPlane(options.control_plane, options.ca_file, options.token_file),
        seed=options.seed,
        linger_s=options.linger_s,
        grace_s=options.grace_s,
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < _SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to a day")
    return value


def _threads(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _THREADS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_THREADS_MAX}")
    return int(text)


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return Address(host.strip("[]"), int(port))

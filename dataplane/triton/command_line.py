"""Triton's command line and environment.

Decides, purely, with which options and variables one instance runs: HTTP and gRPC on a UNIX socket
or a port each and nothing else, all models of one repository or none, and no access to the services
that control the server. Must not know where Triton comes from or who keeps the process. Source:
``tritonserver --help``.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from amphitrite.dataplane.table.routing_table import ADMIN_HEADER, InstanceAddress, SocketAddress
from amphitrite.dataplane.triton.installation import Installation, library_path

#: The machine's variables that Triton's processes get. All others stay with the control plane.
_PASSED = ("HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER")
_PASSED_PREFIXES = ("CUDA_", "NVIDIA_")

#: Triton's groups of APIs that predictions do not need. Proxies refuse them, and so does the server
#: to every request that comes through a proxy.
RESTRICTED = "model-repository,shared-memory,trace,logging"
_RESTRICTION = f"{RESTRICTED}:{ADMIN_HEADER}=local"
#: The ports that Triton is given beside a UNIX socket. It opens neither, but the second one becomes
#: part of the path: ``unix:/d/grpc`` and 8001 make ``/d/grpc:8001``.
_HTTP_PORT, _GRPC_PORT = 8000, 8001
LONGEST_SOCKET_NAME = f"grpc:{_GRPC_PORT}"

#: Options that not every Triton has.
HTTP_RESTRICTED, GRPC_RESTRICTED = "--http-restricted-api", "--grpc-restricted-protocol"
MAX_INPUT_SIZE = "--http-max-input-size"

#: The largest response cache of an instance, for models with ``response_cache`` in config.pbtxt.
#: Memory is taken as responses come.
RESPONSE_CACHE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """What differs between instances.

    - ``shm_prefix``: the prefix of each region in /dev/shm of this instance's Python stubs, so that
      what a killed instance leaves can be found.
    - ``exit_timeout_s``: how long Triton lets requests finish after SIGTERM.
    - ``max_input_bytes``: the largest request body by HTTP; None: Triton's default.
    - ``supported``: which of the options that not every Triton has this one has.
    """

    repository: Path
    backends: Path
    address: InstanceAddress
    shm_prefix: str
    exit_timeout_s: int = 30
    max_input_bytes: int | None = None
    supported: frozenset[str] = frozenset()


def socket_address(directory: Path) -> SocketAddress:
    """Where a Triton listens whose UNIX sockets are in ``directory``."""
    return SocketAddress(str(directory / "http"), str(directory / LONGEST_SOCKET_NAME))


def arguments(installation: Installation, options: Options) -> list[str]:
    """The argument vector."""
    limit = options.max_input_bytes
    return [
        str(installation.binary),
        f"--model-repository={options.repository}",
        "--model-control-mode=none",
        "--exit-on-error=true",
        "--strict-readiness=true",
        f"--exit-timeout-secs={options.exit_timeout_s}",
        f"--backend-directory={options.backends}",
        f"--backend-config=python,shm-region-prefix-name={options.shm_prefix}",
        *_response_cache(installation),
        "--allow-http=true",
        *_http(options.address),
        *([f"{MAX_INPUT_SIZE}={limit}"] if limit is not None and MAX_INPUT_SIZE in options.supported else []),
        *([f"{HTTP_RESTRICTED}={_RESTRICTION}"] if HTTP_RESTRICTED in options.supported else []),
        *_grpc(options),
        "--allow-metrics=false",
        "--allow-sagemaker=false",
        "--allow-vertex-ai=false",
        "--log-format=ISO8601",
    ]


def _http(address: InstanceAddress) -> list[str]:
    if isinstance(address, SocketAddress):
        return [f"--http-address=unix:{address.path}", f"--http-port={_HTTP_PORT}"]
    return [f"--http-address={address.host}", f"--http-port={address.port}"]


def _grpc(options: Options) -> list[str]:
    address = options.address
    if isinstance(address, SocketAddress):
        # gRPC decodes what is encoded as in a URL.
        host, port = f"unix:{(address.grpc_path or '').replace('%', '%25')}".removesuffix(f":{_GRPC_PORT}"), _GRPC_PORT
    else:
        host, port = address.host, address.grpc_port or 0
    if not address.by_grpc:
        return ["--allow-grpc=false"]
    return [
        "--allow-grpc=true",
        f"--grpc-address={host}",
        f"--grpc-port={port}",
        *([f"{GRPC_RESTRICTED}={_RESTRICTION}"] if GRPC_RESTRICTED in options.supported else []),
    ]


def _response_cache(installation: Installation) -> list[str]:
    if installation.caches is None:
        return []
    return [f"--cache-directory={installation.caches}", f"--cache-config=local,size={RESPONSE_CACHE_BYTES}"]


def environment(
    installation: Installation,
    machine: Mapping[str, str],
    *,
    marker: str,
    cores: int,
    gpus: bool,
    variables: Mapping[str, str],
) -> dict[str, str]:
    """The environment: a few of the machine's variables, the deployment's, and ours, which take
    precedence.

    ``marker``: identifies the instance's processes. ``cores``: how many the model may use.
    ``gpus``: whether it may use the machine's GPUs.
    """
    passed = {n: v for n, v in machine.items() if n in _PASSED or n.startswith(_PASSED_PREFIXES)}
    passed["PYTHONUNBUFFERED"] = "1"
    if not gpus:
        passed["CUDA_VISIBLE_DEVICES"] = ""
    ours = {"AMPHITRITE_INSTANCE": marker, "AMPHITRITE_CORES": str(cores)}
    path = machine.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    if installation.stub is not None:
        # The stub's Python finds its library, and this environment's packages, through the first
        # `python3` on PATH.
        path = f"{Path(sys.executable).parent}:{path}"
        ours["PYTHONPATH"] = sysconfig.get_path("purelib")
    ours["PATH"] = path
    if libraries := library_path(installation, machine):
        ours["LD_LIBRARY_PATH"] = libraries
    return {**passed, **variables, **ours}

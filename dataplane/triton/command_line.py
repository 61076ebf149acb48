"""Triton's command line and environment.

Decides, purely, with which options and variables one instance runs: HTTP and gRPC on a port each
and nothing else, all models of one repository or none, and no access to the services that control
the server. Must not know where Triton comes from or who keeps the process. Source: ``tritonserver
--help``.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from amphitrite.dataplane.table.routing_table import Address
from amphitrite.dataplane.triton.installation import Installation, library_path

#: The machine's variables that Triton's processes get. All others stay with the control plane.
_PASSED = ("HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER")
_PASSED_PREFIXES = ("CUDA_", "NVIDIA_")

#: Triton's groups of APIs that predictions do not need. Proxies refuse them, and so does the
#: server, to everybody without the key.
RESTRICTED = "model-repository,shared-memory,trace,logging"
#: The header, and the metadata, for that key.
KEY_HEADER = "amphitrite-admin"
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
    - ``admin_key``: the key to the services of RESTRICTED.
    - ``supported``: which of the options that not every Triton has this one has.
    """

    repository: Path
    backends: Path
    address: Address
    shm_prefix: str
    exit_timeout_s: int = 30
    max_input_bytes: int | None = None
    admin_key: str = field(default="", repr=False)
    supported: frozenset[str] = frozenset()


def arguments(installation: Installation, options: Options) -> list[str]:
    """The argument vector."""
    limit, restriction = options.max_input_bytes, f"{RESTRICTED}:{KEY_HEADER}={options.admin_key}"
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
        f"--http-address={options.address.host}",
        f"--http-port={options.address.port}",
        *([f"{MAX_INPUT_SIZE}={limit}"] if limit is not None and MAX_INPUT_SIZE in options.supported else []),
        *([f"{HTTP_RESTRICTED}={restriction}"] if HTTP_RESTRICTED in options.supported else []),
        *_grpc(options, restriction),
        "--allow-metrics=false",
        "--allow-sagemaker=false",
        "--allow-vertex-ai=false",
        "--log-format=ISO8601",
    ]


def _grpc(options: Options, restriction: str) -> list[str]:
    if options.address.grpc_port is None:
        return ["--allow-grpc=false"]
    return [
        "--allow-grpc=true",
        f"--grpc-address={options.address.host}",
        f"--grpc-port={options.address.grpc_port}",
        *([f"{GRPC_RESTRICTED}={restriction}"] if GRPC_RESTRICTED in options.supported else []),
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

"""The whole command line and environment of an instance, by equality."""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

from amphitrite.dataplane.table.routing_table import Address, SocketAddress
from amphitrite.dataplane.triton.command_line import (
    GRPC_RESTRICTED,
    HTTP_RESTRICTED,
    MAX_INPUT_SIZE,
    Options,
    arguments,
    environment,
    socket_address,
)
from amphitrite.dataplane.triton.installation import Installation

WHEEL = Installation(
    Path("/w/bin/tritonserver"), Path("/w/backends"), (Path("/w.libs"), Path("/py")), Path("/w/stub"), Path("/w/caches")
)
FULL = Installation(Path("/opt/tritonserver/bin/tritonserver"), Path("/opt/tritonserver/backends"))
OPTIONS = Options(Path("/models"), Path("/backends"), Address("127.0.0.1", 8123), "amphitrite-h-id.")


def test_arguments() -> None:
    assert arguments(WHEEL, OPTIONS) == [
        "/w/bin/tritonserver",
        "--model-repository=/models",
        "--model-control-mode=none",
        "--exit-on-error=true",
        "--strict-readiness=true",
        "--exit-timeout-secs=30",
        "--backend-directory=/backends",
        "--backend-config=python,shm-region-prefix-name=amphitrite-h-id.",
        "--cache-directory=/w/caches",
        "--cache-config=local,size=67108864",
        "--allow-http=true",
        "--http-address=127.0.0.1",
        "--http-port=8123",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--allow-sagemaker=false",
        "--allow-vertex-ai=false",
        "--log-format=ISO8601",
    ]


def test_a_triton_without_a_cache_is_not_asked_for_one() -> None:
    assert [word for word in arguments(FULL, OPTIONS) if word.startswith("--cache")] == []


def test_a_bound_on_request_bodies_is_passed_where_triton_knows_it() -> None:
    bounded = replace(OPTIONS, max_input_bytes=1024)
    assert "--http-max-input-size=1024" in arguments(FULL, replace(bounded, supported=frozenset({MAX_INPUT_SIZE})))
    assert "--http-max-input-size=1024" not in arguments(FULL, bounded)


def test_grpc_has_a_port_of_its_own_and_what_steers_triton_is_shut_on_both() -> None:
    options = replace(OPTIONS, address=Address("127.0.0.1", 8123, 8124))
    shut = "model-repository,shared-memory,trace,logging:amphitrite-admin=local"
    words = arguments(FULL, replace(options, supported=frozenset({HTTP_RESTRICTED, GRPC_RESTRICTED})))
    assert [word for word in words if "grpc" in word or "restricted" in word] == [
        f"--http-restricted-api={shut}",
        "--allow-grpc=true",
        "--grpc-address=127.0.0.1",
        "--grpc-port=8124",
        f"--grpc-restricted-protocol={shut}",
    ]
    assert [word for word in arguments(FULL, options) if "restricted" in word] == []


def test_unix_sockets_take_the_place_of_ports() -> None:
    address = socket_address(Path("/run/100%/i-1"))
    assert address == SocketAddress("/run/100%/i-1/http", "/run/100%/i-1/grpc:8001")
    words = arguments(FULL, replace(OPTIONS, address=address))
    assert [word for word in words if word.startswith(("--http-", "--grpc-", "--allow-grpc"))] == [
        "--http-address=unix:/run/100%/i-1/http",
        "--http-port=8000",
        "--allow-grpc=true",
        "--grpc-address=unix:/run/100%25/i-1/grpc",
        "--grpc-port=8001",
    ]


MACHINE = {
    "PATH": "/usr/bin",
    "HOME": "/home/u",
    "TZ": "UTC",
    "CUDA_VISIBLE_DEVICES": "1",
    "LD_LIBRARY_PATH": "/cuda",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "ML_HOME": "/home/u/.amphitrite",
    "PYTHONPATH": "/theirs",
}


def test_environment_of_the_wheel() -> None:
    made = environment(WHEEL, MACHINE, marker="h/id", cores=2, gpus=False, variables={"A": "1", "TZ": "CET"})
    assert made == {
        "HOME": "/home/u",
        "TZ": "CET",
        "A": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONUNBUFFERED": "1",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin",
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "LD_LIBRARY_PATH": "/w.libs:/py:/cuda",
        "AMPHITRITE_INSTANCE": "h/id",
        "AMPHITRITE_CORES": "2",
    }


def test_environment_of_a_full_triton_keeps_its_own_python() -> None:
    assert environment(FULL, MACHINE, marker="h/id", cores=6, gpus=True, variables={}) == {
        "HOME": "/home/u",
        "TZ": "UTC",
        "CUDA_VISIBLE_DEVICES": "1",
        "PYTHONUNBUFFERED": "1",
        "PATH": "/usr/bin",
        "LD_LIBRARY_PATH": "/cuda",
        "AMPHITRITE_INSTANCE": "h/id",
        "AMPHITRITE_CORES": "6",
    }

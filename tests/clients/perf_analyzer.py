"""Triton's ``perf_analyzer``, which measures an endpoint.

Decides its command line. Must not know what the figures are good for.
"""

from __future__ import annotations

from . import programs
from .served import SIMPLE, Served

#: Its rows on the page -> its options for that protocol. In gRPC a space after the colon would
#: belong to the value.
CLIENTS = {"perf_analyzer": "http", "perf_analyzer, gRPC": "grpc"}
#: A few requests, and any spread is good enough.
_BRIEFLY = ("--measurement-mode", "count_windows", "--measurement-request-count", "20", "-r", "3", "-s", "999")


def measure(served: Served, client: str) -> str:
    """What it prints. Skips the test where it is not installed, or cannot start."""
    program, key = programs.found("perf_analyzer"), served.keys[SIMPLE]
    programs.version(program, "--version")
    if CLIENTS[client] == "http":
        where = ["-u", served.uri().rstrip("/"), "--ssl-https-ca-certificates-file", served.trust]
        where += ["-H", f"Authorization: Bearer {key}"]
    else:
        where = ["-i", "grpc", "-u", served.address, "--ssl-grpc-use-ssl"]
        where += ["--ssl-grpc-root-certifications-file", served.trust]
        where += ["-H", f"authorization:Bearer {key}", "-H", f"amphitrite-endpoint:{SIMPLE}"]
    done = served.program(program, "-m", "simple", *where, *_BRIEFLY)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

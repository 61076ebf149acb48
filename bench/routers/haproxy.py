"""HAProxy: the key by an ACL, the split by ``rand``."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench import machine
from bench.routers import KEY, SHARE, Place, Server


def configuration(place: Place) -> str:
    first, second = place.upstreams
    tls = f" ssl crt {place.work}/both.pem" if place.certificate else ""
    return f"""
global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend scoring
  bind 127.0.0.1:{place.port}{tls}
  http-request deny deny_status 401 unless {{ req.hdr(authorization) -m str "Bearer {KEY}" }}
  http-request del-header authorization
  use_backend first if {{ rand(100) lt {SHARE} }}
  default_backend second
backend first
  server one 127.0.0.1:{first}
backend second
  server one 127.0.0.1:{second}
"""


@contextmanager
def serve(place: Place) -> Iterator[Server]:
    program = machine.require("haproxy")
    if place.certificate:
        (place.work / "both.pem").write_text("".join(file.read_text() for file in place.certificate))
    file = place.work / "haproxy.cfg"
    file.write_text(configuration(place))
    said = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stdout
    with machine.running([program, "-db", "-f", file], place.log, on=place.cores, port=place.port) as process:
        yield Server(place.port, process.pid, said.split()[2], place.certificate is not None)

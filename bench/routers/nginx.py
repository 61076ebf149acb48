"""nginx: the key by ``map``, the split by ``split_clients``, bodies passed on as they come."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import machine
from bench.routers import KEY, SHARE, Place, Server


def configuration(place: Place) -> str:
    first, second = place.upstreams
    tls, files = "", ""
    if place.certificate:
        tls = " ssl"
        chain, key = place.certificate
        files = f"ssl_certificate {chain}; ssl_certificate_key {key};"
    paths = " ".join(
        f"{name}_temp_path {place.work}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""
worker_processes 1; daemon off; pid {place.work}/pid; error_log {place.work}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; {paths}
  map $http_authorization $allowed {{ default 0; "Bearer {KEY}" 1; }}
  split_clients $request_id $target {{ {SHARE}% first; * second; }}
  upstream first {{ server 127.0.0.1:{first}; keepalive 128; keepalive_requests 10000000; }}
  upstream second {{ server 127.0.0.1:{second}; keepalive 128; keepalive_requests 10000000; }}
  server {{
    listen 127.0.0.1:{place.port}{tls}; {files}
    keepalive_requests 10000000; client_max_body_size 100m;
    location / {{
      if ($allowed = 0) {{ return 401; }}
      proxy_pass http://$target; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Authorization ""; proxy_request_buffering off;
    }}
  }}
}}
"""


@contextmanager
def serve(place: Place) -> Iterator[Server]:
    program = machine.require("nginx", "nginx-light")
    file = place.work / "nginx.conf"
    file.write_text(configuration(place))
    said = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stderr
    command: list[str | Path] = [program, "-p", place.work, "-c", file, "-e", place.work / "error.log"]
    if machine.is_root():
        command += ["-g", "user root;"]
    with machine.running(command, place.log, on=place.cores, port=place.port) as process:
        yield Server(place.port, process.pid, said.strip().rpartition("/")[2], place.certificate is not None)

"""The cost of checking a key in Envoy, in three ways, and of the 424 script.

    python bench/router_auth.py [--rounds 5] [--seconds 3]

Needs `wrk` (Debian package `wrk`). Every variant is the product's own listener and routes without
TLS; only the check is exchanged. The upstream leg is left out (targets answer 200 themselves), so
the differences are a larger share than in service. Writes bench/results/router_auth.json.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from amphitrite.dataplane.envoy.process.binary import find_envoy
from amphitrite.dataplane.envoy.translate.listener import listener
from amphitrite.dataplane.envoy.translate.routes import BodyLimits, route_configuration
from amphitrite.dataplane.table.routing_table import Address, Route, Secret, Target

_RBAC = "envoy.filters.http.rbac"
_API_KEY = "envoy.filters.http.api_key_auth"
_HTTP = "type.googleapis.com/envoy.extensions.filters.http"
_KEYS = ("k" * 32 + "1", "k" * 32 + "2")
_ROUTE = Route(
    "images",
    tuple(Secret(k) for k in _KEYS),
    (Target("blue", "blue", 5.0, "/v2/models/m/infer"),),
    (("blue", 100),),
)
VARIANTS = ("none", "routes", "rbac", "api_key_auth", "routes_without_424")


def configuration(variant: str, port: int, directory: Path) -> dict[str, Any]:
    """A static bootstrap for one variant."""
    routes = copy.deepcopy(route_configuration(_ROUTE, {"blue": 1000}, BodyLimits(100 * 1024 * 1024, 16 * 1024 * 1024)))
    host = routes["virtual_hosts"][0]
    entries: list[dict[str, Any]] = host["routes"]
    for entry in entries:
        if entry.pop("route", None):
            entry["direct_response"] = {"status": 200}
        if variant == "routes_without_424":
            entry.pop("typed_per_filter_config", None)
    if not variant.startswith("routes"):
        entries.remove(next(e for e in entries if e.get("direct_response", {}).get("status") == 401))
    server = listener(Address("127.0.0.1", port), directory / "access.log")
    chain = server["filter_chains"][0]
    chain.pop("transport_socket")
    manager = chain["filters"][0]["typed_config"]
    scoped = manager["scoped_routes"]
    scoped.pop("rds_config_source")
    scoped.pop("scoped_rds")
    scoped["scoped_route_configurations_list"] = {
        "scoped_route_configurations": [
            {
                "name": "images",
                "route_configuration": routes,
                "key": {"fragments": [{"string_key": "images"}]},
            }
        ]
    }
    if variant == "rbac":
        _use_rbac(manager, host)
    elif variant == "api_key_auth":
        _use_api_key_auth(manager, host)
    return {
        "static_resources": {"listeners": [server]},
        "layered_runtime": {"layers": [{"name": "s", "static_layer": {"re2.max_program_size.error_level": 1000}}]},
    }


def _use_rbac(manager: dict[str, Any], host: dict[str, Any]) -> None:
    principals = [{"header": {"name": "authorization", "string_match": {"exact": f"Bearer {key}"}}} for key in _KEYS]
    policy = {"permissions": [{"any": True}], "principals": principals}
    manager["http_filters"].insert(0, {"name": _RBAC, "typed_config": {"@type": f"{_HTTP}.rbac.v3.RBAC"}})
    host["typed_per_filter_config"] = {
        _RBAC: {
            "@type": f"{_HTTP}.rbac.v3.RBACPerRoute",
            "rbac": {"rules": {"action": "ALLOW", "policies": {"keys": policy}}},
        }
    }


def _use_api_key_auth(manager: dict[str, Any], host: dict[str, Any]) -> None:
    sources = [{"header": "authorization"}]
    manager["http_filters"].insert(
        0,
        {
            "name": _API_KEY,
            "typed_config": {"@type": f"{_HTTP}.api_key_auth.v3.ApiKeyAuth", "key_sources": sources},
        },
    )
    host["typed_per_filter_config"] = {
        _API_KEY: {
            "@type": f"{_HTTP}.api_key_auth.v3.ApiKeyAuthPerRoute",
            "credentials": [{"key": key, "client": f"images/{n}"} for n, key in enumerate(_KEYS)],
            "key_sources": sources,
        }
    }


@contextmanager
def envoy(config: dict[str, Any], port: int, directory: Path) -> Iterator[psutil.Process]:
    """One Envoy with one worker, which listens when the block begins."""
    path = directory / "envoy.json"
    path.write_text(json.dumps(config))
    command = [str(find_envoy()), "-c", str(path), "--disable-hot-restart", "--concurrency", "1", "-l", "error"]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.02)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def measure(variant: str, seconds: int, key: str) -> dict[str, float]:
    """Requests per second, and Envoy's CPU per request in microseconds."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
        probe.close()
        with envoy(configuration(variant, port, Path(name)), port, Path(name)) as process:
            url = f"http://127.0.0.1:{port}/endpoints/images/v2/models/m/infer"
            _wrk(url, 1, key)
            before = process.cpu_times()
            count, rate, other = _wrk(url, seconds, key)
            after = process.cpu_times()
    if other and variant != "none" and key in _KEYS:
        raise SystemExit(f"{variant}: {other} of {count} answers were not 2xx")
    used = after.user + after.system - before.user - before.system
    return {"rps": rate, "cpu_us": used / count * 1e6}


def _wrk(url: str, seconds: int, key: str) -> tuple[int, float, int]:
    script = Path(tempfile.gettempdir()) / "router_auth_post.lua"
    script.write_text('wrk.method = "POST"\nwrk.body = "{}"\n')
    command = [
        "wrk", "-t1", "-c8", f"-d{seconds}s", "-s", str(script), "-H", f"Authorization: Bearer {key}", url,
    ]  # fmt: skip
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    count = re.search(r"(\d+) requests in", text)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    other = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    if count is None or rate is None:
        raise SystemExit(f"wrk printed no result:\n{text}")
    return int(count[1]), float(rate[1]), int(other[1]) if other else 0


def main() -> None:
    parser = argparse.ArgumentParser(description="cost of the key check in Envoy")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("this needs wrk: apt-get install wrk")
    runs: dict[str, list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for variant in VARIANTS:
            runs.setdefault(variant, []).append(measure(variant, options.seconds, _KEYS[1]))
            if variant in ("routes", "rbac", "api_key_auth"):
                runs.setdefault(f"{variant}_refused", []).append(measure(variant, options.seconds, "wrong"))
    table = {
        name: {
            "cpu_us_median": round(statistics.median(r["cpu_us"] for r in rows), 1),
            "cpu_us_min": round(min(r["cpu_us"] for r in rows), 1),
            "rps_median": round(statistics.median(r["rps"] for r in rows)),
        }
        for name, rows in runs.items()
    }
    print(f"{'variant':24}{'CPU us/req':>12}{'min':>8}{'rps':>8}")
    for name, row in table.items():
        print(f"{name:24}{row['cpu_us_median']:>12}{row['cpu_us_min']:>8}{row['rps_median']:>8}")
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    content = {"rounds": options.rounds, "seconds": options.seconds, "variants": table}
    (results / "router_auth.json").write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""The product without model servers: time from the PUT to clients, lists, memory."""

from __future__ import annotations

import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench import machine
from bench.controls.effect import Watch
from bench.lists import WS
from bench.product import Product, free_ports
from bench.stats import percentile

_MODEL = {"name": "m", "version": "1", "digest": "0" * 64, "model_names": ["m"]}
_LISTS = 100
_API = {"api-version": "2023-04-01"}


def fill(home: Path, endpoints: int) -> None:
    """A home as it is after so many endpoints of two deployments have been created; all traffic on
    blue."""
    from amphitrite.controlplane.settings import settings
    from amphitrite.controlplane.store.state.database import open_store

    chosen = settings.read({"ML_HOME": str(home)})
    chosen.home.create()
    store = open_store(chosen.database_url)
    for number in range(endpoints):
        name = f"endpoint-{number:04}"
        document = {"name": name, "auth_mode": "key", "tags": {"team": "vision"}, "traffic": {"blue": 100}}
        store.put_endpoint(document, if_match=None, if_none_match=True, now=time.time())
        for deployment in ("blue", "green"):
            body = {
                "name": deployment,
                "endpoint_name": name,
                "model": "azureml:m:1",
                "instance_type": "Standard_DS1_v2",
                "instance_count": 1,
            }
            store.put_deployment(name, body, _MODEL, if_match=None, if_none_match=True, now=time.time())
    store.close()


@contextmanager
def started(work: Path, upstream: int) -> Iterator[tuple[Product, int, str, str]]:
    """A product whose instances are all the upstream: (product, the control plane's pid, API's URL,
    scoring port)."""
    product = Product(work)
    port, scoring_port = free_ports()
    command = [
        sys.executable, "-m", "bench.controls.imagined", str(upstream), "start", "--home", str(work / "home"),
        "--port", port, "--scoring-port", scoring_port, "--foreground",
    ]  # fmt: skip
    log = work / "server.log"
    with machine.running(command, log, env=product.environment, port=int(port), within_s=120) as process:
        try:
            yield product, process.pid, f"https://127.0.0.1:{port}", scoring_port
        finally:
            process.terminate()
            process.wait(30)
            product.ml("server", "stop")


def measure(work: Path, endpoints: int, upstream: int, changes: int) -> dict[str, Any]:
    """One row."""
    work.mkdir()
    fill(work / "home", endpoints)
    with started(work, upstream) as (product, pid, url, scoring_port):
        token = (work / "home" / "credentials" / "token").read_text().strip()
        trust = Path(product.ml("server", "status", "--query", "ca_file", "-o", "tsv"))
        context = ssl.create_default_context(cafile=str(trust))
        headers = {"Authorization": f"Bearer {token}"}
        name = f"endpoint-{endpoints - 1:04}"
        place = f"{WS}/onlineEndpoints"
        with httpx.Client(base_url=url, headers=headers, params=_API, verify=context, timeout=120) as client:
            key = client.post(f"{place}/{name}/listKeys").raise_for_status().json()["primaryKey"]
            ready(client, place, endpoints)
            with Watch(int(scoring_port), trust, name, key) as watch:
                # The first pass after all have come up works all of them out.
                flips(client, f"{place}/{name}", watch, 2)
                effects, operations = flips(client, f"{place}/{name}", watch, changes)
            lists = [listed(client, place) for _ in range(_LISTS)]
            deployments = [listed(client, f"{place}/{name}/deployments") for _ in range(_LISTS)]
            envoy = next(p for p in psutil.process_iter(["name", "cmdline"]) if is_envoy(p, work))
            return {
                "endpoints": endpoints,
                "changes": changes,
                "put_to_effect_p50_ms": round(percentile(effects, 0.5), 1),
                "put_to_effect_p99_ms": round(percentile(effects, 0.99), 1),
                "put_to_succeeded_p50_ms": round(percentile(operations, 0.5), 1),
                "list_p50_ms": round(percentile(lists, 0.5), 1),
                "list_p99_ms": round(percentile(lists, 0.99), 1),
                "deployments_p99_ms": round(percentile(deployments, 0.99), 1),
                "control_plane_mb": round(psutil.Process(pid).memory_info().rss / 1e6),
                "envoy_mb": round(machine.memory_mb(envoy.pid)),
            }


def is_envoy(process: psutil.Process, work: Path) -> bool:
    words = process.info["cmdline"] or []
    return bool(words) and "--config-path" in words and any(word.startswith(str(work)) for word in words)


def ready(client: httpx.Client, place: str, endpoints: int, within_s: float = 240) -> None:
    """Until the last endpoint's deployments have succeeded. Raises TimeoutError."""
    deadline = time.monotonic() + within_s
    address = f"{place}/endpoint-{endpoints - 1:04}"
    while True:
        states = [
            client.get(f"{address}{below}").raise_for_status().json()["properties"]["provisioningState"]
            for below in ("", "/deployments/blue", "/deployments/green")
        ]
        if set(states) == {"Succeeded"}:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{endpoints} endpoints were not ready within {within_s:g} s: {states}")
        time.sleep(0.1)


def flips(client: httpx.Client, address: str, watch: Watch, changes: int) -> tuple[list[float], list[float]]:
    """Milliseconds from the PUT until the other deployment answers, and until the operation has
    succeeded."""
    effects, operations = [], []
    watch.until("blue")
    for number in range(changes):
        goal = "green" if number % 2 == 0 else "blue"
        body = client.get(address).raise_for_status().json()
        body["properties"]["traffic"] = {goal: 100}
        began = time.perf_counter()
        answer = client.put(address, json=body).raise_for_status()
        watch.until(goal)
        effects.append((time.perf_counter() - began) * 1000)
        operation = answer.headers["Azure-AsyncOperation"]
        while client.get(operation).raise_for_status().json()["status"] != "Succeeded":
            time.sleep(0.002)
        operations.append((time.perf_counter() - began) * 1000)
    return effects, operations


def listed(client: httpx.Client, address: str) -> float:
    """Milliseconds for one page of the usual size."""
    began = time.perf_counter()
    client.get(address).raise_for_status().json()
    return (time.perf_counter() - began) * 1000

"""How long it takes to list 1,000 models and 1,000 endpoints, page after page."""

from __future__ import annotations

import hashlib
import shutil
import ssl
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from bench.product import ML, Product, Unavailable, free_ports

COUNT = 1000
RUNS = 5
WS = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
LISTS = {"models": ["model", "list"], "onlineEndpoints": ["online-endpoint", "list"]}


def run(work: Path) -> list[dict[str, Any]]:
    if not ML.exists():
        raise Unavailable(f"{ML} is missing: make install")
    fill(work / "home")
    with started(work) as product:
        token = (work / "home" / "credentials" / "token").read_text().strip()
        url, trust = (product.ml("server", "status", "--query", name, "-o", "tsv") for name in ("api_url", "ca_file"))
        rows = []
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, verify=ssl.create_default_context(cafile=trust)) as client:
            for kind, command in LISTS.items():
                for size in (100, 1000):
                    found, pages = walk(client, kind, size)
                    assert found == COUNT, found
                    took = timed(partial(walk, client, kind, size))
                    rows.append(row(f"REST {kind}, pages of {size}", pages, took))
                took = timed(partial(listed, product, command))
                rows.append(row(" ".join(["ml", *command]), "", took))
    return rows


def fill(home: Path) -> None:
    """A home with models of one file and endpoints that serve nothing, as their creation one by one
    leaves it."""
    from amphitrite.controlplane.core.observed.status import Ref, Status
    from amphitrite.controlplane.settings import settings
    from amphitrite.controlplane.store.assets.model_store import ModelStore
    from amphitrite.controlplane.store.content.content_store import open_content
    from amphitrite.controlplane.store.state.database import open_store

    chosen = settings.read({"ML_HOME": str(home)})
    chosen.home.create()
    store = open_store(chosen.database_url)
    models = ModelStore(
        store.database, open_content(chosen.models_url, chosen.home.models, time.time), chosen.home.models
    )
    with models.blobs.begin() as upload:
        upload.write(b"not really a model")
        digest, size = upload.finish()
    for number in range(COUNT):
        path = f"LocalUpload/{hashlib.sha256(str(number).encode()).hexdigest()}/model.bin"
        models.blobs.put(path, digest, size, overwrite=False)
        name, address = f"model-{number:04}", f"azureml://datastores/workspaceblobstore/paths/{path}"
        document = {"name": name, "version": "1", "type": "custom_model", "path": address, "tags": {"team": "vision"}}
        models.put_version(name, "1", document, now=time.time())
        endpoint = {"name": f"endpoint-{number:04}", "auth_mode": "key", "tags": {"team": "vision"}}
        record, _ = store.put_endpoint(endpoint, if_match=None, if_none_match=True, now=time.time())
        store.record({Ref(record.ref.endpoint): Status("Succeeded", record.generation, "Ready")}, now=time.time())
    store.close()


@contextmanager
def started(work: Path) -> Iterator[Product]:
    product = Product(work)
    port, scoring_port = free_ports()
    product.ml("server", "start", "-d", "--port", port, "--scoring-port", scoring_port)
    try:
        yield product
    finally:
        product.ml("server", "stop")
        shutil.rmtree(work / "home", ignore_errors=True)


def walk(client: httpx.Client, kind: str, size: int) -> tuple[int, int]:
    """How many items and pages there are, each page asked for by the link in the one before."""
    url: str | None = f"{WS}/{kind}?api-version=2023-04-01&$top={size}"
    items = pages = 0
    while url is not None:
        body = client.get(url).raise_for_status().json()
        items, pages, url = items + len(body["value"]), pages + 1, body.get("nextLink")
    return items, pages


def listed(product: Product, command: list[str]) -> None:
    subprocess.run([ML, *command], env=product.environment, stdout=subprocess.DEVNULL, check=True)


def timed(call: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
    return times


def row(what: str, pages: object, times: list[float]) -> dict[str, Any]:
    return {"list": what, "pages": pages, "median_ms": round(statistics.median(times)), "max_ms": round(max(times))}

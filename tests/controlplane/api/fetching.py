"""A control plane behind TLS as pods meet it, one that can be made to misbehave, and fetchers as
processes of their own."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import uvicorn
from anyio.to_thread import run_sync

from amphitrite.controlplane.auth import certificates
from amphitrite.controlplane.auth.fetch_grants import Delivery
from amphitrite.controlplane.process.app import create_app

from .conftest import World, opened

CONFIG = b'platform: "ensemble"\nensemble_scheduling { step [ { model_name: "model_1" } ] }\n'
FILES = {
    "all/config.pbtxt": CONFIG,
    "model_1/1/model.onnx": b"onnx" * 700_000,
    "model_1/1/weights.bin": b"",
    "model_1/2/model.onnx": bytes(range(256)) * 40,
}
SIZE = sum(len(data) for data in FILES.values())


@dataclass
class Trouble:
    """What happens to the next answers that carry content. ``ranges``: what was asked for."""

    cut: int = 0
    hold: threading.Event | None = None
    ranges: list[str] = field(default_factory=list)

    def around(self, app: Any) -> Any:
        """The ASGI app with these troubles."""

        async def troubled(scope: Any, receive: Any, send: Any) -> None:
            if not scope.get("path", "").startswith("/fetch/v1/content/"):
                await app(scope, receive, send)
                return
            self.ranges.append(dict(scope["headers"]).get(b"range", b"").decode())
            parts = 0

            async def limping(message: Any) -> None:
                nonlocal parts
                await send(message)
                parts += message["type"] == "http.response.body" and len(message.get("body", b"")) > 100_000
                if parts and self.hold is not None:
                    await run_sync(self.hold.wait, abandon_on_cancel=True)
                if parts and self.cut:
                    self.cut -= 1
                    raise ConnectionAbortedError

            await app(scope, receive, limping)

        return troubled


@dataclass
class Site:
    """One control plane with a deployment whose model has ``FILES``."""

    world: World
    url: str
    ca: Path
    digest: str
    cache: Path
    trouble: Trouble
    grant: str = ""

    def __post_init__(self) -> None:
        (deployment,) = self.world.store.load_world().deployments
        self.grant = self.world.services.delivery.grant(deployment.workload.name, self.digest)

    def environment(self, **changes: str | None) -> dict[str, str]:
        chosen: dict[str, str | None] = {
            "URL": self.url,
            "GRANT": self.grant,
            "DIGEST": self.digest,
            "CACHE": str(self.cache),
            "CA": str(self.ca),
            "RESULT": str(self.cache.parent / "termination-log"),
            "STALL_TIMEOUT_S": "20",
            **changes,
        }
        # A proxy that nobody told the fetcher of must not be used.
        base = {"PATH": os.environ["PATH"], "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
        return base | {f"AMPHITRITE_FETCH_{name}": value for name, value in chosen.items() if value is not None}

    def start(self, **changes: str | None) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "amphitrite.dataplane.fetch"]
        return subprocess.Popen(
            command, env=self.environment(**changes), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def fetch(self, **changes: str | None) -> dict[str, Any]:
        return self.ended(self.start(**changes))

    def ended(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """The result of a fetcher, which has told nobody a secret."""
        said, _ = process.communicate(timeout=60)
        result: dict[str, Any] = json.loads(said.splitlines()[-1])
        assert process.returncode == ("error" in result), said
        for secret in (self.grant, self.grant.split(".")[4], "signature=", "Signature="):
            assert secret not in said
        return result

    def model(self) -> dict[str, bytes | None]:
        """Relative path -> content of what lies in the cache; None for an empty directory."""
        root = self.cache / self.digest
        return {
            str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
            for path in sorted(root.rglob("*"))
            if path.is_file() or not any(path.iterdir())
        }

    def part_bytes(self) -> int:
        """Of files that are under way."""
        return sum(path.stat().st_size for path in self.cache.glob(".*.partial/parts/*"))


@contextmanager
def site(home: Path, models_url: str, clock: Callable[[], float] = time.time) -> Iterator[Site]:
    """``models_url``: where the model store keeps content. ``clock`` is what addresses of ours
    expire by."""
    with opened(home, models_url=models_url) as world:
        models, delivery = world.services.models, Delivery(world.services.credentials.fetch_key, clock)
        world.services = replace(world.services, delivery=delivery)
        for path, data in FILES.items():
            with models.blobs.begin() as body:
                body.write(data)
                digest, size = body.finish()
            models.blobs.put(f"LocalUpload/aa/{path}", digest, size, overwrite=True)
        address = "azureml://datastores/workspaceblobstore/paths/LocalUpload/aa"
        document = {"name": "m", "version": "1", "type": "triton_model", "path": address}
        version, _ = models.put_version("m", "1", document, now=1.0)
        assert world.endpoint().status_code == world.deployment().status_code == 201
        made = certificates.ensure(world.services.settings.home, ["127.0.0.1", "localhost"], time.time())
        trouble = Trouble()
        config = uvicorn.Config(
            trouble.around(create_app(world.services)),
            ssl_certfile=str(made.certificate_file),
            ssl_keyfile=str(made.key_file),
            ssl_version=ssl.PROTOCOL_TLS_SERVER,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=server.run, args=([listener],))
            thread.start()
            url = f"https://127.0.0.1:{listener.getsockname()[1]}"
            try:
                yield Site(world, url, made.ca_file, version.digest, home.parent / "cache", trouble)
            finally:
                if trouble.hold is not None:
                    trouble.hold.set()
                server.should_exit = True
                thread.join(60)
        assert not thread.is_alive()

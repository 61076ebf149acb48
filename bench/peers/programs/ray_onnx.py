"""Ray Serve: one replica with all models behind Ray's own HTTP proxy."""

from __future__ import annotations

import os
import signal
from typing import Any

import ray  # type: ignore[import-not-found,unused-ignore]
from models import Model, arguments  # type: ignore[import-not-found,unused-ignore]
from ray import serve  # type: ignore[import-not-found,unused-ignore]
from starlette.requests import Request
from starlette.responses import Response

PORT, THREADS, FILES = arguments()


@serve.deployment(num_replicas=1, max_ongoing_requests=128)  # type: ignore[untyped-decorator,unused-ignore]
class Scorer:
    def __init__(self, files: dict[str, str], threads: int) -> None:
        self.models = {name: Model(file, threads) for name, file in files.items()}

    async def __call__(self, request: Request) -> Response:
        name = request.url.path.strip("/")
        return Response(self.models[name].run(await request.body()), media_type="application/octet-stream")


def main() -> None:
    paths: dict[str, Any] = {"env_vars": {"PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}}
    ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False, runtime_env=paths)
    serve.start(http_options={"host": "127.0.0.1", "port": PORT}, logging_config={"enable_access_log": False})
    serve.run(Scorer.bind(FILES, THREADS))  # type: ignore[attr-defined,unused-ignore]
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main()

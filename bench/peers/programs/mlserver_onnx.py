"""MLServer: a runtime of our own for each model, in the server's own process (no parallel
workers)."""

from __future__ import annotations

import asyncio
import os

from mlserver import MLModel, MLServer, ModelSettings, Settings  # type: ignore[import-not-found,unused-ignore]
from mlserver.types import (  # type: ignore[import-not-found,unused-ignore]
    InferenceRequest,
    InferenceResponse,
    ResponseOutput,
)
from models import Model, arguments  # type: ignore[import-not-found,unused-ignore]


class Scorer(MLModel):  # type: ignore[misc,unused-ignore]
    async def load(self) -> bool:
        self.model = Model(os.environ[f"BENCH_{self.name}"], int(os.environ["BENCH_THREADS"]))
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        import base64

        tensor = base64.b64decode(payload.inputs[0].data[0])
        text = base64.b64encode(self.model.run(tensor)).decode()
        output = ResponseOutput(name="y", shape=[1], datatype="BYTES", data=[text])
        return InferenceResponse(model_name=self.name, outputs=[output])


async def main() -> None:
    port, threads, files = arguments()
    os.environ["BENCH_THREADS"] = str(threads)
    settings = Settings(
        host="127.0.0.1", http_port=port, grpc_port=port + 1 if port < 65000 else port - 1, metrics_endpoint=None,
        parallel_workers=0, debug=False, load_models_at_startup=False, use_structured_logging=False,
    )  # fmt: skip
    server = MLServer(settings)
    models = []
    for name, file in files.items():
        os.environ[f"BENCH_{name}"] = file
        models.append(ModelSettings(name=name, implementation=Scorer))
    await server.start(models)


if __name__ == "__main__":
    asyncio.run(main())

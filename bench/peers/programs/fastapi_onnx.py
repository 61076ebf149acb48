"""FastAPI and onnxruntime, as most people begin: one uvicorn worker, with uvloop and httptools."""

from __future__ import annotations

import uvicorn
from fastapi import FastAPI, Request, Response
from models import Model, arguments  # type: ignore[import-not-found,unused-ignore]

PORT, THREADS, FILES = arguments()
MODELS = {name: Model(file, THREADS) for name, file in FILES.items()}
app = FastAPI()


@app.post("/{name}")
async def score(name: str, request: Request) -> Response:
    return Response(MODELS[name].run(await request.body()), media_type="application/octet-stream")


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="error", access_log=False)

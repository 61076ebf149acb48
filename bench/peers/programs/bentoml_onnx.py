"""BentoML: one service with a method for each model, one worker. Started again by
``bentoml serve``."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path

from models import Model, arguments  # type: ignore[import-not-found,unused-ignore]

if __name__ == "__main__":
    PORT, THREADS, FILES = arguments()
    settings = json.dumps([THREADS, FILES])
    command = ["serve", "bentoml_onnx:Scorer", "--host", "127.0.0.1", "--port", str(PORT), "--api-workers", "1"]
    command += ["--working-dir", str(Path(__file__).parent)]
    os.environ["BENCH_MODELS"] = settings
    os.execv(sys.executable, [sys.executable, "-m", "bentoml", *command])

import bentoml  # type: ignore[import-not-found,unused-ignore]

_THREADS, _FILES = json.loads(os.environ["BENCH_MODELS"])


@bentoml.service(workers=1, traffic={"timeout": 60}, logging={"access": {"enabled": False}})  # type: ignore[untyped-decorator,unused-ignore]
class Scorer:
    def __init__(self) -> None:
        self.models = {name: Model(file, _THREADS) for name, file in _FILES.items()}

    @bentoml.api(route="/tiny")  # type: ignore[untyped-decorator,unused-ignore]
    def tiny(self, x: str) -> str:
        return base64.b64encode(self.models["tiny"].run(base64.b64decode(x))).decode()

    @bentoml.api(route="/picture")  # type: ignore[untyped-decorator,unused-ignore]
    def picture(self, x: str) -> str:
        return base64.b64encode(self.models["picture"].run(base64.b64decode(x))).decode()

"""LitServe: one API for each model, one worker each. LitServe reads annotations of these methods as
FastAPI would."""

import base64
from typing import Any

import litserve  # type: ignore[import-not-found,unused-ignore]
from models import Model, arguments  # type: ignore[import-not-found,unused-ignore]

PORT, THREADS, FILES = arguments()


class Scorer(litserve.LitAPI):  # type: ignore[misc,unused-ignore]
    def __init__(self, name: str) -> None:
        super().__init__(api_path=f"/{name}")
        self.name = name

    def setup(self, device: Any) -> None:
        self.model = Model(FILES[self.name], THREADS)

    def decode_request(self, request):  # type: ignore[no-untyped-def]
        return base64.b64decode(request["x"])

    def predict(self, tensor: bytes) -> bytes:
        return bytes(self.model.run(tensor))

    def encode_response(self, output):  # type: ignore[no-untyped-def]
        return {"y": base64.b64encode(output).decode()}


if __name__ == "__main__":
    server = litserve.LitServer([Scorer(name) for name in FILES], accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=PORT, num_api_servers=1, generate_client_file=False, log_level="error")

"""One endpoint as its clients have it: Triton's own clients, unmodified, and plain HTTP."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio

from .product import Product

Array = np.ndarray[Any, Any]

PIN = "azureml-model-deployment"
ENDPOINT = "types"
DOMAIN = "ml.example.test"
ROOT = f"/endpoints/{ENDPOINT}"


@dataclass(frozen=True)
class Scoring:
    """The endpoint ``types``. ``blue`` has all traffic and each kind of model (``model_types/``);
    ``sums`` has two instances and models that keep state (``sequences/``)."""

    product: Product
    key: str

    # -- clients -----------------------------------------------------------------------------------
    @property
    def address(self) -> str:
        host, port = self.product.scoring
        return f"{host}:{port}"

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.product.ca_file))

    def client(self, **options: Any) -> tritonclient.http.InferenceServerClient:
        """By HTTP; it belongs to one thread."""
        return tritonclient.http.InferenceServerClient(
            f"{self.address}{ROOT}", ssl=True, ssl_context_factory=lambda: self.trust, network_timeout=60, **options
        )

    def aio(self) -> tritonclient.http.aio.InferenceServerClient:
        return tritonclient.http.aio.InferenceServerClient(f"{self.address}{ROOT}", ssl=True, ssl_context=self.trust)

    def grpc(self) -> tritonclient.grpc.InferenceServerClient:
        return tritonclient.grpc.InferenceServerClient(
            self.address, ssl=True, root_certificates=str(self.product.ca_file)
        )

    def grpc_aio(self) -> tritonclient.grpc.aio.InferenceServerClient:
        return tritonclient.grpc.aio.InferenceServerClient(
            self.address, ssl=True, root_certificates=str(self.product.ca_file)
        )

    def grpc_by_host(self) -> tritonclient.grpc.InferenceServerClient:
        """Where no name server knows the name, the client is told which one to ask for."""
        name = f"{ENDPOINT}.{DOMAIN}"
        options = [(f"grpc.{key}", name) for key in ("ssl_target_name_override", "default_authority")]
        return tritonclient.grpc.InferenceServerClient(
            self.address, ssl=True, root_certificates=str(self.product.ca_file), channel_args=options
        )

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def metadata(self, **more: str) -> dict[str, str]:
        """Of a call in gRPC; an empty value leaves one out."""
        given = {"amphitrite-endpoint": ENDPOINT, "authorization": f"Bearer {self.key}"}
        return {name: value for name, value in {**given, **more}.items() if value}

    # -- requests ----------------------------------------------------------------------------------
    def infer(self, model: str, inputs: dict[str, tuple[str, Array]], *, version: str = "", **options: Any) -> Any:
        """The stock client's result, by HTTP."""
        with self.client() as client:
            return client.infer(model, http_inputs(inputs), model_version=version, headers=self.headers, **options)

    def post(self, path: str, document: Any, **headers: str) -> Any:
        """Plain HTTP and JSON."""
        body = json.dumps(document).encode()
        answer = self.product.request(f"{ROOT}/{path}", key=self.key, body=body, headers=headers)
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def get(self, path: str) -> Any:
        answer = self.product.request(f"{ROOT}/{path}", method="GET", key=self.key)
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def statistics(self, model: str) -> Any:
        (found,) = self.get(f"v2/models/{model}/stats")["model_stats"]
        return found


def http_inputs(inputs: dict[str, tuple[str, Array]], *, binary: bool = True) -> list[tritonclient.http.InferInput]:
    """``inputs``: name -> (Triton's type, values)."""
    tensors = [tritonclient.http.InferInput(name, list(value.shape), kind) for name, (kind, value) in inputs.items()]
    for tensor, (_, value) in zip(tensors, inputs.values(), strict=True):
        tensor.set_data_from_numpy(value, binary_data=binary)
    return tensors


def grpc_inputs(inputs: dict[str, tuple[str, Array]]) -> list[tritonclient.grpc.InferInput]:
    tensors = [tritonclient.grpc.InferInput(name, list(value.shape), kind) for name, (kind, value) in inputs.items()]
    for tensor, (_, value) in zip(tensors, inputs.values(), strict=True):
        tensor.set_data_from_numpy(value)
    return tensors

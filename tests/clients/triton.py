"""Triton's own clients, one class for each way to call them.

Decides how each is told a request. Must not know what is asked.
"""

from __future__ import annotations

import queue
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

from ..waiting import DEADLINE_S
from . import event_loop
from .served import SIMPLE, Served

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Call:
    """``tensors``: name -> (Triton's type, values). ``key``: in place of the endpoint's.
    ``classes``: so many of the output ``class``, in place of all outputs. ``sequence``: arguments
    of that name of Triton's clients."""

    model: str
    tensors: dict[str, tuple[str, Array]]
    endpoint: str = SIMPLE
    key: str | None = None
    timeout_s: float | None = None
    classes: int = 0
    binary: bool = True
    compression: str | None = None
    sequence: dict[str, Any] = field(default_factory=dict)


class Http:
    """``infer``."""

    protocol = "http"

    def __init__(self, served: Served) -> None:
        self._served = served

    def infer(self, call: Call) -> Any:
        """Triton's result. Raises InferenceServerException."""
        with self._client(call.endpoint, call.timeout_s) as client:
            return self._send(client, **self._arguments(call))

    def about(self) -> dict[str, Any]:
        """What the server tells of itself."""
        headers = self._headers(SIMPLE, None)
        with self._client() as client:
            return _read({name: getattr(client, name)(*of, headers=headers) for name, of in ABOUT.items()})

    def _client(self, endpoint: str = SIMPLE, timeout_s: float | None = None) -> Any:
        options = {"ssl": True, "ssl_context_factory": self._trust, "network_timeout": timeout_s or DEADLINE_S}
        return tritonclient.http.InferenceServerClient(self._url(endpoint), **options)

    def _send(self, client: Any, model: str, **arguments: Any) -> Any:
        return client.infer(model, **arguments)

    def _url(self, endpoint: str) -> str:
        return self._served.uri(endpoint).removeprefix("https://")

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._served.trust)

    def _headers(self, endpoint: str, key: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {key or self._served.keys[endpoint]}"}

    def _arguments(self, call: Call) -> dict[str, Any]:
        inputs = []
        for name, (kind, values) in call.tensors.items():
            inputs.append(tritonclient.http.InferInput(name, list(values.shape), kind))
            inputs[-1].set_data_from_numpy(values, binary_data=call.binary)
        outputs = [tritonclient.http.InferRequestedOutput("class", class_count=call.classes)] if call.classes else None
        return {
            "model": call.model,
            "inputs": inputs,
            "outputs": outputs,
            "headers": self._headers(call.endpoint, call.key),
            "request_compression_algorithm": call.compression,
            "response_compression_algorithm": call.compression,
            **call.sequence,
        }


class HttpLater(Http):
    """``async_infer``, in a greenlet."""

    def _send(self, client: Any, model: str, **arguments: Any) -> Any:
        return client.async_infer(model, **arguments).get_result()


class HttpAio(Http):
    """By asyncio."""

    def infer(self, call: Call) -> Any:
        async def ask() -> Any:
            arguments = self._arguments(call)
            async with self._client(call.endpoint, call.timeout_s) as client:
                return await client.infer(arguments.pop("model"), **arguments)

        return event_loop.run(ask())

    def about(self) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            headers = self._headers(SIMPLE, None)
            async with self._client() as client:
                return {name: await getattr(client, name)(*of, headers=headers) for name, of in ABOUT.items()}

        return _read(event_loop.run(ask()))

    def _client(self, endpoint: str = SIMPLE, timeout_s: float | None = None) -> Any:
        options = {"ssl": True, "ssl_context": self._trust(), "conn_timeout": timeout_s or DEADLINE_S}
        return tritonclient.http.aio.InferenceServerClient(self._url(endpoint), **options)


class Grpc:
    """``infer``, and ``async_stream_infer`` on a stream."""

    protocol = "grpc"

    def __init__(self, served: Served) -> None:
        self._served = served

    def infer(self, call: Call) -> Any:
        """Triton's result. Raises InferenceServerException."""
        with self._client() as client:
            return self._send(client, **self._arguments(call))

    def about(self) -> dict[str, Any]:
        """What the server tells of itself."""
        headers = self._metadata(SIMPLE, None)
        with self._client() as client:
            return _read(
                {name: getattr(client, name)(*of, headers=headers, **_json(name)) for name, of in ABOUT.items()}
            )

    def stream(self, call: Call, count: int) -> list[Any]:
        """``count`` results of one request."""
        answers: queue.Queue[Any] = queue.Queue()
        arguments = self._arguments(call)
        asked = {name: arguments[name] for name in ("inputs", "outputs")}
        with self._client() as client:
            client.start_stream(lambda result, error: answers.put(error or result), headers=arguments["headers"])
            client.async_stream_infer(call.model, **asked)
            found = [answers.get(timeout=DEADLINE_S) for _ in range(count)]
            client.stop_stream()
        return found

    def _client(self) -> Any:
        return tritonclient.grpc.InferenceServerClient(**self._options())

    def _options(self) -> dict[str, Any]:
        return {"url": self._served.address, "ssl": True, "root_certificates": self._served.trust}

    def _send(self, client: Any, model: str, **arguments: Any) -> Any:
        return client.infer(model, **arguments)

    def _metadata(self, endpoint: str, key: str | None) -> dict[str, str]:
        return {"amphitrite-endpoint": endpoint, "authorization": f"Bearer {key or self._served.keys[endpoint]}"}

    def _arguments(self, call: Call) -> dict[str, Any]:
        inputs = []
        for name, (kind, values) in call.tensors.items():
            inputs.append(tritonclient.grpc.InferInput(name, list(values.shape), kind))
            inputs[-1].set_data_from_numpy(values)
        outputs = [tritonclient.grpc.InferRequestedOutput("class", class_count=call.classes)] if call.classes else None
        return {
            "model": call.model,
            "inputs": inputs,
            "outputs": outputs,
            "headers": self._metadata(call.endpoint, call.key),
            "client_timeout": call.timeout_s,
            "compression_algorithm": call.compression,
            **call.sequence,
        }


class GrpcLater(Grpc):
    """``async_infer``, with a callback."""

    def _send(self, client: Any, model: str, **arguments: Any) -> Any:
        answers: queue.Queue[Any] = queue.Queue()
        client.async_infer(model, callback=lambda result, error: answers.put(error or result), **arguments)
        found = answers.get(timeout=DEADLINE_S)
        if isinstance(found, InferenceServerException):
            raise found
        return found


class GrpcAio(Grpc):
    """By asyncio, and ``stream_infer``."""

    def infer(self, call: Call) -> Any:
        async def ask() -> Any:
            arguments = self._arguments(call)
            async with self._aio() as client:
                return await client.infer(arguments.pop("model"), **arguments)

        return event_loop.run(ask())

    def about(self) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            headers = self._metadata(SIMPLE, None)
            async with self._aio() as client:
                return {
                    name: await getattr(client, name)(*of, headers=headers, **_json(name)) for name, of in ABOUT.items()
                }

        return _read(event_loop.run(ask()))

    def stream(self, call: Call, count: int) -> list[Any]:
        arguments = self._arguments(call)

        async def requests() -> AsyncIterator[dict[str, Any]]:
            yield {"model_name": call.model, "inputs": arguments["inputs"], "outputs": arguments["outputs"]}

        async def ask() -> list[Any]:
            async with self._aio() as client:
                stream = client.stream_infer(requests(), headers=arguments["headers"])
                return [error or result async for result, error in stream]

        found = event_loop.run(ask())
        assert len(found) == count
        return found

    def _aio(self) -> Any:
        return tritonclient.grpc.aio.InferenceServerClient(**self._options())


#: What is asked about a server: a client's method, and about which model.
ABOUT: dict[str, tuple[str, ...]] = {
    "is_server_live": (),
    "is_server_ready": (),
    "is_model_ready": ("simple",),
    "get_server_metadata": (),
    "get_model_metadata": ("simple",),
    "get_model_config": ("simple",),
    "get_inference_statistics": ("simple",),
}


def _json(method: str) -> dict[str, bool]:
    """How a client of gRPC is told to answer as one of HTTP does."""
    return {"as_json": True} if method.startswith("get_") else {}


def _read(found: dict[str, Any]) -> dict[str, Any]:
    """What of it is compared."""
    config = found["get_model_config"]
    return {
        "ready": all(found[name] for name in ("is_server_live", "is_server_ready", "is_model_ready")),
        "server": found["get_server_metadata"]["name"],
        "input": found["get_model_metadata"]["inputs"][0]["name"],
        "batch": config.get("config", config)["max_batch_size"],
        "counted": found["get_inference_statistics"]["model_stats"][0]["name"],
    }


CLIENTS: dict[str, type[Http] | type[Grpc]] = {
    "tritonclient.http": Http,
    "tritonclient.http, async_infer": HttpLater,
    "tritonclient.http.aio": HttpAio,
    "tritonclient.grpc": Grpc,
    "tritonclient.grpc, async_infer": GrpcLater,
    "tritonclient.grpc.aio": GrpcAio,
}

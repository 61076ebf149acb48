"""Run a program that knows a Triton in the clear, and no key, against an endpoint.

    eval "$(ml server env)"                                # whom to trust
    export SCORING_URI=https://HOST:PORT/endpoints/cats/   # ml online-endpoint show
    export SCORING_KEY=<primary or secondary key>          # ml online-endpoint get-credentials
    python at_endpoint.py image_client.py -m pictures -c 3 cat.png

Whatever address the program has, its clients of ``tritonclient`` (HTTP, gRPC, both also by asyncio)
and its gRPC channels go to the endpoint, by TLS, with the key. The program itself is not changed.
"""

from __future__ import annotations

import os
import runpy
import ssl
import sys
from typing import Any
from urllib.parse import SplitResult, urlsplit

ENDPOINT = "amphitrite-endpoint"


class Key:
    """A plugin of ``tritonclient`` that adds the key to each request."""

    def __init__(self, key: str) -> None:
        self._value = f"Bearer {key}"

    def __call__(self, request: Any) -> None:
        request.headers["Authorization"] = self._value


def by_http(address: SplitResult, key: str) -> None:
    """Both clients by HTTP."""
    import tritonclient.http
    import tritonclient.http.aio

    where = address.netloc + address.path.rstrip("/")

    def at_endpoint(client: Any, **tls: Any) -> None:
        connect = client.__init__

        def connected(self: Any, url: str, *positional: Any, **named: Any) -> None:
            connect(self, where, *positional, **{**named, "ssl": True, **tls})
            self.register_plugin(Key(key))

        client.__init__ = connected

    trust = ssl.create_default_context()
    at_endpoint(tritonclient.http.InferenceServerClient, ssl_context_factory=lambda: trust, ssl_options=None)
    at_endpoint(tritonclient.http.aio.InferenceServerClient, ssl_context=trust)


def by_grpc(address: SplitResult, key: str) -> None:
    """All channels, whoever opens them: ``tritonclient.grpc`` or the program itself."""
    import grpc  # type: ignore[import-untyped]

    calls = [grpc.access_token_call_credentials(key)]
    if address.path.strip("/"):  # By path: without a host name of its own, metadata names the endpoint.
        named = ((ENDPOINT, address.path.strip("/").split("/")[1]),)
        calls.append(grpc.metadata_call_credentials(lambda _, done: done(named, None)))
    credentials = grpc.composite_channel_credentials(grpc.ssl_channel_credentials(), *calls)
    for module in (grpc, grpc.aio):
        _replace(module, address.netloc, credentials)


def _replace(module: Any, where: str, credentials: Any) -> None:
    """Both ways to open a channel of ``grpc`` or ``grpc.aio``."""
    secure = module.secure_channel
    module.insecure_channel = lambda _, *more, **named: secure(where, credentials, *more, **named)
    module.secure_channel = lambda _, __, *more, **named: secure(where, credentials, *more, **named)


def main() -> None:
    if len(sys.argv) < 2 or not {"SCORING_URI", "SCORING_KEY"} <= os.environ.keys():
        sys.exit("usage: SCORING_URI=https://... SCORING_KEY=... at_endpoint.py PROGRAM [ARGUMENT...]")
    address, key = urlsplit(os.environ["SCORING_URI"]), os.environ["SCORING_KEY"]
    if address.scheme != "https":
        sys.exit(f"SCORING_URI must start with https://, not {os.environ['SCORING_URI']!r}")
    by_http(address, key)
    by_grpc(address, key)
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()

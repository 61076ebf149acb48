"""A registry to push images to, on this machine: what the distribution specification asks of one.

Decides which requests it takes. Keeps manifests alone: of blobs it remembers that they came. Must
not know who pushes.
"""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


class Registry:
    """``manifests``: by ``repository:tag``."""

    def __init__(self) -> None:
        self.manifests: dict[str, bytes] = {}
        self._blobs: dict[str, int] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Registry:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self, status: int, **headers: str) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                if "Content_Length" not in headers:
                    self.send_header("Content-Length", "0")
                self.end_headers()

            def _body(self) -> bytes:
                """Of a blob the last part alone: nobody asks for it."""
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                last = b""
                while size := int(self.rfile.readline(), 16):
                    last = self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return last

            def do_GET(self) -> None:
                self._answer(200 if self.path == "/v2/" else 404)

            def do_HEAD(self) -> None:
                digest = self.path.rpartition("/")[2]
                if digest not in registry._blobs:
                    return self._answer(404)
                return self._answer(200, Docker_Content_Digest=digest, Content_Length=str(registry._blobs[digest]))

            def do_POST(self) -> None:
                self._body()
                self._answer(202, Location=f"{self.path}1")

            def do_PATCH(self) -> None:
                self._body()
                self._answer(202, Location=self.path)

            def do_PUT(self) -> None:
                body = self._body()
                path, _, query = self.path.partition("?")
                if "/manifests/" in path:
                    repository, _, tag = path.removeprefix("/v2/").partition("/manifests/")
                    registry.manifests[f"{repository}:{tag}"] = body
                    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
                    return self._answer(201, Docker_Content_Digest=digest)
                digest = query.partition("digest=")[2].replace("%3A", ":")
                registry._blobs[digest] = len(body)
                return self._answer(201, Docker_Content_Digest=digest)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

"""A control plane that does nothing but hand out models, as far as the model fetcher can tell.

Decides which files a digest stands for. Must not know pods.
"""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

GRANT = "Bearer v1.test"
#: The digest of a model that no grant opens.
CLOSED = "c" * 64


class ModelSource:
    """``root``: a directory of model repositories. ``digests``: of each, by its name. Listens on
    every address."""

    def __init__(self, root: Path) -> None:
        self._contents: dict[str, bytes] = {}
        self._manifests: dict[str, bytes] = {}
        self.digests = {path.name: self._add(path) for path in sorted(root.iterdir())}
        self._server = ThreadingHTTPServer(("0.0.0.0", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _add(self, repository: Path) -> str:
        files = []
        for path in sorted(p for p in repository.rglob("*") if p.is_file()):
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            self._contents[digest] = content
            name = path.relative_to(repository).as_posix()
            files.append({"path": name, "digest": digest, "size": len(content), "url": f"content/{digest}"})
        pairs = json.dumps(sorted((file["path"], file["digest"]) for file in files))
        whole = hashlib.sha256(pairs.encode()).hexdigest()
        listed = {"digest": whole, "files": files, "empty_directories": []}
        self._manifests[whole] = json.dumps(listed).encode()
        return whole

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        manifests, contents = self._manifests, self._contents

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                place, _, digest = self.path.rpartition("/")
                body = (manifests if place.endswith("/models") else contents).get(digest)
                opened = place != "/fetch/v1/models" or (
                    self.headers.get("Authorization") == GRANT and digest != CLOSED
                )
                status = 401 if not opened else 404 if body is None else 200
                self.send_response(status)
                answer = body if status == 200 and body is not None else b"{}"
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

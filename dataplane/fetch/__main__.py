"""``python -m amphitrite.dataplane.fetch``: one model into the node's cache, then one line with the
result.

Decides the order of steps and the form of the result: ``{"cache": "hit"|"miss", "bytes": N,
"seconds": S}`` and exit status 0, or ``{"error": "...", "hint": "..."}`` and 1. Must not know HTTP
or the layout of the cache.

It may be killed at any moment. The next one continues with what is there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from amphitrite.dataplane.fetch import environment, manifest
from amphitrite.dataplane.fetch.cache import Cache, size_of
from amphitrite.dataplane.fetch.download import Download
from amphitrite.dataplane.fetch.environment import Settings
from amphitrite.dataplane.fetch.fetch_failure import FetchFailure
from amphitrite.dataplane.fetch.http_client import HttpClient
from amphitrite.dataplane.fetch.manifest import Manifest

#: Kubernetes reads at most 4096 bytes of a termination message.
_MESSAGE_MAX = 1500


def fetch(settings: Settings) -> dict[str, Any]:
    """The result of a success. Raises FetchFailure."""
    began = time.monotonic()
    cache = Cache(settings.cache, settings.cache_bytes)
    with cache.locked(settings.digest):
        model = cache.model(settings.digest)
        hit = model.is_dir()
        if not hit:
            _download(settings, cache)
        size = size_of(model)
    return {"cache": "hit" if hit else "miss", "bytes": size, "seconds": round(time.monotonic() - began, 3)}


def _download(settings: Settings, cache: Cache) -> None:
    http = HttpClient(settings.ca, settings.proxy)

    def ask() -> Manifest:
        body = http.list_files(f"{settings.url}/fetch/v1/models/{settings.digest}", settings.grant)
        return manifest.read(body, settings.digest, settings.url)

    download = Download(http, ask, settings.stall_timeout_s)
    listing = download.manifest()
    print(f"fetching {len(listing.files)} files, {listing.size} bytes", flush=True)
    cache.remove_abandoned(time.time())
    cache.free_space(settings.digest, listing.size, listing.in_use)
    download.fetch_into(*cache.staging(settings.digest), listing)
    cache.publish(settings.digest)


def main(environ: Mapping[str, str]) -> int:
    """The exit status."""
    # As process 1 of a container it would ignore the signal otherwise. There is nothing to clean
    # up.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    os.umask(0o022)
    try:
        result = fetch(environment.read(environ))
    except FetchFailure as failure:
        result = {"error": failure.message[:_MESSAGE_MAX], "hint": failure.hint}
    except Exception as exc:
        # The text of the exception may hold an address. Where it happened does not.
        last = traceback.extract_tb(exc.__traceback__)[-1]
        result = {"error": f"unexpected {type(exc).__name__} at {Path(last.filename).name}:{last.lineno}", "hint": ""}
    line = json.dumps(result)
    print(line, flush=True)
    with suppress(OSError):  # Outside of a pod there is no such file.
        _write_result(environment.result_file(environ), line)
    return 1 if "error" in result else 0


def _write_result(file: Path, line: str) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(os.environ))

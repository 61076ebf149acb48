"""``python -m amphitrite.dataplane.fetch``: one model into the node's cache, then one line about how it went.

Decides the order of steps and the shape of the result: ``{"cache": "hit"|"miss", "bytes": N, "seconds": S}`` and exit
status 0, or ``{"error": "...", "hint": "..."}`` and 1. Must not know HTTP or the cache's layout.

It may be killed at any moment: what is there is gone on with by the next one.
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
from amphitrite.dataplane.fetch.fetch_failure import Problem
from amphitrite.dataplane.fetch.http_client import Web
from amphitrite.dataplane.fetch.manifest import Manifest

#: Kubernetes reads at most 4096 bytes of it.
_MESSAGE_MAX = 1500


def fetch(given: Settings) -> dict[str, Any]:
    """The result of a success. Raises Problem."""
    began = time.monotonic()
    cache = Cache(given.cache, given.cache_bytes)
    with cache.locked(given.digest):
        model = cache.model(given.digest)
        hit = model.is_dir()
        if not hit:
            _download(given, cache)
        size = size_of(model)
    return {"cache": "hit" if hit else "miss", "bytes": size, "seconds": round(time.monotonic() - began, 3)}


def _download(given: Settings, cache: Cache) -> None:
    web = Web(given.ca, given.proxy)

    def ask() -> Manifest:
        body = web.list_files(f"{given.url}/fetch/v1/models/{given.digest}", given.grant)
        return manifest.read(body, given.digest, given.url)

    download = Download(web, ask, given.patience_s)
    wanted = download.manifest()
    print(f"fetching {len(wanted.files)} files, {wanted.size} bytes", flush=True)
    cache.drop_leftovers(time.time())
    cache.make_room(given.digest, wanted.size, wanted.in_use)
    download.into(*cache.building(given.digest), wanted)
    cache.publish(given.digest)


def main(environ: Mapping[str, str]) -> int:
    """The exit status."""
    # As process 1 of a container nothing would end it otherwise. Nothing needs tidying.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    os.umask(0o022)
    try:
        result = fetch(environment.read(environ))
    except Problem as problem:
        result = {"error": problem.message[:_MESSAGE_MAX], "hint": problem.hint}
    except Exception as exc:
        # Its text may hold an address; where it happened does not.
        last = traceback.extract_tb(exc.__traceback__)[-1]
        result = {"error": f"unexpected {type(exc).__name__} at {Path(last.filename).name}:{last.lineno}", "hint": ""}
    line = json.dumps(result)
    print(line, flush=True)
    with suppress(OSError):  # Outside of a pod there is no such file.
        _tell(environment.result_file(environ), line)
    return 1 if "error" in result else 0


def _tell(file: Path, line: str) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(os.environ))

"""The event loop of every client that has one.

Decides that it runs until the process ends, in a thread of its own: a client that is closed ends
its connections in the loop's next rounds, and ``asyncio.run`` has none left. Must not know clients.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def run(asked: Coroutine[Any, Any, T]) -> T:
    """What it returns or raises."""
    return asyncio.run_coroutine_threadsafe(asked, _loop()).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    atexit.register(_end, loop, thread)
    return loop


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()

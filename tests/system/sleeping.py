"""Requests to a deployment that falls asleep and wakes, while its processes are killed.

Decides when is asked and what dies: bursts whose pauses are around the time after which it falls
asleep, so that requests arrive before, while and after it does. A request counts as lost if it is
not answered 200. A client whose connection is broken sends once more: the proxy itself was killed.
Must not know how many requests may be lost.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from ..waiting import wait_until
from .models import INFER, REQUEST
from .product import Product

IDLE_TIMEOUT_S = 2
SETTINGS = {
    "scale_settings": {
        "type": "target_utilization",
        "min_instances": 0,
        "max_instances": 1,
        "idle_timeout": IDLE_TIMEOUT_S,
    },
    "properties": {"amphitrite.retry": "lost-requests"},
}
BURST = 6


@dataclass
class Seen:
    """``answers``: by status, or by the name of an exception. ``again``: sent once more.
    ``longest_s``: the longest wait for an answer."""

    answers: Counter[object] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    again: int = 0
    longest_s: float = 0.0
    lost_after: Counter[str] = field(default_factory=Counter)

    @property
    def lost(self) -> int:
        return sum(count for status, count in self.answers.items() if status != 200)


def ask(product: Product, key: str, seen: Seen, lock: threading.Lock) -> object:
    """One request, and what became of it."""
    began, outcome, again = time.monotonic(), None, 0
    for attempt in range(20):
        try:
            outcome = product.request(INFER, key=key, body=REQUEST).status
            break
        except OSError as exc:
            outcome, again = type(exc).__name__, attempt + 1
            threading.Event().wait(0.25)  # As a client would: the proxy starts again.
    with lock:
        seen.answers[outcome] += 1
        seen.again += again
        seen.longest_s = max(seen.longest_s, time.monotonic() - began)
    return outcome


def wakes(product: Product) -> int:
    """How often it has got its first instance."""
    query = "SELECT count(*) FROM scale_events WHERE before = 0 AND after > 0"
    return int(product.query(query)[0][0])


def phase(product: Product) -> str:
    return str(product.query("SELECT phase FROM deployments WHERE key = 'blue'")[0][0])


def asleep(product: Product) -> bool:
    return phase(product) == "Asleep"


def through(product: Product, cycles: int, seed: int = 1) -> Seen:
    """Each cycle is a burst, and every second one kills something during it."""
    chance, seen, lock, key = random.Random(seed), Seen(), threading.Lock(), product.keys()[0]
    victims: dict[str, Callable[[], None]] = {
        "control plane": lambda: _kill_control_plane(product),
        "agent": lambda: product.kill(product.pid("dataplane/agent.json")),
        "proxy": lambda: product.kill(product.pid("dataplane/envoy.json")),
        "instance": lambda: [product.kill(pid) for pid in product.instances()[:1]] and None,
    }
    for cycle in range(cycles):
        with ThreadPoolExecutor(BURST) as pool:
            asked = [pool.submit(ask, product, key, seen, lock) for _ in range(BURST)]
            victim = ""
            if cycle % 2:
                victim = chance.choice(sorted(victims))
                threading.Event().wait(chance.uniform(0.0, 2.0))
                with suppress(AssertionError, IndexError, FileNotFoundError):
                    victims[victim]()
                    seen.killed[victim] += 1
            seen.lost_after[victim] += sum(1 for one in asked if one.result() != 200)
        # Idle samples come every few seconds.
        pause = chance.uniform(1.0, 4.0) * IDLE_TIMEOUT_S
        if chance.random() < 0.6:
            wait_until(lambda: asleep(product), "it sleeps", detail=lambda: _facts(product))
        else:
            threading.Event().wait(pause)
    return seen


def _facts(product: Product) -> str:
    """What would tell why it does not sleep."""
    queries = (
        "SELECT phase, message FROM deployments",
        "SELECT count, reason, changed_at, used_at FROM deployment_scales",
        "SELECT acknowledged_version, drained_version, seen_at FROM agent_reports",
        "SELECT version FROM routing_tables",
    )
    return "\n".join(str(product.query(query)) for query in (*queries, "SELECT strftime('%s')"))


def _kill_control_plane(product: Product) -> None:
    product.kill_control_plane()
    product.start()

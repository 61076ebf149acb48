"""``kill -9`` of one of a deployment's two instances, again and again, under load.

Decides when the next one dies: when both serve again, in the proxies too. Must not know how many
requests may be lost.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..load.background import Client, Load, load
from ..waiting import wait_until
from .models import INFER, REQUEST
from .product import Product

#: As many requests are in flight at any time, at most.
CONNECTIONS = 6
#: What ``amphitrite.retry`` may say; the second is the default.
LOST_REQUESTS = "lost-requests"
RETRY = (LOST_REQUESTS, "not-run")
_BLUE = "onlineEndpoints/cats/deployments/blue"


def kill_instances(product: Product, work: Path, model: str, times: int, retry: str) -> Load:
    """What clients of endpoint ``cats`` saw, whose deployment blue serves everything. It keeps two
    instances."""
    product.deploy("blue", model, verb="update", instance_count=2, properties={"amphitrite.retry": retry})
    clients = (
        Client("kept", INFER, REQUEST, connections=4),
        Client("anew", INFER, REQUEST, connections=CONNECTIONS - 4, headers=("Connection: close",)),
    )
    url = f"https://127.0.0.1:{product.scoring_port}"
    with load(url, product.ca_file, product.keys()[0], work / f"load-{retry}", clients) as seen:
        for number in range(times):
            wait_until(partial(_answered, seen, seen.answered), "clients are served")
            wait_until(lambda: len(product.instances()) == 2, "former ones have ended")
            victim = product.instances()[number % 2]
            product.kill(victim)
            wait_until(lambda: not _in_force(product), "its end is noticed")
            wait_until(lambda: _in_force(product), "both serve, and every proxy knows")
            # Failures in a row count since the last change: without one, each start would wait
            # longer than the last.
            product.put(_BLUE, description=f"{number + 1} killed")
    return seen


def _answered(seen: Load, more_than: int) -> bool:
    return seen.answered > more_than


def _in_force(product: Product) -> bool:
    """All instances are ready, and every live proxy has acknowledged the table that names them."""
    return bool(product.query("SELECT phase = 'Ready' FROM deployments WHERE key = 'blue'")[0][0])

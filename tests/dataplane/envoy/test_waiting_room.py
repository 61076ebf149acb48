"""The requests that are held, as a value beside an Envoy that only counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping

from amphitrite.dataplane.envoy.callouts.waiting_room import Admitted, WaitingRoom
from amphitrite.dataplane.envoy.process.admin_client import Host
from amphitrite.dataplane.envoy.translate.held_requests import HOLD_CLUSTER
from amphitrite.dataplane.table.routing_table import Address

BLUE = ("images", "blue")


class Counting:
    """``active``: the calls that Envoy waits for. ``asked``: how often somebody wanted to know."""

    def __init__(self, active: int) -> None:
        self.active, self.asked = active, 0

    def hosts(self, names: Collection[str]) -> Mapping[str, Collection[Host]]:
        self.asked += 1
        return {HOLD_CLUSTER: [Host(Address("127.0.0.1", 1), True, self.active)]} if HOLD_CLUSTER in names else {}


def test_it_closes_after_all_whose_call_has_not_been_answered_yet() -> None:
    """Routes that hold requests must not come into force before those who were let go have found
    the ones before, also while the loop has not told Envoy so yet."""

    async def closed() -> None:
        envoy = Counting(3)
        room = WaitingRoom(envoy.hosts)
        calls = [asyncio.create_task(room.wait(BLUE, time.time(), 60.0)) for _ in range(3)]
        while room.held().get(BLUE) != 3:
            await asyncio.sleep(0)
        room._let_go(BLUE, room._rooms[BLUE], 3)
        closing = asyncio.create_task(room._close({BLUE}))
        while envoy.asked < 3 and not closing.done():
            await asyncio.sleep(0.001)
        assert not closing.done()
        assert all(isinstance(one, Admitted) for one in await asyncio.gather(*calls))
        envoy.active = 0
        await closing

    asyncio.run(closed())

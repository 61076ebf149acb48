"""Objects that stay are set aside by the garbage collector, and looked at again when it is time."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from amphitrite.dataplane.machine import garbage_collection
from amphitrite.dataplane.machine.garbage_collection import CollectionCallback

pytestmark = pytest.mark.slow


class Clocks:
    """``each``: what one collection takes of the processor. ``before``: what the tests themselves
    have set aside."""

    def __init__(self) -> None:
        self.before = gc.get_freeze_count()
        self.now = self.each = self._spent = 0.0

    def spent(self) -> float:
        self._spent += self.each
        return self._spent


class Knot:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def clocks() -> Iterator[Clocks]:
    made = Clocks()
    callback = CollectionCallback(made.spent, lambda: made.now)
    gc.callbacks.append(callback)
    yield made
    gc.callbacks.remove(callback)
    gc.freeze()


@pytest.mark.parametrize(("each", "generation", "aside"), [(0.5, 2, True), (0.001, 2, False), (0.5, 1, False)])
def test_what_survives_a_long_full_collection_is_set_aside(
    clocks: Clocks, each: float, generation: int, aside: bool
) -> None:
    clocks.each = each
    gc.collect(generation)
    assert (gc.get_freeze_count() > clocks.before) == aside


def test_what_became_garbage_while_set_aside_goes_within_hours(clocks: Clocks) -> None:
    knot = Knot()
    there = weakref.ref(knot)
    clocks.each = 0.5
    gc.collect()
    del knot
    gc.collect()
    assert there() is not None
    clocks.now = 3600.0
    gc.collect()
    assert there() is None


def test_what_is_there_before_is_set_aside_and_collections_go_on() -> None:
    callbacks, threshold, turn = list(gc.callbacks), gc.get_threshold(), sys.getswitchinterval()
    try:
        garbage_collection.disable()
        assert not gc.isenabled()
        garbage_collection.limit_pauses()
        assert gc.isenabled() and gc.get_freeze_count() > 0
        assert sys.getswitchinterval() < turn
    finally:
        sys.setswitchinterval(turn)
        gc.set_threshold(*threshold)
        gc.callbacks[:] = callbacks
        gc.enable()

"""The limit of threads' stacks: raised as far as the administrator allows, inherited, and never
what the C library would take for two megabytes."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

MIB = 1024 * 1024
NONE = resource.RLIM_INFINITY
PROGRAM = """
import resource, subprocess, sys
from amphitrite.dataplane.machine import thread_stacks
print(thread_stacks.raise_limit(), resource.getrlimit(resource.RLIMIT_STACK)[0], flush=True)
subprocess.run(["sh", "-c", "ulimit -Ss"])
"""


@pytest.mark.parametrize(
    ("limits", "raised"),
    [((8, NONE), 16), ((8, 12), 12), ((8, 64), 16), ((32, NONE), 32), ((NONE, NONE), 16)],
    ids=["default", "hard limit", "higher hard limit", "more than wanted", "unlimited"],
)
def test_the_limit_of_stacks(limits: tuple[int, int], raised: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    if hard != NONE:
        pytest.skip("a hard limit of stacks is set here: run the tests where `ulimit -Hs` is unlimited")
    wanted = tuple(one if one == NONE else one * MIB for one in limits)
    set_first = f"import resource; resource.setrlimit(resource.RLIMIT_STACK, {wanted})\n"
    done = subprocess.run([sys.executable, "-c", set_first + PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(raised * MIB), str(raised * MIB), str(raised * 1024)]

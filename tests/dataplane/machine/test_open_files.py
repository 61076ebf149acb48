"""The limit of open files: raised as far as the administrator allows, inherited, never lowered."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource, subprocess, sys
from amphitrite.dataplane.machine import open_files
print(open_files.raise_limit(500), *resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)
subprocess.run(["sh", "-c", "ulimit -Sn"])
"""


@pytest.mark.parametrize(
    ("limits", "raised"),
    [((256, 256), 256), ((256, 400), 400), ((256, 900), 500), ((600, 900), 600)],
)
def test_the_limit_of_open_files(limits: tuple[int, int], raised: int) -> None:
    set_first = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, {limits})\n"
    done = subprocess.run([sys.executable, "-c", set_first + PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(one) for one in (raised, raised, limits[1], raised)]

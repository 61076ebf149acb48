"""What a control group grants, from files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from amphitrite.dataplane.machine import cgroup_limits

MIB = 1024 * 1024


def group(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return directory


@pytest.mark.parametrize(
    ("files", "cores", "workers"),
    [
        ({}, 4, 4),
        ({}, 64, 8),
        ({"cpu.max": "max 100000\n"}, 4, 4),
        ({"cpu.max": "200000 100000\n"}, 16, 2),
        ({"cpu.max": "150000 100000\n"}, 16, 2),
        ({"cpu.max": "5000 100000\n"}, 16, 1),
        ({"cpu.max": "1600000 100000\n"}, 4, 4),
        ({"cpu.max": "what is this"}, 4, 4),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 16, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4, 4),
    ],
)
def test_worker_threads(files: dict[str, str], cores: int, workers: int, tmp_path: Path) -> None:
    assert cgroup_limits.workers(group(tmp_path, files), cores) == workers


@pytest.mark.parametrize(
    ("files", "heap"),
    [
        ({}, None),
        ({"memory.max": "max\n"}, None),
        ({"memory.max": f"{512 * MIB}\n"}, 320 * MIB),
        ({"memory.max": f"{128 * MIB}\n"}, 64 * MIB),
        ({"memory/memory.limit_in_bytes": f"{1024 * MIB}\n"}, 832 * MIB),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
    ],
)
def test_heap(files: dict[str, str], heap: int | None, tmp_path: Path) -> None:
    assert cgroup_limits.heap_bytes(group(tmp_path, files)) == heap

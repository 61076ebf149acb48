"""Run every benchmark of this folder, or those that are named: ``python -m bench [commands serving ...]``.

Decides the form of a result: a table on stdout and ``bench/results/<name>.json`` with the machine it was measured on.
Must not know what is measured: a benchmark is a module here with ``run(work: Path) -> list[dict]``, whose first
docstring line is its title, or a program of its own that prints and writes by itself. A benchmark that cannot run
raises ``Unavailable`` with the reason, which is printed.
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.product import Unavailable

HERE = Path(__file__).resolve().parent
MODULES = ("commands", "lists", "upload", "serving", "changes")
#: program -> the command it needs, which is also the name of a Debian package.
PROGRAMS = {"router_auth": "wrk"}


def machine() -> dict[str, Any]:
    """What the figures depend on most."""
    model = "unknown"
    if (cpuinfo := Path("/proc/cpuinfo")).exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}


def table(rows: list[dict[str, Any]]) -> str:
    """Rows with the same keys as aligned text."""
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def require(command: str) -> None:
    """Have ``command``, from the Debian package of that name if need be. Raises Unavailable where that cannot be."""
    if shutil.which(command):
        return
    if shutil.which("apt-get") is None or os.getuid() != 0:
        raise Unavailable(f"it needs {command}; on Debian and Ubuntu: apt-get install {command}")
    print(f"$ apt-get install {command}", flush=True)
    if subprocess.run(["apt-get", "install", "-qq", "-y", command], stdout=subprocess.DEVNULL, check=False).returncode:
        raise Unavailable(f"apt-get could not install {command}; after `apt-get update` it may")


def run_module(name: str) -> None:
    module = importlib.import_module(f"bench.{name}")
    print((module.__doc__ or "").splitlines()[0], flush=True)
    with tempfile.TemporaryDirectory(prefix="amphitrite-bench-") as work:
        rows = module.run(Path(work))
    print(table(rows))
    when = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    result = {"benchmark": name, "when": when, "machine": machine(), "rows": rows}
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")


def run_program(name: str) -> None:
    require(PROGRAMS[name])
    subprocess.run([sys.executable, HERE / f"{name}.py"], check=True)


def main(names: list[str]) -> int:
    known = (*MODULES, *PROGRAMS)
    if unknown := sorted(set(names) - set(known)):
        print(f"error: no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    for name in names or known:
        print(f"\n== {name}", flush=True)
        try:
            if name in PROGRAMS:
                run_program(name)
            else:
                run_module(name)
        except Unavailable as exc:
            print(f"skipped: {exc}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

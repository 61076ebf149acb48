"""Run every benchmark of this folder, or those that are named:
``python -m bench [router serving ...]``.

Decides the form of a result: tables on stdout and ``bench/results/<name>.json`` with the machine it
was measured on. Must not know what is measured: a benchmark is a module here whose first docstring
line is its title, with ``run(work)`` that gives rows or a ``Report``. One that takes ``quick`` has
a short form for whoever works on it; one that takes ``seconds`` goes on that long; one with a
function ``parts`` can say where the cost lies. A benchmark that cannot run raises ``Unavailable``
with the reason.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import inspect
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from bench import figures, machine
from bench.product import Unavailable
from bench.stats import Report, table

HERE = Path(__file__).resolve().parent
MODULES = (
    "commands",
    "scaling",
    "rollouts",
    "autoscale",
    "lists",
    "upload",
    "changes",
    "control",
    "serving",
    "router",
    "queueing",
    "loss",
    "abuse",
)
#: program -> the command it needs, which is also the name of a Debian package.
PROGRAMS = {"router_auth": "wrk"}


def measured(name: str, given: argparse.Namespace) -> Report:
    module = importlib.import_module(f"bench.{name}")
    print((module.__doc__ or "").splitlines()[0], flush=True)
    function = getattr(module, "parts", None) if given.parts else module.run
    if function is None:
        raise Unavailable(f"{name} has no parts")
    options: dict[str, Any] = {}
    if "quick" in inspect.signature(function).parameters:
        options["quick"] = given.quick
    if "seconds" in inspect.signature(function).parameters:
        options["seconds"] = given.seconds
    with tempfile.TemporaryDirectory(prefix="amphitrite-bench-") as work:
        found = function(Path(work), **options)
    return found if isinstance(found, Report) else Report({name: found})


def show(report: Report) -> None:
    for title, rows in report.tables.items():
        print(f"\n{title}\n{table(rows)}")
    for note in report.notes:
        print(f"note: {note}")
    if report.goals:
        print(f"\n{table([goal.row() for goal in report.goals])}")


def run_module(name: str, given: argparse.Namespace) -> None:
    facts, began = machine.facts(), time.monotonic()
    report = measured(name, given)
    show(report)
    when = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    result = {
        "benchmark": name,
        "when": when,
        "took_s": round(time.monotonic() - began),
        "parts": given.parts,
        "machine": facts,
        **report.json(),
    }
    results = machine.BUILD / "quick" if given.quick else HERE / "results"
    results.mkdir(parents=True, exist_ok=True)
    file = results / f"{name}{'_parts' if given.parts else ''}.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    if not given.quick:
        figures.write()


def run_program(name: str, given: argparse.Namespace) -> None:
    machine.require(PROGRAMS[name])
    if given.quick:
        raise Unavailable("it has no short form that is not written to results")
    subprocess.run([sys.executable, HERE / f"{name}.py"], check=True)


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure, and write bench/results/*.json.")
    known = (*MODULES, *PROGRAMS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; without one: all")
    parser.add_argument("--quick", action="store_true", help="short rounds, written below build/bench/quick")
    parser.add_argument("--seconds", type=float, default=60, metavar="N", help="how long to abuse it (60)")
    parser.add_argument("--parts", action="store_true", help="where the cost lies, in place of the comparison")
    given = parser.parse_args(words)
    if unknown := sorted(set(given.names) - set(known)):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}")
    given.names = given.names or list(known)
    return given


def main(words: list[str]) -> int:
    """0 when all that can run here ran; 1 when one failed, after the others have had their turn."""
    given = parse(words)
    failed = []
    for name in given.names:
        print(f"\n== {name}", flush=True)
        try:
            if name in PROGRAMS:
                run_program(name, given)
            else:
                run_module(name, given)
        except Unavailable as exc:
            print(f"skipped: {exc}")
        except Exception:
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def end(*_: object) -> None:
    """Told to end, it ends what it has started, as after an error; told so twice, as by
    ``timeout``, too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


if __name__ == "__main__":
    if shutil.which("taskset") is None:
        print("error: taskset is missing (package util-linux)", file=sys.stderr)
        sys.exit(1)
    signal.signal(signal.SIGTERM, end)
    sys.exit(main(sys.argv[1:]))

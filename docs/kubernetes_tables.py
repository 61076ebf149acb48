"""Writes the generated tables of docs/kubernetes.md: the contract of the runtimes, and the control
plane's rights.

Decides how a test's name and a rule read as a row. Must not add facts: a row that is missing here
is missing in ``tests/controlplane/runtimes/test_runtimes.py`` or in
``controlplane/runtimes/kubernetes/client/permissions.py``.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from amphitrite.controlplane.runtimes.kubernetes.client.permissions import CLUSTER_RULES, RULES, Rule

PAGE = Path(__file__).parent / "kubernetes.md"
ROOT = Path(__file__).parents[1]
CONTRACT = ROOT / "tests" / "controlplane" / "runtimes" / "test_runtimes.py"
#: The names of the contract's parameters, in the order of the columns.
RUNTIMES = ("memory", "local", "kubernetes")


def parity() -> str:
    """One row for each test of the contract, one column for each runtime that it is run against."""
    collected = _collected()
    runtimes = [name for name in RUNTIMES if any(name in found for found in collected.values())]
    tree = ast.parse(CONTRACT.read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in collected]
    lines = [f"| what holds | {' | '.join(runtimes)} |", "|---" * (len(runtimes) + 1) + "|"]
    for test in tests:
        cells = ("yes" if name in collected[test.name] else "-" for name in runtimes)
        lines.append(f"| {_sentence(test)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _collected() -> dict[str, set[str]]:
    """Each test of the contract with the words of its parameters, as pytest finds them; nothing is
    run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", str(CONTRACT)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: dict[str, set[str]] = {}
    for name, parameters in re.findall(r"::(test_\w+)\[(.+)\]$", listed, re.MULTILINE):
        found.setdefault(name, set()).update(parameters.split("-"))
    return {name: words for name, words in found.items() if words & set(RUNTIMES)}


def _sentence(test: ast.FunctionDef) -> str:
    """The first sentence of its docstring, else its name."""
    said = ast.get_docstring(test)
    text = re.split(r"[.:](?:\s|$)", said, maxsplit=1)[0] if said else test.name.removeprefix("test_").replace("_", " ")
    return " ".join(text.replace("``", "`").split())


def permissions() -> str:
    """One row for each right, with the reason that the program gives for it."""
    lines = ["| where | group | resource | verbs | why |", "|---|---|---|---|---|"]
    lines += [_right("namespace", rule) for rule in RULES]
    lines += [_right("cluster, optional", rule) for rule in CLUSTER_RULES]
    return "\n".join(lines)


def _right(where: str, rule: Rule) -> str:
    return f"| {where} | {rule.group or 'core'} | {rule.resource} | {', '.join(rule.verbs)} | {rule.why} |"


def page() -> str:
    """docs/kubernetes.md with its generated sections as they should be now."""
    text = PAGE.read_text(encoding="utf-8")
    for name, content in (("parity", parity()), ("permissions", permissions())):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{content}\n{end}{rest.split(end)[1]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

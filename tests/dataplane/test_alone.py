"""The agent runs from the extra ``proxy`` alone: its image holds no web framework, no database, no
model server."""

from __future__ import annotations

import subprocess
import sys

#: What the other extras bring (``pyproject.toml``).
OTHERS = (
    *("fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "cryptography"),
    *("pytriton", "onnxruntime", "numpy", "kubernetes", "boto3", "psycopg", "tritonclient"),
)
#: What only an agent loads: Envoy's messages and the discovery service.
AGENTS = ("grpc", "google", "envoy")
AGENT = """
import amphitrite.dataplane.__main__ as agent
assert not [name for name in sys.modules if name.startswith("amphitrite.controlplane")]
sys.argv = ["agent", "--help"]
agent.main()
"""


def run_without(packages: tuple[str, ...], program: str) -> subprocess.CompletedProcess[str]:
    """``program`` in a process where these packages are not installed."""
    absent = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
    command = [sys.executable, "-c", absent + program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_imports_without_the_other_extras() -> None:
    done = run_without(OTHERS, AGENT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--seed" in done.stdout


def test_the_control_plane_finds_proxies_without_what_an_agent_loads() -> None:
    program = """
from pathlib import Path
from amphitrite.dataplane import orphaned_proxies
print(orphaned_proxies.listen_address(Path("/nonexistent")))
"""
    done = run_without(AGENTS, program)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "None\n")
    assert "No module named" in run_without(AGENTS, AGENT).stderr

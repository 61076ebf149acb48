"""The agent runs from the extra ``proxy`` alone: its image holds no web framework, no database, no model server."""

from __future__ import annotations

import subprocess
import sys

#: What the other extras bring (``pyproject.toml``).
OTHERS = (
    *("fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "cryptography"),
    *("pytriton", "onnxruntime", "numpy", "kubernetes", "boto3", "psycopg", "tritonclient"),
)
SCRIPT = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OTHERS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
import amphitrite.dataplane.__main__ as agent
assert not [name for name in sys.modules if name.startswith("amphitrite.controlplane")]
sys.argv = ["agent", "--help"]
agent.main()
"""


def test_it_imports_without_the_other_extras() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--seed" in done.stdout

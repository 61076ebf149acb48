"""Which Triton serves on this machine, and what it needs to run.

Decides where Triton is looked for (``TRITON_SERVER``, then ``PATH``, then the ``nvidia-pytriton``
wheel) and which libraries it and its Python stubs load. Must not know instances, ports or
repositories.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from amphitrite.schemas.errors import Error

#: The Python whose shared library is in the wheel.
PYTHON_IN_WHEEL = (3, 13)
_HINT = "run `make install` in a checkout of amphitrite, or set TRITON_SERVER to a full installation's tritonserver"


@dataclass(frozen=True, slots=True)
class Installation:
    """One Triton.

    - ``backends``: its own backend directory.
    - ``libraries``: directories for LD_LIBRARY_PATH.
    - ``stub``: the wheel's Python stub for this Python; None: a full installation, which brings its
      own Python and backends.
    - ``caches``: the directory of its response caches; None: it has none.
    """

    binary: Path
    backends: Path
    libraries: tuple[Path, ...] = ()
    stub: Path | None = None
    caches: Path | None = None


def locate(environ: Mapping[str, str]) -> Installation:
    """The Triton to use. Raises Error("RuntimeUnavailable") that says how to get one."""
    if named := environ.get("TRITON_SERVER"):
        if not os.access(named, os.X_OK) or not Path(named).is_file():
            raise _unavailable(f"TRITON_SERVER names {named}, which is not an executable file")
        return installed_at(Path(named))
    if found := shutil.which("tritonserver", path=environ.get("PATH", os.defpath)):
        return installed_at(Path(found))
    wheel = importlib.util.find_spec("pytriton")  # It is not imported: that takes half a second.
    if wheel is None or not wheel.submodule_search_locations:
        raise _unavailable("no Triton found: neither TRITON_SERVER, nor tritonserver on PATH, nor nvidia-pytriton")
    return installed_at(Path(wheel.submodule_search_locations[0]) / "tritonserver" / "bin" / "tritonserver")


def require_python_library(environ: Mapping[str, str]) -> None:
    """Raise Error("RuntimeUnavailable") when the wheel's Triton would lack Python's shared library
    here. It can be asked before the wheel is installed, and needs the standard library alone."""
    full = environ.get("TRITON_SERVER") or shutil.which("tritonserver", path=environ.get("PATH", os.defpath))
    if not full and sys.version_info[:2] != PYTHON_IN_WHEEL:
        _find_python_library()


def installed_at(binary: Path) -> Installation:
    """The installation of ``binary``: the wheel's or a full one, by what is beside it. Raises
    Error("RuntimeUnavailable") when the wheel does not fit this Python."""
    root = binary.resolve().parent.parent
    stubs = root / "python_backend_stubs"
    caches = root / "caches" if (root / "caches" / "local").is_dir() else None
    if not stubs.is_dir():
        return Installation(binary, root / "backends", caches=caches)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = stubs / version / "triton_python_backend_stub"
    if not stub.is_file():
        raise _unavailable(f"the Triton in {root} has no Python stub for Python {version}")
    bundled = root.parent.parent / "nvidia_pytriton.libs"
    return Installation(binary, root / "backends", (bundled, *_python_library(bundled)), stub, caches)


def supported_options(installation: Installation, options: Iterable[str]) -> frozenset[str]:
    """Which of these options this version of Triton has: it refuses to start with any other. Raises
    Error("RuntimeUnavailable") when it does not run."""
    try:
        answer = subprocess.run(
            [installation.binary, "--help"],
            env={"LD_LIBRARY_PATH": library_path(installation, os.environ)},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise _unavailable(f"{installation.binary} does not run: {exc}") from exc
    if "--model-repository" not in answer.stdout + answer.stderr:
        raise _unavailable(f"{installation.binary} does not run: {answer.stderr.strip()[-500:]}")
    return frozenset(option for option in options if option in answer.stdout + answer.stderr)


def library_path(installation: Installation, environ: Mapping[str, str]) -> str:
    """The value of LD_LIBRARY_PATH for Triton: its own libraries before the machine's."""
    parts = [str(path) for path in installation.libraries]
    return ":".join([*parts, *filter(None, [environ.get("LD_LIBRARY_PATH")])])


def _python_library(bundled: Path) -> tuple[Path, ...]:
    """The directory of the running Python's shared library, which the stub is linked with.

    Empty when the wheel includes it, which it does for one version of Python, or the loader finds
    it by itself. For errors see :func:`_find_python_library`.
    """
    major, minor = sys.version_info[:2]
    if any(bundled.glob(f"libpython{major}-*.{minor}.so.1.0")):
        return ()
    return _find_python_library()


def _find_python_library() -> tuple[Path, ...]:
    """The directory of the running Python's shared library; empty when the loader finds it by
    itself. Raises Error("RuntimeUnavailable") when there is none: Debian's python3 and a CPython
    built with default options come without it."""
    major, minor = sys.version_info[:2]
    name = f"libpython{major}.{minor}.so.1.0"
    for directory in (sysconfig.get_config_var("LIBDIR"), f"{sys.base_prefix}/lib"):
        # os.path, since Path raises where the directory may not be entered, as after a move.
        if directory and os.path.isfile(os.path.join(directory, name)):
            return (Path(directory),)
    if ctypes.util.find_library(f"python{major}.{minor}"):
        return ()
    raise Error(
        "RuntimeUnavailable",
        f"{name} is missing: Triton's Python backend needs the shared library of Python {major}.{minor}",
        target=sys.executable,
        hint=f"apt-get install libpython{major}.{minor}, or use a Python built with --enable-shared (uv's are)",
    )


def _unavailable(message: str) -> Error:
    return Error("RuntimeUnavailable", message, hint=_HINT)

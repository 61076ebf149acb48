"""The native form of our ``onnxruntime`` backend: whether this machine can have it, and its library.

Decides by ``ML_ONNXRUNTIME_BACKEND``, the compiler and the ``onnxruntime`` wheel, and compiles the sources in
``backends/onnxruntime/native`` once for each content, into the virtual environment or else the user's cache, for all
homes. Must not know where Triton looks for backends or what they do.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

VARIABLE = "ML_ONNXRUNTIME_BACKEND"
CHOICES = ("auto", "native", "python")
#: The files that make the backend's directory: ours, and beside it ONNX Runtime's.
LIBRARY, RUNTIME = "libtriton_onnxruntime.so", "libonnxruntime.so"

_SOURCES = Path(__file__).parent / "backends" / "onnxruntime" / "native"
_COMPILERS = ("c++", "g++", "clang++")
#: What costs time is ONNX Runtime and copying, so a higher level would only take longer to compile.
_FLAGS = ("-std=c++17", "-O1", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden")
_COMPILE_WITHIN_S = 300
#: Of library and runtime: says on stderr what is wrong.
_CHECK = """
import ctypes, sys
ask = ctypes.CDLL(sys.argv[1]).amphitrite_check
ask.restype = ctypes.c_char_p
sys.exit(ask(sys.argv[2].encode()).decode() or 0)
"""


@dataclass(frozen=True, slots=True)
class Native:
    """``library``: our compiled backend. ``runtime``: ONNX Runtime's own, which it loads."""

    library: Path
    runtime: Path


class _Unsuitable(Exception):
    """Why this machine cannot have it, in words that follow "because"."""


def find(environ: Mapping[str, str]) -> Native | None:
    """The native backend, compiled if need be; None where the Python one serves: that was chosen, or there is no
    compiler, or ONNX Runtime here uses GPUs, which only the Python one does.

    Raises Error("RuntimeUnavailable") for an unknown choice, and where ``native`` was chosen and cannot be had.
    """
    choice = environ.get(VARIABLE) or "auto"
    if choice not in CHOICES:
        raise Error("RuntimeUnavailable", f"{VARIABLE} is '{choice}', known are: {', '.join(CHOICES)}", target=VARIABLE)
    if choice == "python":
        return None
    try:
        runtime = _runtime()
        return Native(_compiled(_compiler(environ), runtime, environ), runtime)
    except (_Unsuitable, OSError, subprocess.TimeoutExpired) as exc:
        if choice == "native":
            raise Error("RuntimeUnavailable", f"no native onnxruntime backend, because {exc}", target=VARIABLE) from exc
        log.info("models of ONNX Runtime are served by the Python backend, because %s", exc)
        return None


def _runtime() -> Path:
    """The shared library of the ``onnxruntime`` wheel; it is not imported, that takes half a second."""
    wheel = importlib.util.find_spec("onnxruntime")
    directories = wheel.submodule_search_locations if wheel is not None else None
    capi = Path(directories[0]) / "capi" if directories else Path()
    if directories and (capi / "libonnxruntime_providers_cuda.so").exists():
        raise _Unsuitable("ONNX Runtime here has the CUDA provider, which only the Python backend uses")
    found = sorted(capi.glob(f"{RUNTIME}.*")) if directories else []
    if not found:
        raise _Unsuitable("the onnxruntime package here has no shared library")
    return found[-1].resolve()


def _compiler(environ: Mapping[str, str]) -> Path:
    for name in _COMPILERS:
        if path := shutil.which(name, path=environ.get("PATH", os.defpath)):
            return Path(path)
    raise _Unsuitable(f"there is no C++ compiler ({', '.join(_COMPILERS)})")


def _compiled(compiler: Path, runtime: Path, environ: Mapping[str, str]) -> Path:
    """The library for this source and compiler, checked with this ONNX Runtime. Of processes that want the same at once
    one makes it, and the others wait."""
    directories = [cache / _fingerprint(compiler, runtime) for cache in _caches(environ)]
    for directory in directories:
        if (directory / LIBRARY).is_file():
            return directory / LIBRARY
    library = _writable(directories) / LIBRARY
    with _locked(library.with_name(".lock")):
        if not library.is_file():
            _compile(compiler, library, runtime, environ)
    return library


def _compile(compiler: Path, library: Path, runtime: Path, environ: Mapping[str, str]) -> None:
    """All sources as one, which takes a third of the time that they take one by one."""
    log.info("compiling the native onnxruntime backend with %s, once", compiler)
    unit = "".join(f'#include "{source.name}"\n' for source in sorted(_SOURCES.glob("*.cc")))
    with tempfile.TemporaryDirectory(prefix=".new-", dir=library.parent) as temporary:
        made = Path(temporary) / LIBRARY
        argv = [str(compiler), *_FLAGS, f"-I{_SOURCES}", "-x", "c++", "-", "-o", str(made), "-ldl"]
        try:
            result = subprocess.run(
                argv,
                input=unit,
                text=True,
                capture_output=True,
                timeout=_COMPILE_WITHIN_S,
                env=dict(environ),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _Unsuitable(f"{compiler.name} took longer than {_COMPILE_WITHIN_S} s") from None
        if result.returncode:
            raise _Unsuitable(f"{compiler.name} failed: {' '.join(result.stderr.split())[:500]}")
        _check(made, runtime)
        os.rename(made, library)


def _check(library: Path, runtime: Path) -> None:
    """It loads, and finds in ``runtime`` what it expects; in a process of its own, since it may die of it."""
    argv = [sys.executable, "-I", "-S", "-c", _CHECK, str(library), str(runtime)]
    result = subprocess.run(argv, text=True, capture_output=True, timeout=60, check=False)
    if result.returncode:
        words = " ".join(result.stderr.split())[-500:] or f"exit status {result.returncode}"
        raise _Unsuitable(f"it does not work with {runtime.name}: {words}")


def _caches(environ: Mapping[str, str]) -> list[Path]:
    """Where libraries may lie, the best first: with the environment that this runs in, else with the user."""
    environment = [Path(sys.prefix) / "lib"] if sys.prefix != sys.base_prefix else []
    given = environ.get("XDG_CACHE_HOME", "")
    user = Path(given) if given.startswith("/") else Path(environ.get("HOME") or "/nonexistent") / ".cache"
    return [cache / "amphitrite" / "onnxruntime-backend" for cache in (*environment, user)]


def _writable(directories: Sequence[Path]) -> Path:
    for directory in directories:
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            if os.access(directory, os.W_OK):
                return directory
    raise _Unsuitable(f"none of these can be written: {', '.join(map(str, directories))}")


def _fingerprint(compiler: Path, runtime: Path) -> str:
    digest = hashlib.sha256()
    for source in sorted(_SOURCES.iterdir()):
        digest.update(f"{source.name}\0".encode() + source.read_bytes() + b"\0")
    for file in (compiler.resolve(), runtime):
        facts = file.stat()
        digest.update(f"{file}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    digest.update(" ".join(_FLAGS).encode())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield

"""The native form of our ``onnxruntime`` backend: whether this machine can have it, and its
library.

Decides by ``ML_ONNXRUNTIME_BACKEND``, the compiler and the ``onnxruntime`` wheel. Compiles the
sources in ``backends/onnxruntime/native`` once for each content, into the virtual environment or
else the user's cache, for all homes. Must not know where Triton looks for backends or what they do.
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
#: The files in the backend's directory: our library, and ONNX Runtime's beside it.
LIBRARY, RUNTIME = "libtriton_onnxruntime.so", "libonnxruntime.so"

#: The SHA-256 of the library, beside it.
_DIGEST = f"{LIBRARY}.sha256"

_SOURCES = Path(__file__).parent / "backends" / "onnxruntime" / "native"
_CACHE = Path("amphitrite") / "onnxruntime-backend"
_COMPILERS = ("c++", "g++", "clang++")
#: ONNX Runtime and copying take the time, so a higher level would only make compiling slower.
_FLAGS = ("-std=c++17", "-O1", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden")
_COMPILE_WITHIN_S = 300
#: Run with library and runtime. It prints to stderr what is wrong.
_CHECK = """
import ctypes, sys
ask = ctypes.CDLL(sys.argv[1]).amphitrite_check
ask.restype = ctypes.c_char_p
sys.exit(ask(sys.argv[2].encode()).decode() or 0)
"""


@dataclass(frozen=True, slots=True)
class NativeBackend:
    """``library``: our compiled backend. ``runtime``: ONNX Runtime's own library, which it
    loads."""

    library: Path
    runtime: Path


class _NotAvailable(Exception):
    """Why this machine cannot have the backend, in words that follow "because"."""


def find(environ: Mapping[str, str]) -> NativeBackend | None:
    """The native backend, compiled if need be. None where the Python one serves: it was chosen, or
    there is no compiler, or ONNX Runtime here uses GPUs, which only the Python one does.

    Raises Error("RuntimeUnavailable") for an unknown choice, and where ``native`` was chosen but is
    not possible.
    """
    choice = environ.get(VARIABLE) or "auto"
    if choice not in CHOICES:
        raise Error(
            "RuntimeUnavailable", f"{VARIABLE} is '{choice}'; it must be one of: {', '.join(CHOICES)}", target=VARIABLE
        )
    if choice == "python":
        return None
    try:
        runtime = _runtime()
        return NativeBackend(_library(_compiler(environ), runtime, environ), runtime)
    except (_NotAvailable, OSError, subprocess.TimeoutExpired) as exc:
        if choice == "native":
            raise Error(
                "RuntimeUnavailable", f"the native onnxruntime backend is not available, because {exc}", target=VARIABLE
            ) from exc
        log.info("models of ONNX Runtime are served by the Python backend, because %s", exc)
        return None


def builds(environ: Mapping[str, str]) -> tuple[tuple[Path, bool], ...]:
    """The directories of compiled libraries in the environment that this runs in, and whether each
    is needed: it is the one that ``find`` uses, or that is not known. Other environments have
    others, and a serving Triton has a copy."""
    parents = _environment_caches()
    try:
        current = _fingerprint(_compiler(environ), _runtime())
    except (_NotAvailable, OSError):
        current = None
    found = [path for parent in parents if parent.is_dir() for path in sorted(parent.iterdir()) if path.is_dir()]
    return tuple((path, current is None or path.name == current) for path in found)


def _runtime() -> Path:
    """The shared library of the ``onnxruntime`` wheel. The wheel is not imported: that takes half a
    second."""
    wheel = importlib.util.find_spec("onnxruntime")
    directories = wheel.submodule_search_locations if wheel is not None else None
    capi = Path(directories[0]) / "capi" if directories else Path()
    if directories and (capi / "libonnxruntime_providers_cuda.so").exists():
        raise _NotAvailable("ONNX Runtime here has the CUDA provider, which only the Python backend uses")
    libraries = sorted(capi.glob(f"{RUNTIME}.*")) if directories else []
    if not libraries:
        raise _NotAvailable("the onnxruntime package here has no shared library")
    return libraries[-1].resolve()


def _compiler(environ: Mapping[str, str]) -> Path:
    for name in _COMPILERS:
        if path := shutil.which(name, path=environ.get("PATH", os.defpath)):
            return Path(path)
    raise _NotAvailable(
        f"there is no C++ compiler ({', '.join(_COMPILERS)}); with one, such as by apt install g++, new instances get "
        "the faster backend"
    )


def _library(compiler: Path, runtime: Path, environ: Mapping[str, str]) -> Path:
    """The library for these sources and this compiler, checked with this ONNX Runtime. Of several
    processes that need it at once, one compiles and the others wait."""
    directories = [cache / _fingerprint(compiler, runtime) for cache in _caches(environ)]
    for directory in directories:
        if _is_whole(directory / LIBRARY):
            return directory / LIBRARY
    library = _writable(directories) / LIBRARY
    with _exclusive_lock(library.with_name(".lock")):
        if not _is_whole(library):
            _compile(compiler, library, runtime, environ)
    return library


def _compile(compiler: Path, library: Path, runtime: Path, environ: Mapping[str, str]) -> None:
    """Compile all sources as one unit, which takes a third of the time."""
    log.info("compiling the native onnxruntime backend with %s, once", compiler)
    unit = "".join(f'#include "{source.name}"\n' for source in sorted(_SOURCES.glob("*.cc")))
    with tempfile.TemporaryDirectory(prefix=".new-", dir=library.parent) as temporary:
        built = Path(temporary) / LIBRARY
        argv = [str(compiler), *_FLAGS, f"-I{_SOURCES}", "-x", "c++", "-", "-o", str(built), "-ldl"]
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
            raise _NotAvailable(f"{compiler.name} took longer than {_COMPILE_WITHIN_S} s") from None
        if result.returncode:
            raise _NotAvailable(f"{compiler.name} failed: {' '.join(result.stderr.split())[:500]}")
        _check(built, runtime)
        digest = hashlib.sha256(built.read_bytes()).hexdigest()
        # First, so that a library is never without its digest.
        (built.with_name(_DIGEST)).write_text(f"{digest}\n")
        os.rename(built.with_name(_DIGEST), library.with_name(_DIGEST))
        os.rename(built, library)


def _is_whole(library: Path) -> bool:
    """Whether it is there, and as it was compiled. Earlier releases noted no digest."""
    try:
        data = library.read_bytes()
        wanted = library.with_name(_DIGEST).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return library.is_file()
    if hashlib.sha256(data).hexdigest() == wanted:
        return True
    log.warning("%s is damaged; it is compiled again", library)
    return False


def _check(library: Path, runtime: Path) -> None:
    """Check that the library loads, and finds in ``runtime`` what it expects. In a process of its
    own, which a bad library may crash."""
    argv = [sys.executable, "-I", "-S", "-c", _CHECK, str(library), str(runtime)]
    result = subprocess.run(argv, text=True, capture_output=True, timeout=60, check=False)
    if result.returncode:
        message = " ".join(result.stderr.split())[-500:] or f"exit status {result.returncode}"
        raise _NotAvailable(f"it does not work with {runtime.name}: {message}")


def _caches(environ: Mapping[str, str]) -> list[Path]:
    """Where libraries may be, the best first: in the environment that this runs in, else in the
    user's cache."""
    xdg_cache = environ.get("XDG_CACHE_HOME", "")
    user = Path(xdg_cache) if xdg_cache.startswith("/") else Path(environ.get("HOME") or "/nonexistent") / ".cache"
    return [*_environment_caches(), user / _CACHE]


def _environment_caches() -> list[Path]:
    return [Path(sys.prefix) / "lib" / _CACHE] if sys.prefix != sys.base_prefix else []


def _writable(directories: Sequence[Path]) -> Path:
    for directory in directories:
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            if os.access(directory, os.W_OK):
                return directory
    raise _NotAvailable(f"none of these directories can be written: {', '.join(map(str, directories))}")


def _fingerprint(compiler: Path, runtime: Path) -> str:
    digest = hashlib.sha256()
    for source in sorted(_SOURCES.iterdir()):
        digest.update(f"{source.name}\0".encode() + source.read_bytes() + b"\0")
    for file in (compiler.resolve(), runtime):
        status = file.stat()
        digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    digest.update(" ".join(_FLAGS).encode())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _exclusive_lock(path: Path) -> Iterator[None]:
    with path.open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield

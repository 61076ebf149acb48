"""The directory for Triton's option ``--backend-directory``.

Decides where Triton finds the wheel's Python backend, the stub of the running Python and our
``onnxruntime`` backend, native or in Python; and that what a model prints is in the log at once.
Must not know instances or commands. A full Triton keeps its own directory: it has an ONNX Runtime
backend of its own. Source: Triton's document "Triton Inference Server Backend", section "Where can
I find all the backends".
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from amphitrite.dataplane.triton import native_backend
from amphitrite.dataplane.triton.installation import Installation

log = logging.getLogger(__name__)

_MODEL = Path(__file__).parent / "backends" / "onnxruntime" / "model.py"
#: The stub imports this module before the model.
_UTILITIES = Path("python/triton_python_backend_utils.py")
#: A log is no terminal, so Python would keep what a model prints until 8 KiB have come. The stub's
#: interpreter does not read the environment: there PYTHONUNBUFFERED changes nothing, and a name
#: like "Zoë" cannot be printed, because the encoding is ASCII.
_LOG_EACH_LINE = """

import sys

for _stream in (sys.stdout, sys.stderr):
    if hasattr(_stream, "reconfigure"):
        _stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
"""


def prepare(installation: Installation, parent: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The backend directory for ``installation``, made below ``parent`` (once for each content) if
    needed, and again if it is damaged.

    Files are copied, because Triton refuses a library whose real path is outside of the directory.
    For ``environ`` and errors see :func:`native_backend.find`.
    """
    if installation.stub is None:
        return installation.backends
    native = native_backend.find(environ)
    files = {Path("python") / installation.stub.name: installation.stub}
    if native is None:
        files[Path("onnxruntime/model.py")] = _MODEL
    else:
        files[Path("onnxruntime") / native_backend.LIBRARY] = native.library
    for source in sorted((installation.backends / "python").iterdir()):
        if source.is_file():
            files[Path("python") / source.name] = source
    links = {Path("onnxruntime") / native_backend.RUNTIME: native.runtime} if native is not None else {}
    target = parent / _fingerprint({**files, **links})
    if target.is_dir():
        if _holds(target, files):
            return target
        log.warning("%s is damaged; it is made again", target)
        # What runs has opened its libraries.
        os.rename(target, tempfile.mkdtemp(prefix=".old-", dir=parent))
        for old in parent.glob(".old-*"):
            shutil.rmtree(old, ignore_errors=True)
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
    try:
        for name, source in files.items():
            (temporary / name).parent.mkdir(exist_ok=True)
            shutil.copy2(source, temporary / name)
        for name, source in links.items():
            (temporary / name).symlink_to(source)
        (temporary / "python" / installation.stub.name).chmod(0o755)
        with (temporary / _UTILITIES).open("a") as utilities:
            utilities.write(_LOG_EACH_LINE)
        os.rename(temporary, target)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not target.is_dir():  # Otherwise another process has made the same meanwhile.
            raise
    return target


def _holds(target: Path, files: Mapping[Path, Path]) -> bool:
    """Whether the copies are what was copied."""
    for name, source in files.items():
        wanted = source.read_bytes() + (_LOG_EACH_LINE.encode() if name == _UTILITIES else b"")
        try:
            if (target / name).read_bytes() != wanted:
                return False
        except OSError:
            return False
    return True


def _fingerprint(files: dict[Path, Path]) -> str:
    """Identifies a content without reading the large files."""
    digest = hashlib.sha256(_LOG_EACH_LINE.encode())
    for name, source in sorted(files.items()):
        status = source.stat()
        digest.update(f"{name}\0{source.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]

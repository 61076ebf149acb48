"""The images of the tests: the product's own, from its Dockerfiles, and stand-ins of what cannot be
pulled.

Decides what each is made of, and so when it must be built again: a reference ends in the digest of
everything that went in. Must not know what is tested. By hand:
``python -m tests.cluster.images [NAME ...]``, which tags ``dev`` as well.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import TRITON_IMAGE
from amphitrite.dataplane.triton import native_backend
from deploy.lock import requirements

from .builder import Builder, builder, debian, wheels
from .machine import ROOT, cache, install, locked, run
from .node import Cluster, running

DEPLOY = ROOT / "deploy" / "images"
STAND_IN = Path(__file__).parent / "triton_image"
#: How much building images by hand, or beside the tests, steps back behind other work of the
#: machine.
_PATIENCE = 5
NAMES = ("controlplane", "dataplane", "fetcher", "triton")

_PROGRAMS = {"buildah": "buildah", "debootstrap": "debootstrap"}
_PACKAGES = ("python3", "python3-venv", "libpython3.11", "ca-certificates")
_LIBC = ("glibc", "2.36")  #: The image's.
_BASE_RECIPE = f"bookworm minbase {_PACKAGES} 1"
_SOURCES = ("pyproject.toml", "README.md", "LICENSE", "cli", "controlplane", "dataplane", "schemas")
_SHARED = ("deploy/images/settle.sh", "deploy/images/build.sh", ".dockerignore")
_LOCKED = ("deploy/images/install.sh", "deploy/lock.py")
#: Image -> its sets in deploy/lock.txt.
_SETS = {"controlplane": ("build", "controlplane"), "dataplane": ("build", "dataplane"), "triton": ("triton",)}
_INPUTS: dict[str, tuple[str, ...]] = {
    "controlplane": (*_SHARED, *_LOCKED, *_SOURCES),
    "dataplane": (*_SHARED, *_LOCKED, *_SOURCES),
    "fetcher": (*_SHARED, "dataplane/__init__.py", "dataplane/fetch"),
    "triton": (
        "tests/cluster/triton_image",
        "dataplane/__init__.py",
        "dataplane/triton",
        *(f"schemas/{m}.py" for m in ("__init__", "errors")),
    ),
}


@dataclass(frozen=True, slots=True)
class Images:
    """References, as pods name them; never to be pulled."""

    controlplane: str
    dataplane: str
    fetcher: str
    triton: str


def reference(name: str) -> str:
    """Where the image ``name`` lies in the builder's storage, and on nodes unless it stands in for
    another."""
    return f"docker.io/amphitrite/{name}:test-{_digest(name)}"


def provide(cluster: Cluster, *names: str) -> dict[str, str]:
    """Every image (or those named), built where its inputs are new, and on the nodes; name ->
    :func:`reference`."""
    with locked(cache() / "lock"):
        references = {name: reference(name) for name in names or NAMES}  # Once: sources may change in the meantime.
        for name, source in references.items():
            target = TRITON_IMAGE if name == "triton" else source
            if not _loaded(cluster, source, target):
                _build(name, source)
                _load(cluster, source, target)
    return references


def _build(name: str, reference: str) -> None:
    install(_PROGRAMS)
    tool = builder(cache())
    if tool.has(reference):
        return
    made_on = base(tool)
    if name == "triton":
        _build_triton(tool, made_on, reference)
        return
    fetched = []
    if name in _SETS:
        fetched = ["--wheels", str(_wheels(name))]
    tag = reference.rpartition(":")[2]
    run(DEPLOY / "build.sh", "--tag", tag, "--base", made_on, *fetched, name, env=tool.environment())


def _wheels(name: str) -> Path:
    locked = requirements(*_SETS[name])
    return wheels(cache() / "wheels" / f"{name}-{_hash([], locked)}", cache(), locked)


def base(tool: Builder) -> str:
    """Stands in for python:3.11-slim-bookworm: the same Debian with the same Python, from Debian's
    packages."""
    name = f"localhost/python-3.11-slim-bookworm:{hashlib.sha256(_BASE_RECIPE.encode()).hexdigest()[:12]}"
    if not tool.has(name):
        with tempfile.TemporaryDirectory(dir=cache()) as temporary:
            root = Path(temporary) / "root"
            debian(root, _PACKAGES)
            for program in ("python", "python3"):
                (root / "usr/local/bin" / program).symlink_to("/usr/bin/python3")
            tool.commit(name, root, PATH="/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", LANG="C.UTF-8")
    return name


def _build_triton(tool: Builder, base: str, reference: str) -> None:
    fetched = _wheels("triton")
    with tempfile.TemporaryDirectory(dir=cache()) as temporary:
        context = Path(temporary)
        shutil.copytree(STAND_IN, context, dirs_exist_ok=True)
        packages = context / "packages"
        for wheel in fetched.glob("*.whl"):
            with zipfile.ZipFile(wheel) as content:
                content.extractall(packages)
        server = packages / "pytriton" / "tritonserver"
        shutil.move(server, context / "tritonserver")
        shutil.rmtree(packages / "pytriton")
        _arrange(context / "tritonserver", packages / "nvidia_pytriton.libs")
        for source in _files([ROOT / part for part in _INPUTS["triton"] if not part.startswith("tests")]):
            target = packages / "amphitrite" / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        _backend(context / "onnxruntime", packages / "onnxruntime" / "capi")
        tool.build(reference, context, "--build-arg", f"BASE={base}")


def _backend(directory: Path, runtimes: Path) -> None:
    """Native as on one machine, where what this machine compiles can run in the image; else in
    Python. ``runtimes``: where the image's ONNX Runtime lies, whose release may be another than
    this machine's."""
    directory.mkdir()
    native = native_backend.find(os.environ) if platform.libc_ver() <= _LIBC else None
    if native is None:
        shutil.copy(ROOT / "dataplane/triton/backends/onnxruntime/model.py", directory)
        return
    shutil.copy(native.library, directory)
    (runtime,) = runtimes.glob(f"{native_backend.RUNTIME}.*")
    capi = Path("/usr/local/lib/python3.11/dist-packages/onnxruntime/capi")
    (directory / native_backend.RUNTIME).symlink_to(capi / runtime.name)


def _arrange(server: Path, libraries: Path) -> None:
    """The wheel's files in the places and under the names that the real image has."""
    shutil.move(libraries, server / "lib")
    for library in server.glob("lib/libpython3*"):
        library.unlink()  # Of another Python than the image's.
    for library in server.glob("lib/libtritonserver-*.so"):
        (server / "lib/libtritonserver.so").symlink_to(library.name)
    stubs = server / "python_backend_stubs"
    shutil.move(stubs / "3.11" / "triton_python_backend_stub", server / "backends/python")
    shutil.rmtree(stubs)
    for program in (server / "bin/tritonserver", server / "backends/python/triton_python_backend_stub"):
        program.chmod(0o755)


def _loaded(cluster: Cluster, source: str, target: str) -> bool:
    if cluster.own is None:
        return _stamp(cluster, source).exists()
    present = {line.split()[0]: line.split()[2] for line in cluster.ctr("images", "ls").splitlines()[1:]}
    return source in present and present[source] == present.get(target)


def _load(cluster: Cluster, source: str, target: str) -> None:
    tool = builder(cache())
    with tool.archive(source, source if cluster.own else target, cache()) as archive:
        cluster.load(archive)
    if cluster.own is None:
        _stamp(cluster, source).touch()
    elif target != source:
        cluster.ctr("images", "tag", "--force", source, target)


def _stamp(cluster: Cluster, source: str) -> Path:
    """Says that somebody's cluster has an image: nobody asks its nodes."""
    return cache() / f"loaded-{_hash([cluster.kubeconfig])}-{source.rpartition('/')[2].replace(':', '-')}"


def _digest(name: str) -> str:
    paths = [ROOT / part for part in _INPUTS[name]]
    if name != "triton":
        paths.append(DEPLOY / f"{name}.Dockerfile")
    return _hash(paths, _BASE_RECIPE, requirements(*_SETS[name]) if name in _SETS else "")


def _hash(paths: Iterable[Path], *words: str) -> str:
    digest = hashlib.sha256("\0".join(words).encode())
    for path in _files(paths):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name} {content}\n".encode())
    return digest.hexdigest()[:12]


def _files(paths: Iterable[Path]) -> list[Path]:
    found = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))]
    return sorted(file for file in found if file.is_file() and "__pycache__" not in file.parts)


def main(names: list[str]) -> None:
    with running() as cluster:
        # Only now: a cluster that this process starts, and all that ever runs in it, would be as
        # patient otherwise.
        os.nice(_PATIENCE)
        for name in names or NAMES:
            start = time.monotonic()
            source = provide(cluster, name)[name]
            if cluster.own:
                cluster.ctr("images", "tag", "--force", source, f"docker.io/amphitrite/{name}:dev")
            print(f"{source}  {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

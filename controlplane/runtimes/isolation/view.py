"""What an isolated instance sees of this machine: a list of what is allowed, and nothing else.

Decides which directories of the system, of Python and of Triton are shown, and that everything
below the server's own directories is hidden unless it is the instance's. Reads only which paths
exist. Must not know how a path is mounted.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from amphitrite import dataplane, schemas
from amphitrite.dataplane.triton.installation import Installation

#: (kind, path that the instance sees, source or size): see ``launcher._show``.
Mount = tuple[str, str, str | int]

#: Programs and libraries of the system; the first may be links into /usr.
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM = ("/usr", "/nix/store", "/gnu/store")
#: What libraries read of /etc. No file with a password or a key is among them.
_ETC = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "fonts", "gai.conf", "group"),
    *("host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf"),
    *("OpenCL", "passwd", "pki/ca-trust", "pki/tls/certs", "protocols", "resolv.conf", "services", "ssl/certs"),
    *("ssl/openssl.cnf", "timezone", "vulkan"),
)
_DEVICES = ("full", "null", "random", "urandom", "zero")
_DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1"}
_DEVICE_LINKS |= {"stderr": "/proc/self/fd/2"}
#: Of /sys: cores and memory nodes; with GPUs all of it, by which the driver's library finds them.
_SYS, _SYS_WITH_GPUS = "/sys/devices/system", "/sys"
#: The sockets of CUDA's multi-process service.
_MPS = "/tmp/nvidia-mps"


@dataclass(frozen=True, slots=True)
class View:
    """What differs between instances.

    * ``hidden``: the server's directories. Of what is in them only the two below are shown.
    * ``read_only``, ``read_write``: shown at the paths that they have on this machine.
    * ``extra``, ``extra_write``: the same, but not what is hidden in them.
    * ``temporary_bytes``: the size of /tmp, and of /dev/shm.
    """

    hidden: tuple[Path, ...]
    read_only: tuple[Path, ...] = ()
    read_write: tuple[Path, ...] = ()
    temporary_bytes: int = 1 << 30
    gpus: bool = False
    extra: tuple[Path, ...] = ()
    extra_write: tuple[Path, ...] = ()


def mounts(view: View) -> list[Mount]:
    """In the order in which they are made: what is deeper comes later."""
    shown = _Shown()
    for name in (*_SYSTEM, _SYS_WITH_GPUS if view.gpus else _SYS, *(f"/etc/{one}" for one in _ETC)):
        shown.add("read_only", name)
    for path in (*_python(), *view.extra):
        shown.add("read_only", str(path))
    for path in view.extra_write:
        shown.add("read_write", str(path))
    for directory in view.hidden:
        shown.hide(str(directory))
    for path in view.read_only:
        shown.add("read_only", str(path))
    for path in view.read_write:
        shown.add("read_write", str(path))
    links: list[Mount] = []
    for name in _MERGED:
        if os.path.islink(f"/{name}"):
            # Relative, since the new file system is made below another root.
            links.append(("link", f"/{name}", os.path.relpath(os.path.realpath(f"/{name}"), "/")))
        else:
            shown.add("read_only", f"/{name}")
    shown.fixed += [("proc", "/proc", ""), ("temporary", "/tmp", view.temporary_bytes), ("link", "/var/tmp", "../tmp")]
    shown.fixed += [("temporary", "/dev/shm", view.temporary_bytes)]
    shown.fixed += [("device", f"/dev/{name}", f"/dev/{name}") for name in _DEVICES]
    shown.fixed += [("link", f"/dev/{name}", target) for name, target in _DEVICE_LINKS.items()]
    if view.gpus:
        shown.fixed += [("device", path, path) for path in _gpu_devices()]
        if os.path.isdir(_MPS):
            shown.fixed.append(("read_write", _MPS, _MPS))
    return [*links, *sorted([*shown.fixed, *shown.made()], key=lambda one: one[1].count("/"))]


def of_triton(installation: Installation) -> tuple[Path, ...]:
    """The directories of a Triton. A full one has libraries in all of /opt."""
    if installation.stub is not None:
        return (installation.binary.parent.parent, *installation.libraries)
    return (installation.binary.resolve().parent.parent, Path("/opt"), *installation.libraries)


def _python() -> Iterator[Path]:
    """The environment that Triton's Python stub uses, and our backend in it. Packages may also be
    in the user's own directory, or where PYTHONPATH says."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), Path(sysconfig.get_path("purelib")))
    yield from (Path(path) for path in sys.path if path.endswith(("/site-packages", "/dist-packages")))
    if libraries := sysconfig.get_config_var("LIBDIR"):
        yield Path(libraries)
    for package in (dataplane, schemas):
        for directory in map(Path, package.__path__):
            yield from (directory.parent, directory.resolve())


def _gpu_devices() -> Iterable[str]:
    names = sorted(path for pattern in ("nvidia*", "nvidia-caps/*", "dxg") for path in Path("/dev").glob(pattern))
    return [str(path) for path in names if path.is_char_device()]


class _Shown:
    """Paths with their kinds. A path is shown where it is named and where its links lead to."""

    def __init__(self) -> None:
        self.fixed: list[Mount] = []
        self._kinds: dict[str, tuple[str, str]] = {}

    def add(self, kind: str, path: str) -> None:
        """Nothing if it does not exist."""
        real = os.path.realpath(path)
        if os.path.exists(real) and real != "/":
            for target in {os.path.normpath(path), real}:
                self._kinds[target] = (kind, real)

    def hide(self, path: str) -> None:
        """Only where it would be seen."""
        for target in {os.path.normpath(path), os.path.realpath(path)}:
            if any(_below(target, one) for one in self._kinds):
                self._kinds[target] = ("empty", "")

    def made(self) -> Iterator[Mount]:
        for target, (kind, source) in self._kinds.items():
            if not self._is_there(target, kind, source):
                yield (kind, target, source)

    def _is_there(self, target: str, kind: str, source: str) -> bool:
        """Whether the nearest directory above shows the same already."""
        above = [one for one in self._kinds if one != target and _below(target, one)]
        nearest = max(above, key=len, default=None)
        if nearest is None:
            return False
        its_kind, its_source = self._kinds[nearest]
        return its_kind == kind != "empty" and its_source + target[len(nearest) :] == source


def _below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")

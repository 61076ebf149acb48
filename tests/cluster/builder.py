"""Builds images where none can be pulled: buildah with a storage of its own, and wheels fetched
beforehand.

Decides how an image comes from a Dockerfile or a directory to an archive, and where wheels come
from. Must not know which images there are.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .machine import run

#: Every file of every layer bears this time (1980, the first that a zip file can tell), whatever
#: the commit is.
EPOCH = "315532800"
#: What Debian 12 runs, newest first.
_PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)),
    *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"),
)


@dataclass(frozen=True, slots=True)
class Builder:
    """``command``: buildah with its storage, which is apart from the machine's own."""

    command: tuple[str, ...]

    def run(self, *argv: str | Path) -> str:
        return run(*self.command, *argv, env=self.environment())

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "BUILDAH_ISOLATION": "chroot",
            "SOURCE_DATE_EPOCH": EPOCH,
            "BUILDER": " ".join(self.command),
        }

    def has(self, reference: str) -> bool:
        return bool(self.run("images", "--quiet", "--filter", f"reference={reference}").strip())

    def build(self, reference: str, directory: Path, *arguments: str) -> None:
        """From the Dockerfile of the directory, which is its context too."""
        fixed = ("--quiet", "--layers", "--pull=never", "--timestamp", EPOCH)
        self.run("build", *fixed, *arguments, "-t", reference, directory)

    def commit(self, reference: str, root: Path, **environment: str) -> None:
        """An image whose one layer is the directory ``root``."""
        container = self.run("from", "scratch").strip()
        try:
            self.run("add", "--quiet", container, root, "/")
            variables = [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]
            self.run("config", *variables, "--cmd", "python3", container)
            self.run("commit", "--quiet", "--timestamp", EPOCH, container, reference)
        finally:
            self.run("rm", container)

    @contextmanager
    def archive(self, reference: str, name: str, directory: Path) -> Iterator[Path]:
        """The image as `docker save` writes it, under ``name``; deleted afterwards."""
        with tempfile.TemporaryDirectory(dir=directory) as temporary:
            path = Path(temporary) / "image.tar"
            self.run("push", "--quiet", reference, f"docker-archive:{path}:{name}")
            yield path


def builder(cache: Path) -> Builder:
    """Layers are overlays where the kernel and the file system can; otherwise each is a full
    copy."""
    for driver in ("overlay", "vfs"):
        storage = cache / f"storage-{driver}"
        command = ("buildah", "--root", str(storage), "--runroot", str(storage / "run"), "--storage-driver", driver)
        if driver == "vfs" or "GraphDriverName" in run(*command, "info", check=False):
            break
    return Builder(command)


def wheels(directory: Path, cache: Path, requirements: str) -> Path:
    """``directory`` with the wheels of these, for Python 3.11 on Debian 12, fetched where it is not
    there yet."""
    if directory.is_dir():
        return directory
    with _making(directory) as temporary:
        platforms = [part for platform in _PLATFORMS for part in ("--platform", platform)]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(requirements)
            file.flush()
            run(
                *(_pip(cache), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
                *("--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp", *platforms),
                *("--require-hashes", "--dest", temporary, "--requirement", file.name),
            )
    return directory


def debian(directory: Path, packages: Sequence[str]) -> None:
    """A minimal Debian 12 with the packages, below ``directory``."""
    run("debootstrap", "--variant=minbase", f"--include={','.join(packages)}", "bookworm", directory)
    for part in ("var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(directory / part)
        (directory / part).mkdir()


@contextmanager
def _making(directory: Path) -> Iterator[Path]:
    """A directory that appears whole or not at all."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as temporary:
        content = Path(temporary) / "content"
        content.mkdir()
        yield content
        content.rename(directory)


def _pip(cache: Path) -> Path:
    """A Python that has pip: environments made by uv do not."""
    if importlib.util.find_spec("pip"):
        return Path(sys.executable)
    environment = cache / "pip"
    if not (environment / "bin" / "pip").exists():
        run(sys.executable, "-m", "venv", environment)
    return environment / "bin" / "python"

"""Whether this machine can isolate instances, and if not, exactly why and what to do.

Decides by starting a process that way, since the kernel, its security modules and a container's
filters each may forbid a step. Must not know instances.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from amphitrite.controlplane.runtimes.isolation import view
from amphitrite.controlplane.runtimes.isolation.launch import IsolationFailed, Launcher, Plan
from amphitrite.schemas.errors import Error

MODES = ("auto", "required", "off")

_CLONE = "/proc/sys/kernel/unprivileged_userns_clone"
_MAX = "/proc/sys/user/max_user_namespaces"
_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"


@dataclass(frozen=True, slots=True)
class Isolation:
    """Whether instances are isolated. ``why`` and ``hint``: why not, and what would change it."""

    on: bool
    user_namespace: bool = True
    why: str = ""
    hint: str = ""

    @property
    def text(self) -> str:
        """For ``ml server status``."""
        return "on" if self.on else f"off: {self.why}"

    @property
    def note(self) -> str | None:
        """What each deployment should know; None for nothing."""
        return None if self.on else f"not isolated from this machine and its other models: {self.why}; {self.hint}"


OFF = Isolation(False, why="isolation is set to off", hint="start the server with --isolation auto")


def choose(mode: str, ask: Callable[[], Isolation] | None = None) -> Isolation:
    """What a setting of MODES means on this machine. Raises Error("RuntimeUnavailable") for
    ``required`` where it is impossible. ``ask``: finds out."""
    if mode == "off":
        return OFF
    found = (ask or probe)()
    if mode == "required" and not found.on:
        message = f"this machine cannot isolate instances, as --isolation required asks: {found.why}"
        raise Error("RuntimeUnavailable", message, target="isolation", hint=found.hint)
    return found


def probe() -> Isolation:
    """Starts a shell in namespaces of its own: in a user namespace, so that root has no more rights
    than others, or for root also without one."""
    try:
        _try(user_namespace=True)
        return Isolation(True)
    except OSError as exc:
        failure = exc
    if os.geteuid() == 0:
        try:
            _try(user_namespace=False)
            return Isolation(True, user_namespace=False)
        except OSError:
            pass  # The first failure says more.
    why, hint = explain(failure, _setting)
    return Isolation(False, why=why, hint=hint)


def explain(failure: OSError, setting: Callable[[str], str | None]) -> tuple[str, str]:
    """Why, and what to do. ``setting``: reads a file of /proc; None if there is none."""
    step = failure.step if isinstance(failure, IsolationFailed) else ""
    refused = failure.errno in (errno.EPERM, errno.EACCES)
    if setting(_CLONE) == "0" and refused:
        return "the kernel forbids user namespaces", "run `sysctl -w kernel.unprivileged_userns_clone=1` as root"
    if setting(_MAX) == "0":
        return "the kernel allows no user namespaces", "run `sysctl -w user.max_user_namespaces=15000` as root"
    if setting(_APPARMOR) == "1" and refused:
        return (
            "AppArmor restricts user namespaces",
            "run `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` as root, or add an AppArmor profile "
            "with `userns` for this Python",
        )
    if step == "create namespaces" and refused and _filtered(setting):
        return (
            "a seccomp filter forbids namespaces, as containers have one",
            "start the container with `--security-opt seccomp=unconfined`, or run the server outside of it",
        )
    if step == "mount /proc" and refused:
        return (
            "this container hides parts of /proc, so no other /proc can be mounted",
            "start the container with `--security-opt systempaths=unconfined`, or run the server outside of it",
        )
    return str(failure), "see docs/isolation.md"


def _filtered(setting: Callable[[str], str | None]) -> bool:
    status = setting("/proc/self/status") or ""
    return any(line.split() == ["Seccomp:", "2"] for line in status.splitlines())


def _try(*, user_namespace: bool) -> None:
    """Raises OSError."""
    with tempfile.TemporaryDirectory(prefix="amphitrite-") as name:
        shown = tuple(view.mounts(view.View(hidden=(), temporary_bytes=1 << 20)))
        plan = Plan(Path(name), Path("/"), shown, user_namespace=user_namespace)
        pid = Launcher().spawn(plan, ["/bin/sh", "-c", ":"], {}, Path("/dev/null"))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code != 0:
            raise IsolationFailed(f"run a shell in namespaces (exit code {code})", errno.EIO)


def _setting(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None

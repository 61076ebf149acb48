"""A program that starts one process in namespaces of its own, and ends once that runs.

Decides the order of the kernel's calls. Must not know what is started or why a path is shown: both
are on its standard input (``launch.Plan``, in the form of ``marshal``). It is run by its path, with
the standard library alone. One process of it waits with its modules loaded (``launch.Launcher``).

It makes two processes in the new PID namespace. The first is the namespace's init: it mounts the
file system, then waits, so that orphans are reaped; it ends with the second, and the kernel then
ends all others. The second becomes the program. It is a sibling of this one, not a child
(CLONE_PARENT), so the control plane is its parent: pid, exit code and signals are those of a
process that was started without any of this. It is not the namespace's init, for which the kernel
ignores signals without a handler. Sources: namespaces(7), user_namespaces(7), pivot_root(2),
mount_setattr(2), capabilities(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import marshal
import os
import signal
import sys
from typing import Any, NoReturn

_CLONE_PARENT = 0x00008000
_NEW_MOUNTS, _NEW_UTS, _NEW_IPC = 0x00020000, 0x04000000, 0x08000000
_NEW_USER, _NEW_PIDS, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000

_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_EXECUTION = 0x1, 0x2, 0x4, 0x8
_REMOUNT, _BIND, _RECURSIVE, _SLAVE = 0x20, 0x1000, 0x4000, 0x80000
_DETACH = 2
#: The flags of a mount that one without rights over it must keep (statvfs(3), ST_RELATIME apart).
_KEPT = {0x1: 0x1, 0x2: 0x2, 0x4: 0x4, 0x8: 0x8, 0x400: 0x400, 0x800: 0x800}

_SET_ATTRIBUTES, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
#: Machine -> the numbers of clone(2) and pivot_root(2), which the C library has no function for.
_NUMBERS = {"x86_64": (56, 155), "aarch64": (220, 41)}

_DROP_BOUNDING, _SET_SECUREBITS, _NO_NEW_PRIVILEGES, _AMBIENT, _CLEAR_ALL = 24, 28, 38, 47, 4
#: No capabilities for uid 0, none kept by a change of uid, none raised; each locked.
_SECUREBITS = 0x2F | 0xC0
_CAPABILITIES_V3, _LAST_CAPABILITY = 0x20080522, 63

_libc = ctypes.PyDLL(None, use_errno=True)


class _Failed(Exception):
    """A call that the kernel refused."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(step)
        self.step, self.number = step, number


class _Attributes(ctypes.Structure):
    """``struct mount_attr``."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def main() -> None:
    told = sys.stdin.buffer.read()
    if not told:
        os._exit(0)  # No program is to be started any more.
    plan: dict[str, Any] = marshal.loads(told)
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    log = os.open(plan["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    try:
        pid = _start(plan, report, null)
    except _Failed as failed:
        _tell(report, step=failed.step, errno=failed.number)
        os._exit(1)
    _tell(report, pid=pid)
    os._exit(0)


def _start(plan: dict[str, Any], report: int, null: int) -> int:
    """The pid of the program, in the namespace of this process."""
    machine = os.uname().machine
    if machine not in _NUMBERS:
        raise _Failed(f"start on {machine}", 38)
    clone, pivot_root = _NUMBERS[machine]
    for file in plan["control_groups"]:
        _write(file, str(os.getpid()), f"join {os.path.dirname(file)}")
    uid, gid = os.geteuid(), os.getegid()
    kinds = _NEW_MOUNTS | _NEW_UTS | _NEW_IPC | _NEW_PIDS
    kinds |= _NEW_USER if plan["user_namespace"] else 0
    kinds |= _NEW_NETWORK if plan["own_network"] else 0
    _check(_libc.unshare(kinds), "create namespaces")
    if plan["user_namespace"]:
        _write("/proc/self/setgroups", "deny", "map the user")
        _write("/proc/self/uid_map", f"{uid} {uid} 1", "map the user")
        _write("/proc/self/gid_map", f"{gid} {gid} 1", "map the group")
        _forbid_more_namespaces()
    if plan["own_network"]:
        _loopback_up()
    mounted, mounts_are_there = os.pipe()
    started, program_is_there = os.pipe()
    if os.fork() == 0:
        os.close(mounted)
        os.close(program_is_there)
        _be_init(plan, report, null, pivot_root, mounts_are_there, started)
    os.close(mounts_are_there)
    if not os.read(mounted, 1):
        os._exit(1)  # The other process has said why.
    pid: int = _libc.syscall(clone, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        _become(plan, report)
    _check(pid, "create a process")
    return pid


def _be_init(
    plan: dict[str, Any], report: int, null: int, pivot_root: int, mounts_are_there: int, started: int
) -> NoReturn:
    """The first process: it ends with the second one, which it may not signal."""
    try:
        _mount_all(plan, pivot_root)
        _give_up_rights()
    except _Failed as failed:
        _tell(report, step=failed.step, errno=failed.number)
        os._exit(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The kernel then reaps.
    os.write(mounts_are_there, b".")
    os.close(mounts_are_there)
    for descriptor in (report, 1, 2):
        os.dup2(null, descriptor)
    os.read(started, 1)
    try:
        program = os.pidfd_open(2)
    except OSError:
        os._exit(0)  # It has ended, and its parent knows.
    import select

    poll = select.poll()
    poll.register(program, select.POLLIN)
    poll.poll()
    os._exit(0)


def _become(plan: dict[str, Any], report: int) -> NoReturn:
    """Executes the program. It sees the file system that the first process has mounted."""
    try:
        os.setsid()
        os.chdir(plan["directory"])
        if plan["processes"] is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_NPROC, (plan["processes"], plan["processes"]))
        _give_up_rights()
        # Python ignores them, and so would the program.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execve(plan["arguments"][0], plan["arguments"], plan["environment"])
    except _Failed as failed:
        _tell(report, step=failed.step, errno=failed.number)
    except OSError as exc:
        _tell(report, step=f"execute {plan['arguments'][0]}", errno=exc.errno)
    os._exit(127)


def _mount_all(plan: dict[str, Any], pivot_root: int) -> None:
    """Makes a file system of what the plan shows, and leaves the machine's."""
    _mount(None, "/", None, _RECURSIVE | _SLAVE)
    base = plan["base"]
    _mount("tmpfs", base, "tmpfs", _NO_SETUID | _NO_DEVICES, "mode=0755,size=4m")
    os.chdir(base)
    os.mkdir("old", 0o700)
    os.mkdir("new", 0o755)
    _check(_libc.syscall(pivot_root, b".", b"old"), "leave the machine's files")
    os.chdir("/")
    _mount("/new", "/new", None, _BIND | _RECURSIVE)
    os.umask(0o022)
    for kind, target, value in plan["mounts"]:
        _show(kind, f"/new{target}", value)
    _mount(None, "/new", None, _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES)
    os.chdir("/new")
    _check(_libc.syscall(pivot_root, b".", b"."), "enter the instance's files")
    _check(_libc.umount2(b".", _DETACH), "leave the machine's files")
    os.chdir("/")


def _show(kind: str, target: str, value: Any) -> None:
    """One entry of the plan: ``value`` is a source, a link's target or a size in bytes."""
    if kind in ("read_only", "read_write") and os.path.islink(target):
        return  # A directory that is shown has the link already. Where it leads to is shown too.
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if kind == "link":
            os.symlink(value, target)
        elif kind in ("temporary", "proc", "empty") or os.path.isdir(f"/old{value}"):
            os.makedirs(target, exist_ok=True)
        elif not os.path.lexists(target):
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    except OSError as exc:
        raise _Failed(f"show {target[4:]}", exc.errno or 0) from exc
    safe = _NO_SETUID | _NO_DEVICES
    if kind == "proc":
        _mount("proc", target, "proc", safe | _NO_EXECUTION | _READ_ONLY)
    elif kind == "temporary":
        _mount("tmpfs", target, "tmpfs", safe, f"mode=1777,size={value}")
    elif kind == "empty":
        _mount("tmpfs", target, "tmpfs", safe, "mode=0755,size=1m")
    elif kind in ("read_only", "read_write", "device"):
        _mount(f"/old{value}", target, None, _BIND | _RECURSIVE)
        extra = {"read_only": safe | _READ_ONLY, "read_write": safe, "device": _NO_SETUID | _NO_EXECUTION}[kind]
        _restrict(target, extra)


def _restrict(target: str, flags: int) -> None:
    """Adds flags to a mount and all below it."""
    attributes = _Attributes(set=flags)
    size = ctypes.sizeof(attributes)
    path = os.fsencode(target)
    if _libc.syscall(_SET_ATTRIBUTES, _AT_FDCWD, path, _AT_RECURSIVE, ctypes.byref(attributes), size) == 0:
        return
    # Before Linux 5.12, or where a filter hides the call: one by one.
    with open("/old/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        points = [line.split(" ")[4].encode("latin-1", "surrogateescape").decode("unicode_escape") for line in lines]
    for point in points:
        if point == target or point.startswith(f"{target}/"):
            now = os.statvfs(point).f_flag
            kept = sum(flag for bit, flag in _KEPT.items() if now & bit)
            _mount(None, point, None, _REMOUNT | _BIND | kept | flags)


def _forbid_more_namespaces() -> None:
    """The limit is this user namespace's. A model that could make others would have all of the
    kernel's calls for mounts and networks to attack. Best effort: /proc/sys may be read-only."""
    with contextlib.suppress(_Failed):
        _write("/proc/sys/user/max_user_namespaces", "0", "")


def _loopback_up() -> None:
    """Programs talk to themselves by it."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))
        except OSError as exc:
            raise _Failed("start the loopback interface", exc.errno or 0) from exc


def _give_up_rights() -> None:
    """No capabilities, and no way to any by executing a file."""
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "forbid new privileges")
    for capability in range(_LAST_CAPABILITY + 1):
        if _libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0) != 0:
            break  # The kernel has no more.
    _check(_libc.prctl(_SET_SECUREBITS, _SECUREBITS, 0, 0, 0), "give up capabilities")
    _libc.prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, none), "give up capabilities")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    values = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    answer = _libc.mount(*values, ctypes.c_ulong(flags), None if data is None else data.encode())
    _check(answer, f"mount {target.removeprefix('/new') or '/'}")


def _write(path: str, text: str, step: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise _Failed(step, exc.errno or 0) from exc


def _check(answer: int, step: str) -> None:
    if answer < 0:
        raise _Failed(step, ctypes.get_errno())


def _tell(report: int, **what: Any) -> None:
    # If the control plane has ended, the next one finds the program by its marker.
    with contextlib.suppress(BrokenPipeError):
        os.write(report, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main()

"""Whether whoever listens where an instance should is that instance.

Decides it by what the kernel says of a connection or of a process, since anybody can answer as a
Triton does. A process that the instance's started counts as the instance: the server may run below
a process that isolates it. Must not know probes or what follows from the answer.

Each function raises OSError if this process could not ask (``own_faults``).
"""

from __future__ import annotations

import socket
import struct

import psutil

from amphitrite.dataplane.machine import own_faults
from amphitrite.dataplane.machine.processes import ProcessRecord
from amphitrite.dataplane.table.routing_table import InstanceAddress, SocketAddress

#: ``struct ucred`` of unix(7): pid, uid, gid.
_CREDENTIALS = struct.Struct("3i")


def owns_peer(process: ProcessRecord, connection: socket.socket) -> bool:
    """Whether ``process`` listens where ``connection`` leads to."""
    if connection.family == socket.AF_UNIX:
        return _includes(process, _listener(connection))
    return _listens(process, int(connection.getpeername()[1]))


def owns_grpc(process: ProcessRecord, address: InstanceAddress, timeout_s: float) -> bool | None:
    """Whether ``process`` listens where ``address`` says that it does for gRPC, if it says so.
    None: nobody listens there, as far as is known."""
    if not isinstance(address, SocketAddress):
        return address.grpc_port is None or _listens(process, address.grpc_port) or None
    if address.grpc_path is None:
        return True
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(address.grpc_path)
        except OSError as exc:
            if own_faults.is_own(exc):
                raise
            return None
        return owns_peer(process, connection)


def _listener(connection: socket.socket) -> int:
    """The pid of whoever called listen(2), which the kernel keeps; 0 if it is not visible here."""
    value = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(value)[0])


def _includes(process: ProcessRecord, pid: int) -> bool:
    """Whether ``pid`` is ``process`` or was started below it."""
    while pid > 1 and pid != process.pid:
        try:
            pid = psutil.Process(pid).ppid()
        except psutil.NoSuchProcess:
            return False
    return pid == process.pid


def _listens(process: ProcessRecord, port: int) -> bool:
    """Whether this very process listens on the TCP port. Another one may have taken the port since
    it was chosen, and may even be a Triton with a model of the same name."""
    try:
        connections = psutil.Process(process.pid).net_connections(kind="tcp")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    return any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in connections)

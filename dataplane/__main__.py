"""``python -m amphitrite.dataplane``: the data-plane agent with its proxy, Envoy.

Decides which proxy the agent drives, and the exit code: 0 stopped by a signal, 1 failed, 2 bad
command line, 5 the port for clients is in use, 6 another agent runs on the same state directory.
Must not know what either of them does.
"""

from __future__ import annotations

import sys

from amphitrite.dataplane.agent.agent import serve
from amphitrite.dataplane.agent.settings import parse
from amphitrite.dataplane.envoy.envoy_proxy import EnvoyProxy
from amphitrite.dataplane.machine.json_log import log
from amphitrite.schemas.errors import Error

_EXIT_CODES = {"PortInUse": 5, "Conflict": 6}


def main() -> int:
    settings = parse()
    try:
        return serve(settings, EnvoyProxy)
    except Error as error:
        log("error", error.message, code=error.code, target=error.target, hint=error.hint)
        return _EXIT_CODES.get(error.code, 1)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m amphitrite.controlplane start|stop``: the program behind ``ml server``.

Decides its arguments and how it reports an error, with exit code 1: one line ``amphitrite-error:
{...}`` on stderr, or with ``--foreground`` the lines ``error:`` and ``hint:`` as the CLI prints
them. Must not know what a control plane consists of.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from amphitrite.controlplane.settings import settings
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.dataplane.machine import garbage_collection
from amphitrite.schemas import database_urls, error_text
from amphitrite.schemas.errors import Error


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 for a requested end, 1 for an error."""
    arguments = _parser().parse_args(argv)
    home = Home(arguments.home.expanduser().absolute())
    try:
        if arguments.verb == "stop":
            _stop(home, keep_serving=arguments.keep_serving)
            return 0
        database_urls.refuse_password("--database", arguments.database, variable="ML_DATABASE_URL")
        # Heavy imports come after parsing, so that usage errors are reported at once. Everything
        # that they create stays, so garbage collection is off meanwhile.
        garbage_collection.disable()
        from amphitrite.controlplane.process import server

        chosen = settings.read(
            os.environ,
            home=home.root,
            host=arguments.host,
            port=arguments.port,
            scoring_port=arguments.scoring_port,
            scoring_domain=arguments.scoring_domain,
            runtime=arguments.runtime,
            database_url=arguments.database,
            models_url=arguments.models,
            kubeconfig=arguments.kubeconfig,
            namespace=arguments.namespace,
            isolation=arguments.isolation,
        )
        everything = server.start(chosen, _announcer(chosen) if arguments.foreground else lambda: None)
        if everything:
            if arguments.foreground:
                print("stopping Envoy and the instances", file=sys.stderr, flush=True)
            _stop(home, keep_serving=False)
    except Error as error:
        foreground = arguments.verb == "start" and arguments.foreground
        text = error_text.render(error) if foreground else f"amphitrite-error: {json.dumps(error.to_body())}\n"
        print(text, end="", file=sys.stderr, flush=True)
        return 1
    return 0


def _stop(home: Home, *, keep_serving: bool) -> None:
    from amphitrite.controlplane.process import shutdown
    from amphitrite.controlplane.runtimes.local.local_runtime import stop_all

    shutdown.stop(home, keep_serving=keep_serving, stop_instances=stop_all)


def _announcer(chosen: Settings) -> Callable[[], None]:
    text = f"control plane: {chosen.api_url}\nscoring: {chosen.scoring_url}"
    return lambda: print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m amphitrite.controlplane")
    verbs = parser.add_subparsers(dest="verb", required=True)
    start = verbs.add_parser("start", help="run a control plane until SIGTERM")
    start.add_argument("--home", type=Path, required=True)
    start.add_argument("--host")
    start.add_argument("--port", type=int)
    start.add_argument("--scoring-port", type=int)
    start.add_argument("--scoring-domain")
    start.add_argument("--runtime")
    start.add_argument("--database")
    start.add_argument("--models")
    start.add_argument("--kubeconfig", type=Path)
    start.add_argument("--namespace")
    start.add_argument("--isolation")
    start.add_argument("--foreground", action="store_true", help="print messages for people instead of JSON")
    stop = verbs.add_parser("stop", help="stop everything that runs for a home")
    stop.add_argument("--home", type=Path, required=True)
    stop.add_argument("--keep-serving", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())

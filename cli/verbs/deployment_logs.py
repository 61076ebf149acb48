"""``ml online-deployment get-logs``: the logs of instances, as text or as az prints them.

Decides the options and the output: text on stdout, headings of a chosen instance on stderr. Must
not know how logs are read (the server does) or followed (``log_stream``).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.resources import local_deployments
from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import verb
from amphitrite.cli.terminal import options
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Returns the text of logs.
    Fetch = Callable[[], str]

#: Option -> the wire's name.
_CONTAINERS = {"inference-server": "InferenceServer", "storage-initializer": "StorageInitializer"}


def register(app: typer.Typer) -> None:
    """Add the verb to ``app``."""
    verb(app, "get-logs")(get_logs)


def get_logs(
    session: Session,
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the deployment.", show_default=False)],
    endpoint_name: Annotated[
        str, typer.Option("--endpoint-name", "--endpoint", "-e", help="Name of the endpoint.", show_default=False)
    ],
    lines: Annotated[
        int, typer.Option("--lines", "-l", "--tail", min=1, help="Number of last lines of each log.")
    ] = 5000,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines.")] = False,
    since: options.Since = None,
    all_instances: Annotated[
        bool, typer.Option("--all-instances", help="The logs of all instances, each below a heading.")
    ] = False,
    instance: Annotated[
        str | None, typer.Option("--instance", help="Only instances whose name begins with this text.")
    ] = None,
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="The log of the attempt before, such as one that crashed.")
    ] = False,
    container: Annotated[
        str | None, typer.Option("--container", "-c", help="Container: inference-server or storage-initializer.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the text as one JSON string, as az does; so does -o json.")
    ] = False,
    locally: local_deployments.Local = False,
) -> str | None:
    """Print the log of a deployment's newest instance, or the logs of all."""
    from amphitrite.cli.resources import lookups
    from amphitrite.cli.session import near_names
    from amphitrite.cli.terminal import ages, log_stream

    body: dict[str, Any] = {"tail": lines, "previous": previous}
    if container is not None:
        if container not in _CONTAINERS:
            supported = "Supported container types are inference-server and storage-initializer"
            raise Error("UsageError", f"Invalid container type '{container}'. {supported}")
        body["containerType"] = _CONTAINERS[container]
    if instance is not None:
        body["instance"] = instance
    since_s = ages.seconds("--since", since)
    as_data = as_json or session.options.output is not None or session.options.query is not None
    if follow and (as_data or previous):
        raise Error("UsageError", "--follow cannot be combined with --previous, --json, --output or --query")
    if locally:
        local_deployments.require_endpoint(session.client, endpoint_name)
    address = lookups.deployment_path(session.client, endpoint_name, name)

    places = lookups.deployment_places(session.client, endpoint_name, name)

    def fetch(**more: Any) -> str:
        with near_names.suggested(session.client, *places):
            answer = session.client.send("POST", f"{address}/getLogs", json=body | more)
        return str(answer.json()["content"])

    if follow:
        young = None if since_s is None else lambda: fetch(sinceSeconds=since_s)
        _follow(session, fetch, young, all_instances=all_instances)
        return None
    text = fetch(sinceSeconds=since_s)
    if previous and not text:
        message = f"no instance of deployment '{name}' has an attempt before its present one"
        raise Error("ResourceNotFound", message, target=name, hint="leave out --previous")
    if not all_instances:
        heading, text, others = log_stream.newest(text)
        if others:
            session.note(log_stream.which(heading, others, previous=previous))
    if as_data:
        return text
    sys.stdout.write(text)
    return None


def _follow(session: Session, fetch: Fetch, young: Fetch | None, *, all_instances: bool) -> None:
    """Print new lines without end. Of one instance: of the newest one, whichever that is."""
    from amphitrite.cli.terminal import log_stream

    def of_newest(read: Fetch) -> Fetch:
        def read_newest() -> str:
            heading, text, _ = log_stream.newest(read())
            return f"{log_stream.heading_line(heading)}\n{text}" if heading else text

        return read if all_instances else read_newest

    for line in log_stream.follow(of_newest(fetch), None if young is None else of_newest(young)):
        if not all_instances and log_stream.is_heading(line):
            session.note(line)
        else:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

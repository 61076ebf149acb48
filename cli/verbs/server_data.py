"""``ml server migrate``, ``backup`` and ``restore``: moving what a control plane keeps.

Decides their options and what is said afterwards. Must not know how it is done: it is run as
``python -m amphitrite.controlplane.transfer``, which answers with one JSON object.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Annotated, Any

import typer

from amphitrite.cli.server import server_process
from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import verb
from amphitrite.cli.terminal import home_directory as homes
from amphitrite.schemas.errors import Error

_LINES = 15

Database = Annotated[
    str | None,
    typer.Option(help="sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME. [default: ML_DATABASE_URL, else SQLite]"),
]
Models = Annotated[
    str | None, typer.Option(help="file:///DIRECTORY or s3://BUCKET/PREFIX. [default: ML_MODELS_URL, else ML_HOME]")
]


def register(app: typer.Typer) -> None:
    """Make them verbs of ``app``."""
    verb(app, "migrate", columns=("from", "to"))(migrate)
    verb(app, "backup", columns=("file", "created_at", "content"))(backup)
    verb(app, "restore", columns=("file", "created_at", "content"))(restore)


def migrate(
    session: Session,
    source: Annotated[str, typer.Option("--from", metavar="URL", help="The database that is, such as sqlite:///FILE.")],
    target: Annotated[str, typer.Option("--to", metavar="URL", help="The one that is to be, without anything in it.")],
    models_from: Annotated[
        str | None, typer.Option(metavar="URL", help="Copy the content of models too, from file:///DIRECTORY or s3://…")
    ] = None,
    models_to: Annotated[str | None, typer.Option(metavar="URL", help="... to this place.")] = None,
    compute: Annotated[
        str | None, typer.Option(help="What deployments of this machine are to run on, such as kubernetes.")
    ] = None,
) -> dict[str, Any]:
    """Copy the state of a control plane that has ended into another database."""
    given = {"--from": source, "--to": target, "--models-from": models_from, "--models-to": models_to}
    answer = _run(session, "migrate", {**given, "--compute": compute})
    session.note(f"copied {sum(answer['rows'].values())} rows; now start the control plane with --database or")
    session.note("ML_DATABASE_URL set to the new database. The old one is left as it is.")
    return answer


def backup(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The backup; nothing may be there yet.")],
    database: Database = None,
    models: Models = None,
) -> dict[str, Any]:
    """Write database, model files, credentials and certificates into one file. The control plane may run meanwhile."""
    answer = _run(session, "backup", {"--database": database, "--models": models}, file)
    _note_left_out(session, answer)
    session.note("it holds keys and private keys: keep it as you would keep those")
    return answer


def restore(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `ml server backup` wrote.")],
    database: Database = None,
    models: Models = None,
) -> dict[str, Any]:
    """Go on from a backup, in an ML_HOME and a database without anything in them."""
    answer = _run(session, "restore", {"--database": database, "--models": models}, file)
    _note_left_out(session, answer)
    return answer


def _note_left_out(session: Session, answer: dict[str, Any]) -> None:
    for text in answer["left_out"]:
        session.note(f"not in the backup: {text}")


def _run(session: Session, name: str, options: dict[str, str | None], *words: str) -> dict[str, Any]:
    """What the process answered. Raises the Error with which it refused."""
    server_process.require_server()
    command = [sys.executable, "-m", "amphitrite.controlplane.transfer", name, "--home", str(homes.path())]
    command += [f"{option}={value}" for option, value in options.items() if value is not None]
    command += ["--", *words] if words else []
    with session.progress(name) as progress:
        progress.phase("copying")
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        answer: dict[str, Any] = json.loads(ended.stdout)
        return answer
    for line in ended.stderr.splitlines():
        if line.startswith(server_process.REFUSAL):
            raise Error.from_body(json.loads(line.removeprefix(server_process.REFUSAL)))
    tail = "\n".join(ended.stderr.strip().splitlines()[-_LINES:])
    raise Error("InternalServerError", f"{name} ended with code {ended.returncode}\n{tail}")

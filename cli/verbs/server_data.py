"""``ml server migrate``, ``backup`` and ``restore``: the data of a control plane.

Decides the options and the output. Must not know how data are copied: ``python -m
amphitrite.controlplane.transfer`` does it, and prints one JSON object.
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
from amphitrite.schemas import database_urls
from amphitrite.schemas.errors import Error

_LINES = 15

Database = Annotated[
    str | None,
    typer.Option(
        help="Database: sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME. [default: ML_DATABASE_URL, else SQLite]"
    ),
]
Models = Annotated[
    str | None,
    typer.Option(help="Model store: file:///DIRECTORY or s3://BUCKET/PREFIX. [default: ML_MODELS_URL, else ML_HOME]"),
]


def register(app: typer.Typer) -> None:
    """Add the three verbs to ``app``."""
    verb(app, "migrate", columns=("from", "to"))(migrate)
    verb(app, "backup", columns=("file", "created_at", "content"))(backup)
    verb(app, "restore", columns=("file", "created_at", "content"))(restore)


def migrate(
    session: Session,
    source: Annotated[str, typer.Option("--from", metavar="URL", help="Current database, such as sqlite:///FILE.")],
    target: Annotated[str, typer.Option("--to", metavar="URL", help="New database. It must be empty.")],
    models_from: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Copy model files as well, from file:///DIRECTORY or s3://BUCKET/PREFIX."),
    ] = None,
    models_to: Annotated[str | None, typer.Option(metavar="URL", help="Destination of the model files.")] = None,
    compute: Annotated[
        str | None, typer.Option(help="New compute of deployments that run on this machine, such as kubernetes.")
    ] = None,
) -> dict[str, Any]:
    """Copy the state of a stopped control plane into another database."""
    options = {"--from": source, "--to": target, "--models-from": models_from, "--models-to": models_to}
    answer = _run(session, "migrate", {**options, "--compute": compute})
    session.note(f"copied {sum(answer['rows'].values())} rows; the old database is unchanged")
    session.note("start the control plane with --database or ML_DATABASE_URL set to the new database")
    return answer


def backup(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Path of the backup. No file may exist there.")],
    database: Database = None,
    models: Models = None,
) -> dict[str, Any]:
    """Write database, model files, credentials and certificates into one file.

    The control plane may be running.
    """
    answer = _run(session, "backup", {"--database": database, "--models": models}, file)
    _note_left_out(session, answer)
    session.note("the backup contains private keys and credentials; store it securely")
    return answer


def restore(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Backup from `ml server backup`.")],
    database: Database = None,
    models: Models = None,
) -> dict[str, Any]:
    """Restore a backup into an empty ML_HOME and an empty database."""
    answer = _run(session, "restore", {"--database": database, "--models": models}, file)
    _note_left_out(session, answer)
    return answer


def _note_left_out(session: Session, answer: dict[str, Any]) -> None:
    for text in answer["left_out"]:
        session.note(f"not in the backup: {text}")


def _run(session: Session, name: str, options: dict[str, str | None], *words: str) -> dict[str, Any]:
    """The JSON object that the process printed. Raises the Error that it reported."""
    server_process.require_server()
    for option in ("--database", "--from", "--to"):
        variable = "ML_DATABASE_URL" if option == "--database" else None
        database_urls.refuse_password(option, options.get(option), variable=variable)
    command = [sys.executable, "-m", "amphitrite.controlplane.transfer", name, "--home", str(homes.path())]
    command += [f"{option}={value}" for option, value in options.items() if value is not None]
    command += ["--", *words] if words else []
    with session.progress(name) as progress:
        progress.phase("copying")
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode == 0:
        answer: dict[str, Any] = json.loads(process.stdout)
        return answer
    for line in process.stderr.splitlines():
        if line.startswith(server_process.ERROR_PREFIX):
            raise Error.from_body(json.loads(line.removeprefix(server_process.ERROR_PREFIX)))
    tail = "\n".join(process.stderr.strip().splitlines()[-_LINES:])
    raise Error("InternalServerError", f"{name} exited with code {process.returncode}\n{tail}")

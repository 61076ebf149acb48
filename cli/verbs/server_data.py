"""``ml server migrate``, ``backup``, ``restore`` and ``check``: the data of a control plane.

Decides the options and the output. Must not know how data are copied or checked: ``python -m
amphitrite.controlplane.transfer`` and ``integrity`` do it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from amphitrite.cli.server import data_program
from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import verb
from amphitrite.cli.terminal import sizes, tables
from amphitrite.cli.terminal.tables import Column, Table
from amphitrite.schemas.errors import Error

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
    """Add the four verbs to ``app``."""
    verb(app, "migrate", columns=("from", "to"))(migrate)
    verb(app, "backup", columns=("file", "created_at", "content"))(backup)
    verb(app, "restore", columns=("file", "created_at", "content"))(restore)
    verb(app, "check")(check)


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
    answer = data_program.run(session, "transfer", "migrate", {**options, "--compute": compute})
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
    answer = data_program.run(session, "transfer", "backup", {"--database": database, "--models": models}, file)
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
    answer = data_program.run(session, "transfer", "restore", {"--database": database, "--models": models}, file)
    _note_left_out(session, answer)
    return answer


def _note_left_out(session: Session, answer: dict[str, Any]) -> None:
    for text in answer["left_out"]:
        session.note(f"not in the backup: {text}")


def check(
    session: Session,
    repair: Annotated[
        bool, typer.Option("--repair", help="Make damaged directories of models again from their stored files.")
    ] = False,
    database: Database = None,
    models: Models = None,
) -> dict[str, Any] | None:
    """Read everything that the server keeps, and say what is damaged and what to do.

    Prints a table, or with -o json all of it. Ends with 1 if something is damaged. The server may
    be running.
    """
    settings = {"--repair": "yes" if repair else "no", "--database": database, "--models": models}
    answer = data_program.run(session, "integrity", "", settings, phase="reading")
    structured = session.options.query is not None or session.options.output not in (None, "table", "wide")
    if structured:
        session.print(answer)
    else:
        sys.stdout.write(tables.render(_table(answer)))
    for note in answer["notes"]:
        session.note(f"note: {note}")
    left = [one for one in answer["damaged"] if not one["repaired"]]
    if not structured:
        for one in answer["damaged"]:
            session.note(f"{'repaired' if one['repaired'] else 'damaged'}: {one['name']}: {one['problem']}")
    if left:
        hints = list(dict.fromkeys(one["hint"] for one in left))
        raise Error("DamagedContent", f"{len(left)} damaged: {_kinds(left)}", hint="; ".join(hints))
    return None


def _table(answer: Mapping[str, Any]) -> Table:
    rows = [
        (row["kind"], str(row["count"]), sizes.text(row["size"]) if row["size"] else "-", str(row["damaged"]))
        for row in answer["checked"]
    ]
    return Table(tuple(map(Column, ("Checked", "Count", "Size", "Damaged"))), tuple(rows))


def _kinds(damaged: list[Mapping[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(str(one["kind"]) for one in damaged))

"""``ml server df`` and ``ml server prune``: what the server's data takes, and what can go.

Decides the options and the output. Must not know what is garbage: the control plane decides and
deletes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import verb
from amphitrite.cli.terminal import durations, sizes, tables
from amphitrite.cli.terminal.tables import Column, Table
from amphitrite.schemas.errors import Error

#: Seconds: an object store with many objects answers slowly.
_TIMEOUT_S = 600.0
#: Hours. The control plane refuses less.
_AGE_MIN_H = 1


def register(app: typer.Typer) -> None:
    """Add the two verbs to ``app``."""
    verb(app, "df")(df)
    verb(app, "prune")(prune)


def df(session: Session) -> dict[str, Any] | None:
    """Show what models, uploads, instances, logs and the database take, and what can be freed.

    Prints a table, or with -o json bytes. Versions of a model share equal files, so the sizes of
    models add up to more than their row "model files".
    """
    answer = session.client.exchange_json("GET", "/maintenance/v1/storage", timeout_s=_TIMEOUT_S)
    usage = {
        "models": [_snake(one) for one in answer["models"]],
        "rows": answer["rows"],
        "size": sum(row["size"] for row in answer["rows"]),
        "freeable": sum(row["freeable"] for row in answer["rows"]),
    }
    if session.options.query is not None or session.options.output not in (None, "table", "wide"):
        return usage
    sys.stdout.write(tables.render(_table(usage, time.time()), wide=session.options.output == "wide"))
    return None


def prune(
    session: Session,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted, and delete nothing.")] = False,
    older_than: Annotated[
        float,
        typer.Option(
            "--older-than",
            metavar="HOURS",
            help="Keep uploads without a version that are younger: somebody may be about to register them. At least 1.",
        ),
    ] = 24,
) -> dict[str, Any] | None:
    """Delete what nobody needs: old uploads, files of no version, directories of gone instances.

    Nothing in use is deleted. Uploads may be under way.
    """
    if not older_than >= _AGE_MIN_H:
        message = f"--older-than: found {older_than:g}; allowed: at least {_AGE_MIN_H} (hours)"
        hint = "younger files are always kept: their upload may be under way, or about to become a version"
        raise Error("UsageError", message, hint=hint)
    params = {"dryRun": str(dry_run).lower(), "olderThan": str(older_than * 3600)}
    answer = session.client.exchange_json("POST", "/maintenance/v1/prune", params=params, timeout_s=_TIMEOUT_S)
    if session.options.query is not None or session.options.output is not None:
        return _snake(answer)
    verb_ = "would free" if dry_run else "freed"
    for row in answer["freed"]:
        sys.stdout.write(f"{row['name']}: {verb_} {sizes.text(row['size'])} in {_files(row['files'])}\n")
    sys.stdout.write(f"{verb_} {sizes.text(answer['size'])}\n")
    kept = answer["kept"]
    if kept["files"]:
        what = f"{sizes.text(kept['size'])} in {_files(kept['files'])} without a version"
        session.note(f"note: kept {what}, younger than {kept['olderThan'] / 3600:g} h (--older-than HOURS)")
    return None


def _table(usage: Mapping[str, Any], now: float) -> Table:
    columns = tuple(map(Column, ("Name", "Files", "Size", "Freeable", "Last used", "Used by")))
    rows = [
        (
            f"model {one['name']}:{one['version']}",
            str(one["files"]),
            sizes.text(one["size"]),
            "-",
            "now" if one["used_by"] else _ago(one["last_used"], now),
            ", ".join(one["used_by"]),
            "",
        )
        for one in usage["models"]
    ]
    for row in usage["rows"]:
        size, freeable = sizes.text(row["size"]), sizes.text(row["freeable"])
        rows.append((row["name"], str(row["files"]), size, freeable, "", "", row["place"]))
    rows.append(("total", "", sizes.text(usage["size"]), sizes.text(usage["freeable"]), "", "", ""))
    return Table((*columns, Column("Place", wide=True)), tuple(rows))


def _ago(last_used: str | None, now: float) -> str:
    return "never" if last_used is None else f"{durations.age(now - durations.epoch(last_used))} ago"


def _snake(answer: Mapping[str, Any]) -> dict[str, Any]:
    from amphitrite.schemas import casing

    return {
        casing.snake(name): _snake(value) if isinstance(value, Mapping) else value for name, value in answer.items()
    }


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"

"""``python -m amphitrite.controlplane.transfer migrate|backup|restore``: the program of these ``ml
server`` commands.

Decides their arguments and output: one JSON object on stdout, or one line ``amphitrite-error:
{...}`` on stderr and exit code 1. Must not know how data is moved.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amphitrite.controlplane.settings import settings
from amphitrite.controlplane.settings.home import Home
from amphitrite.controlplane.store.content.content_store import damaged, open_content
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.controlplane.store.state import row_transfer
from amphitrite.controlplane.transfer import backup, exclusive_access
from amphitrite.schemas import database_urls
from amphitrite.schemas.errors import Error


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 for success, 1 for an error."""
    arguments = _parser().parse_args(argv)
    os.umask(0o077)
    home = arguments.home.expanduser().absolute()
    try:
        if arguments.verb == "migrate":
            database_urls.refuse_password("--from", arguments.source)
            database_urls.refuse_password("--to", arguments.target)
        else:
            database_urls.refuse_password("--database", arguments.database, variable="ML_DATABASE_URL")
        chosen_settings = settings.read(
            os.environ,
            home=home,
            database_url=getattr(arguments, "database", None),
            models_url=getattr(arguments, "models", None),
        )
        if arguments.verb == "migrate":
            answer = migrate(chosen_settings.home, arguments)
        else:
            verb = backup.backup if arguments.verb == "backup" else backup.restore
            answer = verb(chosen_settings, arguments.file.absolute())
    except Error as error:
        print(f"amphitrite-error: {json.dumps(error.to_body())}", file=sys.stderr, flush=True)
        return 1
    print(json.dumps(answer))
    return 0


def migrate(home: Home, arguments: argparse.Namespace) -> dict[str, Any]:
    """Copies all rows of one database into an empty one, and the models' content if both content
    URLs are given. The source is unchanged, except that its schema is migrated.

    Raises Error Conflict (a control plane uses one of them, or the target is not empty),
    BadArgument or RuntimeUnavailable.
    """
    if bool(arguments.models_from) != bool(arguments.models_to):
        raise Error("BadArgument", "--models-from and --models-to must be used together", target="--models-from")
    source = _open_source(arguments.source)
    try:
        target = row_transfer.open_empty(arguments.target)
        try:
            with exclusive_access.exclusive(home, source, target):
                answer: dict[str, Any] = {"from": source.place, "to": target.place}
                if arguments.models_from:
                    answer["files"] = _copy_content(home, source, arguments.models_from, arguments.models_to)
                return {**answer, "rows": row_transfer.copy(source, target, compute=arguments.compute)}
        finally:
            target.close()
    finally:
        source.close()


def _open_source(url: str) -> Database:
    """Opens the source, which is not created if it does not exist."""
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).is_file():
        raise Error("BadArgument", f"the file {url.removeprefix('sqlite:///')} does not exist", target="--from")
    return row_transfer.open_existing(url)


def _copy_content(home: Home, database: Database, source_url: str, target_url: str) -> int:
    """Copies content that the target lacks. Returns the number of files."""
    source = open_content(source_url, home.models, time.time)
    target = open_content(target_url, home.models, time.time)
    with database.read() as connection:
        digests = row_transfer.digests(connection)
    count = 0
    for digest in digests:
        size = source.size(digest)
        if target.size(digest) is not None:
            continue
        if size is None:
            raise Error("RuntimeUnavailable", f"the content {digest} is not in {source.place}", target=digest)
        with target.begin(size) as upload:
            for data in source.read(digest, 0, size, verified=False):
                upload.write(data)
            if upload.finish()[0] != digest:
                raise damaged(digest, f"the content {digest} in {source.place}")
        count += 1
    return count


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m amphitrite.controlplane.transfer")
    verbs = parser.add_subparsers(dest="verb", required=True)
    migrate = verbs.add_parser("migrate", help="copy the state to another database")
    migrate.add_argument("--from", dest="source", required=True)
    migrate.add_argument("--to", dest="target", required=True)
    migrate.add_argument("--models-from")
    migrate.add_argument("--models-to")
    migrate.add_argument("--compute")
    backup = verbs.add_parser("backup", help="write the state of a control plane to one file")
    restore = verbs.add_parser("restore", help="restore a backup into an empty database and home")
    for verb in (backup, restore):
        verb.add_argument("--database")
        verb.add_argument("--models")
        verb.add_argument("file", type=Path)
    for verb in (migrate, backup, restore):
        verb.add_argument("--home", type=Path, required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""``ml model``: one function for each verb.

Decides the options and what is printed. Must not know YAML (``intake``) or uploads (``registration``).
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amphitrite.cli import options as given
from amphitrite.cli.command import group, verb
from amphitrite.cli.session import Session
from amphitrite.schemas.names import model_id

app = group("model", "Immutable, numbered versions of model files.")

_COLUMNS = ("name", "version", "type", "description", "tags")
Name = Annotated[str, typer.Option("--name", "-n", help="Name of the model.", show_default=False)]
Version = Annotated[str | None, typer.Option("--version", "-v", help="Version.")]
Label = Annotated[str | None, typer.Option("--label", "-l", help="latest, in place of a version.")]


@verb(app, "create", columns=_COLUMNS)
def create(
    session: Session,
    file: given.File = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name; over the file's.")] = None,
    version: Annotated[str | None, typer.Option("--version", "-v", help="[default: the next number]")] = None,
    path: Annotated[str | None, typer.Option("--path", "-p", help="File or directory; over the file's.")] = None,
    type_: Annotated[
        str | None, typer.Option("--type", "-t", help="triton_model, custom_model or mlflow_model.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", help="Over the file's.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tags", help="name=value ...")] = None,
    set_: given.Set = None,
) -> dict[str, Any]:
    """Upload the files of a model and register them as a version."""
    from amphitrite.cli import intake, registration
    from amphitrite.schemas.shown import show_model

    overrides = given.present(name=name, version=version, path=path, type=type_, description=description)
    overrides |= given.present(tags=intake.pairs("--tags", tags))
    draft = intake.model(file, overrides, set_ or ())
    with session.progress(draft.document["name"]) as progress, draft.located():
        resource = registration.register(session.client, draft.document, progress)
        progress.done(f"version {resource['name']} registered")
    return show_model(resource)


@verb(app, "show", columns=_COLUMNS)
def show(session: Session, name: Name, version: Version = None, label: Label = None) -> dict[str, Any]:
    """Show a version of a model."""
    from amphitrite.cli import registration
    from amphitrite.schemas.shown import show_model

    client = session.client
    version = registration.version_of(client, name, version, label)
    return show_model(client.get(model_id(client.workspace, name, version)))


@verb(app, "list", columns=("name", "version", "latest_version", "description", "tags"))
def list_(
    session: Session,
    name: Annotated[str | None, typer.Option("--name", "-n", help="List the versions of this model.")] = None,
    archived_only: Annotated[bool, typer.Option("--archived-only", help="Only what is archived.")] = False,
    include_archived: Annotated[bool, typer.Option("--include-archived", help="Archived ones, too.")] = False,
    max_results: Annotated[int | None, typer.Option("--max-results", "-r", min=1, help="At most so many.")] = None,
) -> list[dict[str, Any]]:
    """List all models, or all versions of one."""
    from amphitrite.schemas.errors import Error
    from amphitrite.schemas.shown import show_model, show_model_container

    if archived_only and include_archived:
        raise Error("UsageError", "Cannot provide both archived-only and include-archived.")
    view = "ArchivedOnly" if archived_only else "All" if include_archived else "ActiveOnly"
    client = session.client
    if name is None:
        found = client.pages(f"{client.workspace}/models", listViewType=view)
    else:
        found = client.pages(f"{model_id(client.workspace, name)}/versions", listViewType=view)
    shown = show_model_container if name is None else show_model
    return [shown(resource) for resource in found[:max_results]]


@verb(app, "archive")
def archive(session: Session, name: Name, version: Version = None, label: Label = None) -> None:
    """Leave a model, or one version of it, out of lists; what serves it goes on serving."""
    from amphitrite.cli import registration

    registration.set_archived(session.client, name, version, label, archived=True)


@verb(app, "restore")
def restore(session: Session, name: Name, version: Version = None, label: Label = None) -> None:
    """Put an archived model, or one version of it, on lists again."""
    from amphitrite.cli import registration

    registration.set_archived(session.client, name, version, label, archived=False)

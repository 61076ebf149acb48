"""``ml model``: one function for each verb.

Decides the options and the output. Must not know YAML (``document_input``) or transfers
(``uploads``, ``downloads``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session import interruption, near_names
from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal import options
from amphitrite.cli.verbs import azure_only
from amphitrite.schemas.names import model_id

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

app = group("model", "Immutable, numbered versions of model files.")

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the model.", show_default=False)]
Version = Annotated[str | None, typer.Option("--version", "-v", help="Version of the model.")]
Label = Annotated[str | None, typer.Option("--label", "-l", help="Label in place of a version: latest.")]
Registry = azure_only.RegistryName


def _table(session: Session, value: Any, **options: Any) -> Table:
    from amphitrite.cli.resources import resource_tables

    return resource_tables.assets(session, value, "models")


def _list_table(session: Session, value: Any, name: str | None, **options: Any) -> Table:
    from amphitrite.cli.resources import resource_tables

    return resource_tables.assets(session, value, "models", name)


@verb(app, "create", table=_table)
def create(
    session: Session,
    file: options.File = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name. Overrides the file.")] = None,
    version: Annotated[str | None, typer.Option("--version", "-v", help="Version. [default: the next number]")] = None,
    path: Annotated[
        str | None, typer.Option("--path", "-p", help="File or directory of the model. Overrides the file.")
    ] = None,
    type_: Annotated[
        str | None, typer.Option("--type", "-t", help="Type: triton_model, custom_model or mlflow_model.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", help="Description. Overrides the file.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tags", help="Tags: NAME=VALUE ...")] = None,
    stage: Annotated[str | None, typer.Option("--stage", help="Stage, any text such as Production.")] = None,
    datastore: Annotated[
        str | None, typer.Option("--datastore", help="Name of the datastore. The only one is workspaceblobstore.")
    ] = None,
    set_: options.Set = None,
    no_wait: options.NoWait = False,
    registry_name: Registry = None,
) -> dict[str, Any] | None:
    """Upload the files of a model and register them as a version."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import model_registration
    from amphitrite.cli.documents import document_input, edits
    from amphitrite.schemas.wire.display import show_model

    overrides = options.set_options(name=name, version=version, path=path, type=type_, description=description)
    overrides |= options.set_options(tags=document_input.parse_pairs("--tags", tags), stage=stage, datastore=datastore)
    submission = document_input.read_model(file, overrides, edits.parse_edits(set_))
    try:
        with session.progress(f"model/{submission.document['name']}") as progress, submission.with_locations():
            resource = model_registration.register(session.client, submission.document, progress)
            progress.done(f"version {resource['name']} registered")
    except KeyboardInterrupt:
        again = "repeat the command; files sent without a version are deleted after a day"
        raise interruption.reported(f"no version of {submission.document['name']} was registered", again) from None
    for note in (*model_registration.notes(resource), *model_registration.serving_notes(resource)):
        session.note(note)
    if no_wait:
        session.note(f"model/{submission.document['name']}:{resource['name']} created")
        return None
    return show_model(resource)


@verb(app, "show", table=_table)
def show(
    session: Session, name: Name, version: Version = None, label: Label = None, registry_name: Registry = None
) -> dict[str, Any]:
    """Show a version of a model."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import model_registration
    from amphitrite.schemas.wire.display import show_model

    client = session.client
    with near_names.suggested(client, *near_names.version_places("models", client.workspace, name, version)):
        version = model_registration.resolve_version(client, name, version, label)
        return show_model(client.get(model_id(client.workspace, name, version)))


@verb(app, "list", table=_list_table)
def list_(
    session: Session,
    name: Annotated[str | None, typer.Option("--name", "-n", help="List the versions of this model.")] = None,
    archived_only: Annotated[bool, typer.Option("--archived-only", help="Only archived ones.")] = False,
    include_archived: Annotated[bool, typer.Option("--include-archived", help="Include archived ones.")] = False,
    max_results: Annotated[
        int | None, typer.Option("--max-results", "-r", min=1, help="Maximum number of results.")
    ] = None,
    stage: Annotated[str | None, typer.Option("--stage", help="With --name, only versions of this stage.")] = None,
    registry_name: Registry = None,
) -> list[dict[str, Any]]:
    """List all models, or all versions of one."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.schemas.errors import Error
    from amphitrite.schemas.wire.display import show_model, show_model_container

    view = options.list_view_type(archived_only=archived_only, include_archived=include_archived)
    if stage is not None and name is None:
        raise Error("UsageError", "--stage needs --name: only versions of a model have a stage", hint="add --name")
    client = session.client
    if name is None:
        resources = client.list_all(f"{client.workspace}/models", listViewType=view)
    else:
        resources = client.list_all(f"{model_id(client.workspace, name)}/versions", listViewType=view)
    if stage is not None:
        resources = [resource for resource in resources if resource["properties"].get("stage") == stage]
    show = show_model_container if name is None else show_model
    return [show(resource) for resource in resources[:max_results]]


@verb(app, "update", table=_table)
def update(
    session: Session,
    name: Name,
    version: Version = None,
    label: Label = None,
    stage: Annotated[str | None, typer.Option("--stage", help="Stage, any text such as Production.")] = None,
    set_: options.Set = None,
    add: options.Add = None,
    remove: options.Remove = None,
    force_string: options.ForceString = False,
    registry_name: Registry = None,
) -> dict[str, Any]:
    """Change the description, stage, tags or properties of a version of a model."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import model_changes, model_registration
    from amphitrite.cli.documents import edits
    from amphitrite.schemas.wire.display import show_model

    client = session.client
    version = model_registration.resolve_version(client, name, version, label)
    field_edits = edits.parse_edits(set_, add, remove, force_string=force_string)
    return show_model(model_changes.update(client, name, version, options.set_options(stage=stage), field_edits))


@verb(app, "download")
def download(
    session: Session,
    name: Name,
    version: Version = None,
    label: Label = None,
    download_path: Annotated[
        str,
        typer.Option(
            "--download-path", "-p", help="Directory in which a directory with the name of the model is created."
        ),
    ] = ".",
    registry_name: Registry = None,
) -> None:
    """Download the files of a version of a model."""
    azure_only.refuse(registry_name=registry_name)
    from pathlib import Path

    from amphitrite.cli.assets import downloads, model_registration

    client = session.client
    version = model_registration.resolve_version(client, name, version, label)
    uri = client.get(model_id(client.workspace, name, version))["properties"]["modelUri"]
    with session.progress(f"model/{name}:{version}") as progress:
        downloads.download(client, uri, Path(download_path) / name, progress)
        progress.done("downloaded")


@verb(app, "archive")
def archive(
    session: Session, name: Name, version: Version = None, label: Label = None, registry_name: Registry = None
) -> None:
    """Hide a model, or one version of it, from lists. Deployments that use it are not affected."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import model_registration

    session.note(model_registration.set_archived(session.client, name, version, label, archived=True))


@verb(app, "restore")
def restore(
    session: Session, name: Name, version: Version = None, label: Label = None, registry_name: Registry = None
) -> None:
    """Show an archived model, or one version of it, in lists again."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import model_registration

    session.note(model_registration.set_archived(session.client, name, version, label, archived=False))


@verb(app, "delete")
def delete(
    session: Session,
    name: Name,
    version: Version = None,
    all_versions: Annotated[bool, typer.Option("--all-versions", help="Delete all versions of the model.")] = False,
    yes: options.Yes = False,
    ignore_not_found: options.IgnoreNotFound = False,
) -> None:
    """Delete a version of a model that no deployment uses, archived or not.

    `ml server prune` frees the space of its files.
    """
    from amphitrite.cli.assets import asset_deletion

    asset_deletion.delete(
        session, "models", name, version, all_versions=all_versions, yes=yes, ignore_not_found=ignore_not_found
    )


@verb(app, "share", any_words=True)
def share(session: Session) -> None:
    """Not supported: there are no registries."""
    raise azure_only.share()


@verb(app, "package", any_words=True)
def package(session: Session) -> None:
    """Not supported: models are not packaged into images."""
    raise azure_only.package()


@verb(app, "validate")
def validate(
    session: Session,
    path: Annotated[str, typer.Argument(help="Directory of the model repository.", show_default=False)],
    instance_type: Annotated[
        str | None,
        typer.Option(
            "--instance-type", help="Check for the GPUs of this instance type, which the control plane knows."
        ),
    ] = None,
) -> None:
    """Check whether Triton would load a model repository.

    Needs no Triton. Exit code 1: it would not.
    """
    from amphitrite.cli.assets import model_validation

    if not model_validation.report(session, path, instance_type):
        raise typer.Exit(1)

"""``ml environment``: one function for each verb.

Decides the options and the output. Must not know YAML (``document_input``) or registration
(``environment_registration``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session import near_names
from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal import options
from amphitrite.cli.verbs import azure_only
from amphitrite.schemas.names import environment_id

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

app = group("environment", "Immutable, numbered versions of container images.")

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the environment.", show_default=False)]
Version = Annotated[str | None, typer.Option("--version", "-v", help="Version of the environment.")]
Label = Annotated[str | None, typer.Option("--label", "-l", help="Label in place of a version: latest.")]
Registry = azure_only.RegistryName


def _table(session: Session, value: Any, **options: Any) -> Table:
    from amphitrite.cli.resources import resource_tables

    return resource_tables.assets(session, value, "environments")


def _list_table(session: Session, value: Any, name: str | None, **options: Any) -> Table:
    from amphitrite.cli.resources import resource_tables

    return resource_tables.assets(session, value, "environments", name)


@verb(app, "create", table=_table)
def create(
    session: Session,
    file: options.File = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name. Overrides the file.")] = None,
    version: Annotated[
        str | None,
        typer.Option("--version", "-v", help="Version. [default: the newest if it has this content, else the next]"),
    ] = None,
    image: Annotated[str | None, typer.Option("--image", "-i", help="Container image, with registry and tag.")] = None,
    conda_file: Annotated[
        str | None,
        typer.Option(
            "--conda-file",
            "-c",
            metavar="FILE",
            help="Conda specification. It is stored, but no deployment can use it.",
        ),
    ] = None,
    build_context: Annotated[
        str | None,
        typer.Option("--build-context", "-b", hidden=True, help="Not supported: the server does not build images."),
    ] = None,
    dockerfile_path: Annotated[
        str | None,
        typer.Option("--dockerfile-path", "-d", hidden=True, help="Not supported: the server does not build images."),
    ] = None,
    os_type: Annotated[
        str | None, typer.Option("--os-type", help="Operating system: linux. Others are not supported.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", help="Description. Overrides the file.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tags", help="Tags: NAME=VALUE ...")] = None,
    datastore: Annotated[
        str | None, typer.Option("--datastore", help="Name of the datastore. The only one is workspaceblobstore.")
    ] = None,
    set_: options.Set = None,
    no_wait: options.NoWait = False,
    registry_name: Registry = None,
) -> dict[str, Any] | None:
    """Register an image and the routes of its server as a version of an environment."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import environment_registration
    from amphitrite.cli.documents import document_input, edits
    from amphitrite.schemas.wire.display import show_environment

    environment_registration.refuse_build({"--build-context": build_context, "--dockerfile-path": dockerfile_path})
    overrides = options.set_options(name=name, version=version, image=image, conda_file=conda_file, os_type=os_type)
    overrides |= options.set_options(
        description=description, tags=document_input.parse_pairs("--tags", tags), datastore=datastore
    )
    document = edits.apply(document_input.read_source(file, overrides), edits.parse_edits(set_))
    submission = document_input.validate_environment(document)
    with submission.with_locations():
        resource = environment_registration.register(session.client, submission.document)
    if no_wait:
        session.note(f"environment/{submission.document['name']}:{resource['name']} created")
        return None
    return show_environment(resource)


@verb(app, "show", table=_table)
def show(
    session: Session, name: Name, version: Version = None, label: Label = None, registry_name: Registry = None
) -> dict[str, Any]:
    """Show a version of an environment."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import model_registration
    from amphitrite.schemas.wire.display import show_environment

    client = session.client
    with near_names.suggested(client, *near_names.version_places("environments", client.workspace, name, version)):
        version = model_registration.resolve_version(client, name, version, label, "environments")
        return show_environment(client.get(environment_id(client.workspace, name, version)))


@verb(app, "list", table=_list_table)
def list_(
    session: Session,
    name: Annotated[str | None, typer.Option("--name", "-n", help="List the versions of this environment.")] = None,
    archived_only: Annotated[bool, typer.Option("--archived-only", help="Only archived ones.")] = False,
    include_archived: Annotated[bool, typer.Option("--include-archived", help="Include archived ones.")] = False,
    max_results: Annotated[
        int | None, typer.Option("--max-results", "-r", min=1, help="Maximum number of results.")
    ] = None,
    registry_name: Registry = None,
) -> list[dict[str, Any]]:
    """List all environments, or all versions of one."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.schemas.wire.display import show_environment, show_environment_container

    view = options.list_view_type(archived_only=archived_only, include_archived=include_archived)
    client = session.client
    if name is None:
        resources = client.list_all(f"{client.workspace}/environments", listViewType=view)
    else:
        resources = client.list_all(f"{environment_id(client.workspace, name)}/versions", listViewType=view)
    show = show_environment_container if name is None else show_environment
    return [show(resource) for resource in resources[:max_results]]


@verb(app, "update", table=_table)
def update(
    session: Session,
    name: Name,
    version: Version = None,
    label: Label = None,
    set_: options.Set = None,
    add: options.Add = None,
    remove: options.Remove = None,
    force_string: options.ForceString = False,
    registry_name: Registry = None,
) -> dict[str, Any]:
    """Change the description, tags or properties of a version of an environment."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import environment_registration, model_registration
    from amphitrite.cli.documents import edits
    from amphitrite.schemas.wire.display import show_environment

    client = session.client
    version = model_registration.resolve_version(client, name, version, label, "environments")
    field_edits = edits.parse_edits(set_, add, remove, force_string=force_string)
    return show_environment(environment_registration.update(client, name, version, field_edits))


@verb(app, "archive")
def archive(
    session: Session, name: Name, version: Version = None, label: Label = None, registry_name: Registry = None
) -> None:
    """Hide an environment, or one version of it, from lists.

    Deployments that use it are not affected.
    """
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import model_registration

    session.note(
        model_registration.set_archived(session.client, name, version, label, archived=True, kind="environments")
    )


@verb(app, "restore")
def restore(
    session: Session, name: Name, version: Version = None, label: Label = None, registry_name: Registry = None
) -> None:
    """Show an archived environment, or one version of it, in lists again."""
    azure_only.refuse(registry_name=registry_name)
    from amphitrite.cli.assets import model_registration

    session.note(
        model_registration.set_archived(session.client, name, version, label, archived=False, kind="environments")
    )


@verb(app, "delete")
def delete(
    session: Session,
    name: Name,
    version: Version = None,
    all_versions: Annotated[
        bool, typer.Option("--all-versions", help="Delete all versions of the environment.")
    ] = False,
    yes: options.Yes = False,
    ignore_not_found: options.IgnoreNotFound = False,
) -> None:
    """Delete a version of an environment that no deployment uses, archived or not."""
    from amphitrite.cli.assets import asset_deletion

    asset_deletion.delete(
        session, "environments", name, version, all_versions=all_versions, yes=yes, ignore_not_found=ignore_not_found
    )


@verb(app, "share", any_words=True)
def share(session: Session) -> None:
    """Not supported: there are no registries."""
    raise azure_only.share()

"""``ml apply`` and ``ml diff``: preview the resources of documents, then create or update them.

Decides the order of the steps: referenced resources first, traffic last, because it needs its
deployments. Must not know YAML (``apply_documents``), nor how steps are computed
(``apply_preview``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session import interruption
from amphitrite.cli.session.session import Session
from amphitrite.cli.terminal import options
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.documents.apply_documents import RequestedResource
    from amphitrite.cli.resources.apply_steps import FieldChange, Step

_SHARES = ("traffic", "mirror_traffic")

Files = Annotated[
    list[str],
    typer.Option(
        "--file",
        "-f",
        metavar="FILE ...",
        help="YAML file with one or more documents, a directory of such files, or - for stdin.",
    ),
]


def apply(
    session: Session,
    file: Files,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes without making them.")] = False,
    reason: options.Reason = None,
) -> list[dict[str, Any]] | None:
    """Create or update the models, environments, endpoints and deployments in YAML documents."""
    session.reason = reason or ""
    try:
        steps = _plan(session, file)
    except KeyboardInterrupt:
        raise interruption.reported("nothing was changed") from None
    if not dry_run:
        _execute(session, steps)
        return [step.to_document() for step in steps] if _as_data(session) else None
    return _output(session, steps)


def diff(
    session: Session,
    file: Files,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with code 1 if anything would change.")] = False,
) -> list[dict[str, Any]] | None:
    """Show the changes that ml apply would make, with reasons and fields."""
    steps = _plan(session, file)
    output = _output(session, steps)
    if exit_code and any(step.change != "none" for step in steps):
        if output is not None:
            session.print(output)
        raise typer.Exit(1)
    return output


def _plan(session: Session, files: Sequence[str]) -> list[Step]:
    from amphitrite.cli.documents.apply_documents import read_resources
    from amphitrite.cli.resources.apply_preview import Preview

    items = read_resources(files)
    with session.progress("apply" if len(files) > 1 else files[0]) as progress:
        progress.phase("comparing with the server")
        return Preview(session.client, progress).steps(items)


def _output(session: Session, steps: Sequence[Step]) -> list[dict[str, Any]] | None:
    """Return the steps as data for --output and --query; else print them as text."""
    if _as_data(session):
        return [step.to_document() for step in steps]
    sys.stdout.write(_text(steps))
    return None


def _as_data(session: Session) -> bool:
    return session.options.output is not None or session.options.query is not None


def _text(steps: Sequence[Step]) -> str:
    from amphitrite.cli.resources.apply_steps import format_steps

    return format_steps(steps)


def _execute(session: Session, steps: Sequence[Step]) -> None:
    """Run the steps, and print a line about each, also about what is unchanged.

    Raises the Error of the first one that fails; its hint lists the steps before it.
    """
    done: list[str] = []
    try:
        for step in steps:
            if _execute_step(session, step):
                done.append(step.subject)
        for step in steps:
            if step.item.kind == "endpoint" and (shares := [one for one in step.fields if _is_share(one)]):
                _endpoint(session, step.item, with_traffic=True)
                if not _is_rollout(session, step.item):
                    _tell(session, replace(step, change="update"), shares)
    except KeyboardInterrupt:
        again = "run the command again: it goes on where it was"
        raise interruption.reported(f"done until then: {', '.join(done) or 'nothing'}", again) from None
    except Error as error:
        if not done:
            raise
        hint = f"fix the problem and run the command again; already done: {', '.join(done)}"
        raise Error(
            error.code,
            error.message,
            target=error.target,
            hint=f"{error.hint}; {hint}" if error.hint else hint,
            violations=error.violations,
        ) from error


def _tell(session: Session, step: Step, fields: Sequence[FieldChange]) -> None:
    from amphitrite.cli.resources.apply_steps import format_outcome

    session.note(format_outcome(step, fields))


def _execute_step(session: Session, step: Step) -> bool:
    """Run a step, without the traffic of an endpoint. Returns whether there was anything to do."""
    item = step.item
    others = [one for one in step.fields if not (item.kind == "endpoint" and _is_share(one))]
    if step.change == "update" and not others:
        return False
    if step.change == "none":
        _tell(session, step, ())
        return False
    if item.kind == "endpoint":
        _endpoint(session, item, with_traffic=step.change == "retry", create=step.change == "create")
    elif item.kind == "deployment":
        from amphitrite.cli.resources import resource_changes

        resource_changes.put_deployment(session, item.submission, create=step.change == "create", tell=False)
    else:
        _asset(session, step)
    # What a new resource has is in its document.
    _tell(session, step, () if step.change == "create" else others)
    return True


def _asset(session: Session, step: Step) -> None:
    from amphitrite.cli.assets import environment_registration, model_registration

    register = model_registration.register if step.item.kind == "model" else environment_registration.register
    version = step.name.rpartition(":")[2]
    with session.progress(step.subject) as progress, step.item.submission.with_locations():
        resource = register(session.client, {**step.item.submission.document, "version": version}, progress)
    for note in model_registration.notes(resource) if step.item.kind == "model" else ():
        session.note(note)


def _endpoint(session: Session, item: RequestedResource, *, with_traffic: bool, create: bool = False) -> None:
    from amphitrite.cli.resources import resource_changes

    document = {f: v for f, v in item.submission.document.items() if with_traffic or f not in _SHARES}
    if create:
        resource_changes.put_endpoint(session, replace(item.submission, document=document), create=True, tell=False)
    else:
        source = replace(item.submission.source, value=document)
        resource_changes.update_endpoint(session, source, document["name"], {}, (), no_wait=False, tell=False)


def _is_rollout(session: Session, item: RequestedResource) -> bool:
    """Whether a rollout moves the traffic, as the document wants; says so."""
    from amphitrite.cli.resources import rollouts

    document = item.submission.document
    return bool(document.get("rollout")) and rollouts.note_active(session, document["name"])


def _is_share(one: FieldChange) -> bool:
    """Whether a share of traffic changes. A share of 0 is the same as none."""
    return one.path.startswith(_SHARES) and bool(one.before or one.after)

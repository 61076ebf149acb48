"""``ml online-endpoint rollout``: start, status, list, pause, resume, promote and abort.

Decides the options and the output. Must not know how a rollout is judged.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal import options
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

app = group("rollout", "Traffic that moves to a deployment step by step, and back if it is worse.")

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the endpoint.", show_default=False)]
Number = Annotated[int | None, typer.Option("--number", help="Of the rollout. [default: the newest]", min=1)]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Show it until it ends. Exit code 1 if it did not succeed.")]


def register(parent: typer.Typer) -> None:
    """Add the group to that of endpoints."""
    parent.add_typer(app, name="rollout")


def _table(session: Session, value: Any, name: str, **options: Any) -> Table:
    from amphitrite.cli.resources import rollouts

    return rollouts.table(session, value, name)


@verb(app, "start", table=_table)
def start(
    session: Session,
    name: Name,
    to: Annotated[str, typer.Option("--to", help="Deployment that gets the traffic.", show_default=False)],
    steps: Annotated[
        str | None, typer.Option("--steps", help="Percent of the traffic at each step. [default: 1,10,50,100]")
    ] = None,
    bake: Annotated[str | None, typer.Option("--bake", help="Shortest time of each step. [default: 60s]")] = None,
    max_error_rate: Annotated[
        str | None, typer.Option("--max-error-rate", help="Share of requests that may fail. [default: 1%]")
    ] = None,
    max_p50: Annotated[str | None, typer.Option("--max-p50", help="Latency of half of the requests: 20ms.")] = None,
    max_p90: Annotated[str | None, typer.Option("--max-p90", help="Latency of 90 % of the requests.")] = None,
    max_p95: Annotated[str | None, typer.Option("--max-p95", help="Latency of 95 % of the requests.")] = None,
    max_p99: Annotated[str | None, typer.Option("--max-p99", help="Latency of 99 % of the requests.")] = None,
    compare_with: Annotated[
        str | None, typer.Option("--compare-with", help="Deployment that it must not be worse than.")
    ] = None,
    margin: Annotated[
        str | None, typer.Option("--margin", help="How much worse than that is allowed. [default: 20%]")
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha", help="Probability of rolling back a good deployment. [default: 0.01]", metavar="NUMBER"
        ),
    ] = None,
    shadow: Annotated[
        str | None, typer.Option("--shadow", help="Mirror traffic for this time before the first step, and judge it.")
    ] = None,
    max_answer_difference: Annotated[
        float | None,
        typer.Option(
            "--max-answer-difference", help="During --shadow: of a number in an answer, beside the other's.", min=0
        ),
    ] = None,
    max_differing_answers: Annotated[
        str | None, typer.Option("--max-differing-answers", help="Share of answers that may differ more. [default: 1%]")
    ] = None,
    min_argmax_agreement: Annotated[
        str | None,
        typer.Option("--min-argmax-agreement", help="During --shadow: share of answers with the same argmax, 99%."),
    ] = None,
    answer_share: Annotated[
        str | None, typer.Option("--answer-share", help="Share of requests that are compared. [default: 10%]")
    ] = None,
    reason: options.Reason = None,
    watch: Watch = False,
) -> dict[str, Any] | None:
    """Move the traffic to a deployment step by step, and all of it back if the deployment is worse.

    The server does it. It goes on when this command has ended.
    """
    from amphitrite.cli.resources import rollouts

    session.reason = reason or ""
    settings = {
        "steps": None if steps is None else _whole_numbers(steps),
        "bake": bake,
        "max_error_rate": max_error_rate,
        "max_p50": max_p50,
        "max_p90": max_p90,
        "max_p95": max_p95,
        "max_p99": max_p99,
        "compare_with": compare_with,
        "margin": margin,
        "alpha": alpha,
        "shadow": shadow,
        "max_answer_difference": max_answer_difference,
        "max_differing_answers": max_differing_answers,
        "min_argmax_agreement": min_argmax_agreement,
        "answer_share": answer_share,
    }
    shown = rollouts.start(session.client, name, to, settings)
    for note in rollouts.rounded_limits(settings, shown):
        session.note(note)
    if watch:
        shown = rollouts.watch(session, name, shown["number"])
    return _shown(session, shown)


@verb(app, "status", table=_table)
def status(session: Session, name: Name, number: Number = None, watch: Watch = False) -> dict[str, Any] | None:
    """Show a rollout: its step, its evidence, and how many more requests are needed."""
    from amphitrite.cli.resources import rollouts

    if watch:
        return _shown(session, rollouts.watch(session, name, number))
    return _shown(session, rollouts.one(session.client, name, number))


@verb(app, "list", table=_table)
def list_(session: Session, name: Name) -> list[dict[str, Any]]:
    """List the last rollouts of an endpoint, newest first."""
    from amphitrite.cli.resources import rollouts

    return rollouts.list_all(session.client, name)


@verb(app, "pause", table=_table)
def pause(session: Session, name: Name, reason: options.Reason = None) -> dict[str, Any] | None:
    """Stay at this step. A deployment that turns out to be worse is still rolled back."""
    return _ask(session, name, "pause", reason)


@verb(app, "resume", table=_table)
def resume(session: Session, name: Name, reason: options.Reason = None) -> dict[str, Any] | None:
    """Go on after a pause."""
    return _ask(session, name, "resume", reason)


@verb(app, "promote", table=_table)
def promote(
    session: Session,
    name: Name,
    full: Annotated[bool, typer.Option("--full", help="To the end at once, without further judgement.")] = False,
    reason: options.Reason = None,
) -> dict[str, Any] | None:
    """Go to the next step now, whatever the evidence says."""
    return _ask(session, name, "promote", reason, {"full": full})


@verb(app, "abort", table=_table)
def abort(session: Session, name: Name, reason: options.Reason = None) -> dict[str, Any] | None:
    """End the rollout, and bring back the traffic from before in one change."""
    return _ask(session, name, "abort", reason)


def _ask(
    session: Session, name: str, request: str, reason: str | None, body: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    from amphitrite.cli.resources import rollouts

    session.reason = reason or ""
    return _shown(session, rollouts.ask(session.client, name, request, body))


def _shown(session: Session, shown: dict[str, Any]) -> dict[str, Any] | None:
    """Data for --output and --query; else text."""
    if session.options.output is not None or session.options.query is not None:
        return shown
    from amphitrite.cli.resources import rollouts

    sys.stdout.write(rollouts.text(session.client, shown))
    return None


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(one) for one in text.split(",")]
    except ValueError as exc:
        raise Error("UsageError", f"--steps must be whole numbers such as 1,10,50,100; found {text!r}") from exc

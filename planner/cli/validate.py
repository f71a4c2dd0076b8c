"""``planner validate``: whether a plan is fit to be worked on, finding by finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, PlanArgument, plan_or_usual
from planner.cli.ending import Status, UsageMistake, ends

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from planner.cli.screen import Screen
    from planner.model.findings import PlanFinding

_STYLES = {"error": "bad", "warning": "warn", "advice": "strong"}


def _complete_rule(ctx: typer.Context, incomplete: str) -> list[str]:
    from planner.rules.validation import VALIDATION_RULES

    return [name for name in VALIDATION_RULES if name.startswith(incomplete)]


RULE_HELP = "May be given several times, or with commas between the rules; planner explain tells of each."

app = command_app()


@app.command(epilog="Exit status: 0 ready, 1 findings, 2 wrong usage, 4 the plan cannot be used at all.")
@ends
def validate(
    plan: PlanArgument = None,
    as_json: JsonOption = False,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="RULE",
            help=f"Leave this rule out. {RULE_HELP}",
            autocompletion=_complete_rule,
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="RULE", help="Ask only this rule.", autocompletion=_complete_rule),
    ] = None,
    qualification: Annotated[
        Path | None,
        typer.Option(
            "--qualification",
            metavar="FILE",
            help="Refuse the checks that planverify qualify found bad; FILE is what it wrote.",
        ),
    ] = None,
) -> int:
    """Validate a plan: is every todo proved, by checks that can be trusted, in an order that can be kept?

    Each finding tells where it is, why it matters and what to do. Sub-plans are validated, too.
    """
    from datetime import date

    from planner.edges.validating import validate_plan_tree

    qualified = None
    if qualification is not None:
        from planner.edges.qualification_file import read_qualification

        qualified = read_qualification(qualification)
    today = date.today().isoformat()
    ignored, selected = _rules("--ignore", ignore), _rules("--select", select)
    findings = [
        finding
        for finding in validate_plan_tree(plan_or_usual(plan), today=today, qualification=qualified)
        if finding.rule not in ignored and (not selected or finding.rule in selected)
    ]
    if as_json:
        from planner.cli.screen import write

        plain = [finding.model_dump(mode="json", exclude_none=True) for finding in findings]
        write(json.dumps({"ready": not findings, "findings": plain}, indent=2, sort_keys=True) + "\n")
    else:
        _show(findings)
    return Status.FOUND if findings else Status.OK


def _rules(option: str, given: Sequence[str] | None) -> Collection[str]:
    """The rules that an option names, which must be there."""
    from planner.rules.validation import VALIDATION_RULES

    names = [name.strip() for words in given or () for name in words.split(",") if name.strip()]
    for name in names:
        if name not in VALIDATION_RULES:
            from planner.cli.arguments import nearest

            raise UsageMistake(
                f"{option} {name}: there is no such rule; "
                + nearest(name, VALIDATION_RULES, "the rules are")
            )
    return names


def _show(findings: Sequence[PlanFinding]) -> None:
    from planner.cli.screen import Screen
    from planner.text.display import counted

    screen = Screen()
    for finding in findings:
        _finding(screen, finding)
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.severity.value] = counts.get(finding.severity.value, 0) + 1
    if findings:
        screen.line(
            ", ".join(
                f"{counts[name]} advice" if name == "advice" else counted(counts[name], name)
                for name in _STYLES
                if name in counts
            )
        )
    else:
        screen.line(screen.style("ready: nothing to find fault with", "good"))
    screen.show()


def _finding(screen: Screen, finding: PlanFinding) -> None:
    place = ":".join(str(part) for part in (finding.path, finding.line, finding.column) if part is not None)
    severity = finding.severity.value
    head = f"{screen.one_line(place)}: {screen.style(severity, _STYLES[severity])} {finding.rule}"
    screen.line(f"{head} {screen.one_line(finding.message)}")
    screen.labelled("why", finding.why, room=5)
    screen.labelled("fix", finding.fix, room=5)

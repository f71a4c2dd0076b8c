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
    from collections.abc import Sequence

    from planner.cli.screen import Screen
    from planner.model.findings import PlanFinding

_STYLES = {"error": "bad", "warning": "warn", "advice": "strong"}
_ALIKE = 3
"""Of more findings of one rule, only the first are shown, unless the rule was selected."""


def _complete_rule(ctx: typer.Context, incomplete: str) -> list[str]:
    from planner.lint import LINT_RULES

    return [name for name in LINT_RULES if name.startswith(incomplete)]


RULE_HELP = "May be given several times, or with commas between the rules; planner explain tells of each."

app = command_app()


@app.command(
    epilog="Exit status: 0 no errors (--strict: no warnings either), 1 some, 2 wrong usage, 4 an unusable "
    "plan."
)
@ends
def validate(
    plan: PlanArgument = None,
    as_json: JsonOption = False,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore", metavar="RULE", help=f"Skip this rule. {RULE_HELP}", autocompletion=_complete_rule
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="RULE", help="Only this rule.", autocompletion=_complete_rule),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings fail, too.")] = False,
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

    Each finding tells where it is and what to do. An error keeps the plan from being proved; a warning does
    not, but should be looked at; advice is a better way. Sub-plans are validated, too.
    """
    from datetime import date

    from planner.planfile.validation import validate_plan_tree

    qualified = None
    if qualification is not None:
        from planner.planfile.qualification_file import read_qualification

        qualified = read_qualification(qualification)
    ignored, selected = _rules("--ignore", ignore), _rules("--select", select)
    found = validate_plan_tree(plan_or_usual(plan), today=date.today().isoformat(), qualification=qualified)
    findings = [
        each for each in found if each.rule not in ignored and each.rule in (selected or [each.rule])
    ]
    failing = ("error", "warning") if strict else ("error",)
    ready = not any(finding.severity in failing for finding in findings)
    if as_json:
        from planner.cli.screen import write

        plain = [finding.model_dump(mode="json", exclude_none=True) for finding in findings]
        write(json.dumps({"ready": ready, "findings": plain}, indent=2, sort_keys=True) + "\n")
    else:
        _show(findings, ready=ready, most=len(findings) if selected else _ALIKE)
    return Status.OK if ready else Status.FOUND


def _rules(option: str, given: Sequence[str] | None) -> list[str]:
    """Return the rules that an option names. Raises ``UsageMistake`` for one that is not there."""
    names = [name.strip() for words in given or () for name in words.split(",") if name.strip()]
    for name in names:
        from planner.lint import LINT_RULES

        if name not in LINT_RULES:
            from planner.cli.arguments import nearest

            near = nearest(name, LINT_RULES, "the rules are")
            raise UsageMistake(f"{option} {name}: there is no such rule; {near}")
    return names


def _show(findings: Sequence[PlanFinding], *, ready: bool, most: int) -> None:
    from planner.cli.screen import Screen
    from planner.text.display import counted

    screen = Screen()
    shown: dict[str, int] = {}
    for finding in findings:
        shown[finding.rule] = shown.get(finding.rule, 0) + 1
        if shown[finding.rule] <= most:
            _show_finding(screen, finding)
    for rule, count in shown.items():
        if count > most:
            screen.line(f"and {count - most} more of {rule}; all: --select {rule}")
    counts = {name: sum(each.severity == name for each in findings) for name in _STYLES}
    said = ", ".join(
        f"{count} advice" if name == "advice" else counted(count, name)
        for name, count in counts.items()
        if count
    )
    word = screen.style("ready", "good") if ready else screen.style("not ready", "bad")
    screen.line(f"{word}: {said or 'no findings'}")
    screen.show()


def _show_finding(screen: Screen, finding: PlanFinding) -> None:
    place = ":".join(str(part) for part in (finding.path, finding.line, finding.column) if part is not None)
    severity = finding.severity.value
    head = f"{screen.one_line(place)}: {screen.style(severity, _STYLES[severity])} {finding.rule}"
    screen.line(f"{head} {screen.one_line(finding.message)}")
    screen.labelled("fix", finding.fix, room=5)

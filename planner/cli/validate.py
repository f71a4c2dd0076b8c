"""``planner validate``: whether a plan is fit to be worked on, finding by finding."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, PlanArgument, nearest, plan_or_usual
from planner.cli.ending import Status, UsageMistake, ends
from planner.cli.screen import Screen, print_json
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.findings import PlanFinding

_STYLES = {"error": "bad", "warning": "warn", "advice": "strong"}
_ALIKE = 3
"""Of more findings of one rule, only the first are shown, unless the rule was selected."""

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
        list[str] | None, typer.Option("--ignore", metavar="RULE", help=f"Skip this rule. {RULE_HELP}")
    ] = None,
    select: Annotated[
        list[str] | None, typer.Option("--select", metavar="RULE", help="Only this rule.")
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

    from planner.planfile.record_files import read_qualification
    from planner.planfile.validation import validate_plan_tree

    qualified = None if qualification is None else read_qualification(qualification)
    ignored, selected = _rules("--ignore", ignore), _rules("--select", select)
    found = validate_plan_tree(plan_or_usual(plan), today=date.today().isoformat(), qualification=qualified)
    findings = [
        each for each in found if each.rule not in ignored and each.rule in (selected or [each.rule])
    ]
    failing = ("error", "warning") if strict else ("error",)
    ready = not any(finding.severity in failing for finding in findings)
    if as_json:
        told = [finding.model_dump(mode="json", exclude_none=True) for finding in findings]
        print_json({"ready": ready, "findings": told}, sort_keys=True)
    else:
        _show(findings, ready=ready, most=len(findings) if selected else _ALIKE)
    return Status.OK if ready else Status.FOUND


def _rules(option: str, given: Sequence[str] | None) -> list[str]:
    """Return the rules that an option names. Raises ``UsageMistake`` for one that is not there."""
    names = [name.strip() for words in given or () for name in words.split(",") if name.strip()]
    if names:
        from planner.lint import LINT_RULES

        for name in names:
            if name not in LINT_RULES:
                near = nearest(name, LINT_RULES, "the rules are")
                raise UsageMistake(f"{option} {name}: there is no such rule; {near}")
    return names


def _show(findings: Sequence[PlanFinding], *, ready: bool, most: int) -> None:
    screen, shown = Screen(), Counter[str]()
    for each in findings:
        shown[each.rule] += 1
        if shown[each.rule] <= most:
            place = ":".join(str(part) for part in (each.path, each.line, each.column) if part is not None)
            severity = screen.style(each.severity.value, _STYLES[each.severity])
            screen.line(f"{screen.one_line(place)}: {severity} {each.rule} {screen.one_line(each.message)}")
            screen.labelled("fix", each.fix, room=5)
    for rule, count in shown.items():
        if count > most:
            screen.line(f"and {count - most} more of {rule}; all: --select {rule}")
    counts = Counter(each.severity.value for each in findings)
    said = ", ".join(
        f"{counts[name]} advice" if name == "advice" else counted(counts[name], name)
        for name in _STYLES
        if counts[name]
    )
    word = screen.style("ready", "good") if ready else screen.style("not ready", "bad")
    screen.line(f"{word}: {said or 'no findings'}")
    screen.show()

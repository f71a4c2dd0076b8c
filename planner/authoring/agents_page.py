"""The section of ``AGENTS.md`` that says how work in a repository is verified."""

from __future__ import annotations

BEGIN = "<!-- planverify: begin -->"
END = "<!-- planverify: end -->"

SECTION = f"""\
{BEGIN}
## Work and its verification

The todos stand in `{{plan}}`. A todo is done when its criteria pass, and not before.

1. See what to do: `planverify next`; the instructions for one todo: `planverify next --brief TODO`.
2. Work only on that todo, and only in its `allowed_files`.
3. Verify it: `planverify verify {{plan}}::TODO`; at the end everything: `planverify verify`.
4. Run `planverify next` again and do what it says, until it says that the plan is completed.

Never edit for a green: tests that exist, `conftest.py`, the settings of pytest, `{{plan}}`, or anything
in `.planverify/`. If a criterion is wrong, say so and ask: `planverify next` names who answers.
{END}
"""


def with_section(page: str, plan: str) -> str:
    """Return a page with the section in it: in place of the one between its markers, else at its end.

    Raises ``ValueError`` where one of the markers stands without the other.
    """
    section = SECTION.format(plan=plan)
    before, begun, rest = page.partition(BEGIN)
    if not begun:
        if END in page:
            raise ValueError(f"there is {END} without {BEGIN} before it")
        gap = "" if not page else "\n" if page.endswith("\n") else "\n\n"
        return f"{page}{gap}{section}"
    _, ended, after = rest.partition(END)
    if not ended:
        raise ValueError(f"there is {BEGIN} without {END} after it")
    return f"{before}{section.rstrip()}{after}"

"""Which store and which plan ``planner history`` is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.arguments import plan_or_usual, usual_plan
from planner.errors import NoStoreError, PlannerError

if TYPE_CHECKING:
    from planner.edges.store import Store
    from planner.planfile.loader import LoadedPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked about."""

    store: str
    """A path or a URL."""
    named: bool
    """Whether the user has named the store: then it has to be there."""
    plan_id: str | None = None
    shown: str = ""
    """What the screen calls the plan."""

    def open(self) -> Store | None:
        """The store; ``None`` where nobody has named it and there is none yet."""
        from planner.edges.store import Store

        try:
            return Store.open(self.store, create=False)
        except NoStoreError:
            if self.named:
                raise
            return None


def about_plan(plan: Path | None, store: str | None) -> Asked:
    """What is asked about a plan, which is the path of its file or its id."""
    if plan is not None and not plan.exists() and plan.suffix not in (".yaml", ".yml", ".json"):
        elsewhere = about_repository(store)
        return Asked(store=elsewhere.store, named=elsewhere.named, plan_id=str(plan), shown=str(plan))
    path = plan_or_usual(plan)
    loaded = _loaded(path)
    plan_id = loaded.plan.todo_list_id
    place = store or _below(loaded.root)
    return Asked(store=place, named=store is not None, plan_id=plan_id, shown=f"{plan_id} ({path})")


def about_repository(store: str | None) -> Asked:
    """What is asked about all plans: the store of the usual plan's root, else that of this folder."""
    if store is not None:
        return Asked(store=store, named=True)
    loaded = usual()
    return Asked(store=_below(loaded.root if loaded is not None else Path()), named=False)


def usual() -> LoadedPlan | None:
    """The plan that lies here, if one does and it can be read."""
    path = usual_plan()
    try:
        return None if path is None else _loaded(path)
    except (PlannerError, OSError):
        return None


def fingerprint_here() -> str | None:
    """The fingerprint of the repository, as far as a plan lies here that tells."""
    loaded = usual()
    if loaded is None:
        return None
    from planner.edges.fingerprint import repository_fingerprint

    return repository_fingerprint(loaded.root, loaded.plan)


def _loaded(path: Path) -> LoadedPlan:
    from planner.planfile.loader import load_plan

    return load_plan(path)


def _below(root: Path) -> str:
    from planner.edges.store import USUAL
    from planner.planfile.loader import shown_path

    return shown_path(root.absolute() / USUAL)

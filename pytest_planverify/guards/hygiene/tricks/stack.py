"""Code that looks at who called it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.signs import Find
from pytest_planverify.guards.hygiene.tricks.frame_values import looks_at_frames, values_taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Module, Site
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_CALLS = frozenset(
    [
        "sys._getframe",
        "sys._getframemodulename",
        "sys._current_frames",
        "sys._current_exceptions",
        "inspect.stack",
        "inspect.currentframe",
        "inspect.getouterframes",
        "inspect.getinnerframes",
        "inspect.trace",
        "inspect.getframeinfo",
        "traceback.extract_stack",
        "traceback.walk_stack",
        "traceback.format_stack",
        "traceback.StackSummary.extract",
        "sys.call_tracing",
        "gc.get_referrers",
        "gc.get_objects",
        "logging.getLogger.findCaller",
        "traceback.print_stack",
    ]
)
_SPIES = frozenset(
    [
        "sys.settrace",
        "sys.setprofile",
        "threading.settrace",
        "threading.setprofile",
        "sys.monitoring.use_tool_id",
        "sys.monitoring.register_callback",
        "threading.settrace_all_threads",
    ]
)
_FRAME_PARTS = frozenset({"f_back", "tb_frame", "gi_frame", "cr_frame", "co_consts", "findCaller"})
_TELLING = frozenset(
    {"co_filename", "co_name", "co_qualname", "f_locals", "f_lineno", "filename", "function"}
)


def stack(module: Module, around: Surroundings) -> Iterator[Find]:
    """Looks at frames; where the answer decides something it is more than a look."""
    seen: set[str] = set()
    yield from _takers(module, seen)
    tellers = _tellers(module)
    for site in module.sites:
        node = site.node
        if _asks_a_teller(node, tellers) or _reads_a_warning(node):
            said = f"{site.place or 'The module'} decides by its caller"
            yield _find("reads-call-stack", said, "teller", node, site, module)
            continue
        meaning = ""
        if isinstance(node, ast.Call):
            meaning = dotted(node.func, module.aliases)
        if meaning in _SPIES:
            yield _find("reads-call-stack", f"{meaning} watches every call", meaning, node, site, module)
            continue
        is_part = isinstance(node, ast.Attribute) and node.attr in _FRAME_PARTS
        if meaning not in _CALLS and not is_part:
            continue
        key = _key(site)
        if key in seen:
            continue
        seen.add(key)
        subject = meaning or getattr(node, "attr", "frame")
        if _decides(site, module):
            yield _find(
                "reads-call-stack",
                f"{site.place or 'The module'} decides by its caller",
                subject,
                node,
                site,
                module,
            )
        else:
            yield _find(
                "looks-at-call-stack", f"{subject} looks at the call stack", subject, node, site, module
            )


def _takers(module: Module, seen: set[str]) -> Iterator[Find]:
    """Functions that take values out of the frames of their callers; ``seen`` gets their keys."""
    asked: set[str] = set()
    for site in module.sites:
        key = _key(site)
        if key in asked or not looks_at_frames(site.node, module):
            continue
        asked.add(key)
        node = values_taken(site.function or module.tree, module)
        if node is not None:
            seen.add(key)
            said = f"{site.place or 'The module'} takes values from its caller"
            yield _find("reads-call-stack", said, "values", node, site, module)


def _key(site: Site) -> str:
    return f"{site.place}:{id(site.function)}"


def _tellers(module: Module) -> set[str]:
    """Functions that give back what frames tell: the name or the file of a caller."""
    found: set[str] = set()
    for name, node in module.functions.items():
        looks = any(
            isinstance(each, ast.Attribute) and each.attr in _FRAME_PARTS for each in ast.walk(node)
        )
        if (looks or any(dotted(each, module.aliases) in _CALLS for each in ast.walk(node))) and any(
            isinstance(each, ast.Return)
            and each.value is not None
            and any(isinstance(one, ast.Attribute) and one.attr in _TELLING for one in ast.walk(each.value))
            for each in ast.walk(node)
        ):
            found.add(name)
    return found


def _asks_a_teller(node: ast.AST, tellers: set[str]) -> bool:
    """Whether something is decided by what such a function gives."""
    if not tellers or not isinstance(node, ast.If | ast.IfExp | ast.Compare):
        return False
    looked_at = node if isinstance(node, ast.Compare) else node.test
    return any(
        isinstance(each, ast.Call) and getattr(each.func, "id", "") in tellers
        for each in ast.walk(looked_at)
    )


def _reads_a_warning(node: ast.AST) -> bool:
    """A warning that is made, caught, and asked where it comes from."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    said = {getattr(each, "attr", getattr(each, "arg", "")) for each in ast.walk(node)}
    return {"catch_warnings", "warn", "stacklevel", "filename"} <= said


def _decides(site: Site, module: Module) -> bool:
    """Whether names of files or functions of the stack are compared with something."""
    scope: ast.AST = site.function or module.tree
    nodes = list(ast.walk(scope))
    tells = any(isinstance(each, ast.Attribute) and each.attr in _TELLING for each in nodes) or any(
        isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and each.value in ("__name__", "__file__")
        for each in nodes
    )
    compares = any(
        isinstance(each, ast.Compare | ast.Match) and not _is_about_nothing(each) for each in nodes
    ) or any(
        isinstance(each, ast.Attribute)
        and each.attr in ("startswith", "endswith", "search", "match", "find")
        for each in nodes
    )
    names_tests = any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) and "test" in each.value.lower()
        for each in nodes
        if not _is_docstring(each, scope)
    )
    return (tells and compares) or names_tests


def _is_about_nothing(node: ast.AST) -> bool:
    """``frame is not None``: whether there is one at all."""
    return isinstance(node, ast.Compare) and all(
        isinstance(each, ast.Constant) and each.value is None for each in node.comparators
    )


def _is_docstring(node: ast.AST, scope: ast.AST) -> bool:
    body: list[ast.stmt] = getattr(scope, "body", [])
    return bool(body) and isinstance(body[0], ast.Expr) and body[0].value is node


def _find(sign: str, said: str, subject: str, node: ast.AST, site: Site, module: Module) -> Find:
    return Find(
        sign=sign,
        message=said,
        path=module.path,
        line=getattr(node, "lineno", None),
        subject="stack",
        place=site.place,
        after=module.line(node),
    )

"""Faults of the text of a file: it is no Python any more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from faults.fault import Fault, Function, Injector, Kind, Module, Reach, body_of, edited, inserted
from planner.model.taxonomy import Category, Owner


def _unclosed(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and module.inside(node) and node.lineno == node.end_lineno:
            end = module.span(node)[1]
            if isinstance(module.parents[node], ast.Expr | ast.Return | ast.Assign):
                yield edited(module, end - 1, end, "", node=node)


def _missing_colon(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.If | ast.While | ast.For) and module.inside(node):
            line = module.lines[node.lineno - 1].rstrip("\n")
            if line.endswith(":") and line.count(":") == 1:
                at = module.line_start(node.lineno) + len(line) - 1
                yield edited(module, at, at + 1, "", node=node)


def _indent(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        for statement in body_of(function)[1:]:
            if isinstance(statement, ast.Assign | ast.Expr | ast.Return):
                at = module.line_start(statement.lineno)
                yield edited(module, at, at, "   ", node=statement)


def _tabs(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        for statement in body_of(function)[1:]:
            if statement.col_offset == 8 and isinstance(statement, ast.Assign | ast.Expr | ast.Return):
                at = module.line_start(statement.lineno)
                yield edited(module, at, at + 8, "\t", node=statement)


def _conflict(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if body and isinstance(body[-1], ast.Return | ast.Assign | ast.Expr):
            start, end = module.line_start(body[-1].lineno), module.span(body[-1])[1]
            own = module.text[start:end]
            new = f"<<<<<<< HEAD\n{own}\n=======\n{own}  # as before\n>>>>>>> feature"
            yield edited(module, start, end, new, node=body[-1])


def _old_print(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        names = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
        if names and body_of(function):
            yield inserted(module, body_of(function)[0], f'print "{function.name}", {names[0]}')


def _quote(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and module.inside(node):
            text = module.source(node)
            if node.lineno == node.end_lineno and text[-1:] in "'\"" and text[-3:] != text[-1:] * 3:
                end = module.span(node)[1]
                yield edited(module, end - 1, end, "", node=node)


def _encoding(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if body:
            fault = inserted(module, body[0], 'unit = "Gr\udcf6\udcdfe"')
            text = str(fault.changes[module.path])
            yield Fault(
                changes={module.path: text.encode("utf-8", "surrogateescape")},
                path=module.path,
                first_line=fault.first_line,
                last_line=fault.last_line,
                function=fault.function,
                after='unit = "Gr??e", in Latin-1',
            )


def _keyword_as_name(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        if isinstance(function, Function) and body_of(function):
            yield inserted(module, body_of(function)[0], "class = None")


def _row(
    name: str, sentence: str, inject: Injector, *, exact: bool = True, owner: Owner = Owner.PRODUCT
) -> Kind:
    return Kind(
        id=name,
        sentence=sentence,
        inject=inject,
        category=Category.COMPILATION_ERROR,
        owner=owner,
        exact=exact,
        raises=("SyntaxError",),
        reach=Reach.IMPORT if owner is Owner.PRODUCT else Reach.OWN,
    )


KINDS = (
    _row("unclosed-bracket", "A bracket is not closed.", _unclosed, exact=False),
    _row("missing-colon", "A colon is missing.", _missing_colon),
    _row("bad-indent", "A line is indented too far.", _indent),
    _row("tab-indent", "A line is indented by a tab among spaces.", _tabs),
    _row("merge-markers", "Markers of a merge conflict stand in the file.", _conflict, exact=False),
    _row("old-print", "Print is a statement, as it once was.", _old_print),
    _row("open-quote", "A text is not ended.", _quote),
    _row("wrong-encoding", "A file is not UTF-8.", _encoding, exact=False),
    _row("keyword-as-name", "A keyword is used as a name.", _keyword_as_name),
)

TEST_KINDS = (
    _row(
        "test-unclosed-bracket",
        "A bracket of a test is not closed.",
        _unclosed,
        exact=False,
        owner=Owner.TEST,
    ),
    _row(
        "test-merge-markers",
        "Markers of a merge stand in a test.",
        _conflict,
        exact=False,
        owner=Owner.TEST,
    ),
    _row("test-bad-indent", "A line of a test is indented too far.", _indent, owner=Owner.TEST),
)
"""The same in the files of the tests."""

"""Faults in the relations between modules: interfaces, imports and syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from faults.fault import (
    Fault,
    Function,
    Injector,
    Judged,
    Kind,
    Module,
    Reach,
    body_of,
    edited,
    inserted,
    misspelt,
    plain_name,
    replaced,
)
from planner.model.taxonomy import Category, Owner
from tools.corpus.case import Reading

_ORDER = Reading(
    category=Category.SPEC_MISMATCH,
    owner=Owner.PRODUCT,
    why="The order of its parameters is part of a function's promised signature.",
)


def _function_renamed(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if plain_name(node):
            yield _renamed(module, node)


def _method_renamed(module: Module) -> Iterator[Fault]:
    for node in _methods(module):
        yield _renamed(module, node)


def _function_removed(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if plain_name(node) and isinstance(node, Function):
            yield _removed(module, node)


def _method_removed(module: Module) -> Iterator[Fault]:
    for node in _methods(module):
        if isinstance(module.parents[node], ast.ClassDef) and len(module.parents[node].body) > 1:
            yield _removed(module, node)


def _class_into_function(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if plain_name(node) and isinstance(node, ast.ClassDef):
            start, end = _whole(module, node)
            hidden = module.text[start:end].replace(f"class {node.name}", f"class _{node.name}", 1)
            made = f"\n\n\ndef {node.name}(*args, **kwargs):\n    return _{node.name}(*args, **kwargs)"
            fault = edited(
                module, start, end, hidden + made, node=node, name=node.name, runs=_body_line(node)
            )
            yield _placed(fault, module, node.lineno, node.name)


def _parameter_renamed(module: Module) -> Iterator[Fault]:
    for function, each in _parameters(module):
        new = f"{each.arg}_value"
        uses = [
            node
            for node in ast.walk(function)
            if (isinstance(node, ast.Name) and node.id == each.arg) or node is each
        ]
        if "lambda" in module.source(function) or any(
            each.arg in _own(inner) for inner in _nested(function)
        ):
            continue
        text = module.text
        for node in sorted(uses, key=lambda use: module.span(use)[0], reverse=True):
            start = module.span(node)[0]
            text = text[:start] + new + text[start + len(each.arg) :]
        yield _signature(module, function, text, each.arg)


def _parameter_added(module: Module) -> Iterator[Fault]:
    for function, each in _parameters(module):
        if each is function.args.args[-1] and not function.args.defaults and not function.args.vararg:
            end = module.span(each)[1]
            yield _signature(module, function, f"{module.text[:end]}, mode{module.text[end:]}", "mode")


def _parameter_removed(module: Module) -> Iterator[Fault]:
    for function, each in _parameters(module):
        arguments = function.args
        at = arguments.args.index(each)
        if at == 0 or at >= len(arguments.args) - len(arguments.defaults):
            continue
        start, end = module.span(arguments.args[at - 1])[1], module.span(each)[1]
        first = body_of(function)[0]
        body = module.line_start(first.lineno)
        if first.lineno <= function.lineno or first.lineno <= each.lineno:
            continue
        kept = f"{' ' * first.col_offset}{each.arg} = None\n"
        text = module.text[:start] + module.text[end:body] + kept + module.text[body:]
        yield _signature(module, function, text, each.arg)


def _keyword_only(module: Module) -> Iterator[Fault]:
    for function, each in _parameters(module):
        if function.args.vararg or function.args.kwonlyargs:
            continue
        start = module.span(each)[0]
        yield _signature(module, function, f"{module.text[:start]}*, {module.text[start:]}", each.arg)


def _reordered(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        plain = [each for each in function.args.args if each.arg not in ("self", "cls")]
        plain = plain[: len(plain) - len(function.args.defaults)]
        if plain_name(function) and body_of(function) and len(plain) > 1:
            (a, b), (c, d) = module.span(plain[0]), module.span(plain[1])
            text = module.text
            text = text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
            yield _signature(module, function, text, plain[0].arg)


def _not_exported(module: Module) -> Iterator[Fault]:
    """Yield exports that a package's ``__init__`` drops; only it exports names of other modules."""
    if not module.path.endswith("__init__.py"):
        return
    for node in module.tree.body:
        if not (isinstance(node, ast.ImportFrom) and node.level and node.names[0].name != "*"):
            continue
        for each in node.names:
            kept = [
                f"{other.name} as {other.asname}" if other.asname else other.name
                for other in node.names
                if other is not each
            ]
            name = each.asname or each.name
            dots = "." * node.level
            new = f"from {dots}{node.module or ''} import {', '.join(kept)}" if kept else "pass"
            yield replaced(module, node, new, name=name)


def _parameters(module: Module) -> Iterator[tuple[Function, ast.arg]]:
    """Yield parameters of public functions and of constructors, without ``self``."""
    for function in module.functions():
        if not (plain_name(function) or function.name == "__init__") or not body_of(function):
            continue
        for each in function.args.args:
            if each.arg not in ("self", "cls"):
                yield function, each


def _nested(function: Function) -> list[Function]:
    return [each for each in ast.walk(function) if isinstance(each, Function) and each is not function]


def _own(function: Function) -> set[str]:
    arguments = function.args
    return {each.arg for each in (*arguments.args, *arguments.kwonlyargs, *arguments.posonlyargs)}


def _methods(module: Module) -> Iterator[Function]:
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if plain_name(inner) and isinstance(inner, Function) and not inner.decorator_list:
                    yield inner


def _renamed(module: Module, node: ast.AST) -> Fault:
    assert isinstance(node, Function | ast.ClassDef)
    start = module.text.index(node.name, module.span(node)[0])
    new = f"{node.name}_impl" if isinstance(node, Function) else f"{node.name}Base"
    fault = edited(
        module, start, start + len(node.name), new, node=node, name=node.name, runs=_body_line(node)
    )
    return _placed(fault, module, node.lineno, node.name)


def _removed(module: Module, node: ast.AST) -> Fault:
    start, end = _whole(module, node)
    assert isinstance(node, Function)
    fault = edited(module, start, end, "pass", node=node, name=node.name, runs=_body_line(node))
    return _placed(fault, module, min(_first(node), node.lineno), node.name)


def _signature(module: Module, function: Function, text: str, name: str) -> Fault:
    line = function.lineno
    after = text.split("\n")[line - 1]
    return Fault(
        changes={module.path: text},
        path=module.path,
        first_line=line,
        last_line=body_of(function)[0].lineno,
        function=module.qualified(function),
        runs=_body_line(function),
        before=module.lines[line - 1].rstrip("\n"),
        after=after,
        name=name,
    )


def _placed(fault: Fault, module: Module, line: int, name: str) -> Fault:
    after = str(fault.changes[module.path]).split("\n", line)
    return Fault(
        changes=fault.changes,
        path=fault.path,
        first_line=line,
        last_line=line,
        function=fault.function,
        runs=fault.runs,
        before=module.lines[line - 1].rstrip("\n"),
        after=after[line - 1],
        name=name,
    )


def _body_line(node: ast.AST) -> int:
    """Return the line that is executed when the function, or any method of the class, is called."""
    if isinstance(node, Function):
        return body_of(node)[0].lineno if body_of(node) else node.lineno
    assert isinstance(node, ast.ClassDef)
    inner = [each for each in node.body if isinstance(each, Function) and body_of(each)]
    return body_of(inner[0])[0].lineno if inner else node.lineno


def _first(node: Function) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _whole(module: Module, node: ast.AST) -> tuple[int, int]:
    """Return the span of a definition with its decorators."""
    assert isinstance(node, Function | ast.ClassDef)
    start = module.span(node)[0]
    if node.decorator_list:
        start = module.line_start(min(each.lineno for each in node.decorator_list)) + node.col_offset
    return start, module.span(node)[1]


def _interface_row(name: str, sentence: str, inject: Injector, **more: Any) -> Kind:
    return Kind(
        id=name,
        sentence=sentence,
        inject=inject,
        judged=Judged.INTERFACE,
        category=Category.SPEC_MISMATCH,
        **more,
    )


INTERFACE_KINDS = (
    _interface_row("function-renamed", "A public function or class has another name.", _function_renamed),
    _interface_row("method-renamed", "A method has another name where it is defined.", _method_renamed),
    _interface_row("function-removed", "A public function is gone.", _function_removed),
    _interface_row("method-removed", "A method is gone.", _method_removed),
    _interface_row("class-into-function", "A class is hidden behind a function.", _class_into_function),
    _interface_row("parameter-renamed", "A parameter has another name.", _parameter_renamed),
    _interface_row("parameter-added", "A function needs one argument more.", _parameter_added),
    _interface_row("parameter-removed", "A function takes one argument less.", _parameter_removed),
    _interface_row("keyword-only", "A parameter must be given by its name.", _keyword_only),
    Kind(
        id="parameters-reordered",
        sentence="Two parameters change places.",
        inject=_reordered,
        judged=Judged.BEHAVIOUR,
        also=(_ORDER,),
    ),
    _interface_row(
        "not-exported", "A package does not offer a name any more.", _not_exported, reach=Reach.IMPORT
    ),
)


_INVENTED = ("quickdigest", "textloom", "nimblecache.core", "fastcollate")
_REAL = ("orjson", "structlog", "redis.client", "tenacity", "msgpack")

_CONTRACT = Reading(
    category=Category.SPEC_MISMATCH,
    owner=Owner.PRODUCT,
    why="A module of the project that others import is part of what they were promised.",
)
_OWN_IMPORT = Reading(
    category=Category.IMPORT_ERROR,
    owner=Owner.PRODUCT,
    why="It is an import of the product itself that fails.",
)


def _invented(module: Module) -> Iterator[Fault]:
    yield from _at_top(module, _INVENTED)


def _absent(module: Module) -> Iterator[Fault]:
    yield from _at_top(module, _REAL)


def _absent_in_function(module: Module) -> Iterator[Fault]:
    for number, function in enumerate(module.functions()):
        body = body_of(function)
        if body:
            name = (*_REAL, *_INVENTED)[number % (len(_REAL) + len(_INVENTED))]
            yield inserted(module, body[0], f"import {name}", name=name)


def _misspelt_import(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if isinstance(node, ast.Import) and len(node.names) == 1 and len(node.names[0].name) > 3:
            name = node.names[0].name
            new = misspelt(name)
            if "." not in name:
                yield replaced(module, node, f"import {new} as {node.names[0].asname or name}", name=new)
        elif (
            isinstance(node, ast.ImportFrom) and not node.level and node.module not in (None, "__future__")
        ):
            assert node.module is not None
            new = misspelt(node.module.split(".")[0])
            rest = node.module.partition(".")[2]
            whole = f"{new}.{rest}" if rest else new
            yield replaced(module, node, f"from {whole} import {_names(node)}", name=new)


def _absent_first_party(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            new = f"{node.module}_support"
            yield replaced(module, node, f"from .{new} import {_names(node)}", name=new)
    at = _first_import(module)
    if at is not None and module.package:
        yield inserted(module, at, f"from {module.package}.compat_layer import adapt", name="compat_layer")


def _deleted(module: Module) -> Iterator[Fault]:
    if not module.path.endswith("__init__.py"):
        yield Fault(
            changes={module.path: None},
            path=module.path,
            before=module.path,
            name=module.path.rsplit("/", 1)[-1].removesuffix(".py"),
        )


def _emptied(module: Module) -> Iterator[Fault]:
    names = [each.name for each in module.tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    if names:
        yield Fault(changes={module.path: ""}, path=module.path, before=module.lines[0].rstrip("\n"))


def _circular(module: Module) -> Iterator[Fault]:
    """Yield circular imports: package and module import each other before the names exist."""
    at = _first_import(module)
    if at is None or not module.package or module.path.endswith("__init__.py"):
        return
    names = [each.name for each in module.tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    for name in names[:2]:
        if not name.startswith("_"):
            yield inserted(module, at, f"from {module.package} import {name} as _{name}", name=name)


def _names(node: ast.ImportFrom) -> str:
    return ", ".join(f"{each.name} as {each.asname}" if each.asname else each.name for each in node.names)


def _at_top(module: Module, names: tuple[str, ...]) -> Iterator[Fault]:
    at = _first_import(module)
    if at is not None:
        for name in names:
            yield inserted(module, at, f"import {name}", name=name)


def _first_import(module: Module) -> ast.stmt | None:
    for node in module.tree.body:
        if isinstance(node, ast.Import) or (
            isinstance(node, ast.ImportFrom) and node.module != "__future__"
        ):
            return node
    return None


def _import_row(name: str, sentence: str, inject: Injector, category: Category, **more: Any) -> Kind:
    given = {"reach": Reach.IMPORT, "exact": True, "raises": ("ImportError",), **more}
    return Kind(id=name, sentence=sentence, inject=inject, category=category, **given)


_IMPORT = Category.IMPORT_ERROR
_ARTIFACT = Category.ARTIFACT_MISSING
IMPORT_KINDS = (
    _import_row(
        "absent-invented-module", "A module imports a library that nobody ever wrote.", _invented, _IMPORT
    ),
    _import_row("absent-library", "A module imports a library that is not installed.", _absent, _IMPORT),
    _import_row(
        "absent-library-in-function",
        "A function imports a library that is not installed.",
        _absent_in_function,
        _IMPORT,
        reach=Reach.LINE,
    ),
    _import_row(
        "misspelt-import", "The name of an imported library is misspelt.", _misspelt_import, _IMPORT
    ),
    _import_row(
        "absent-own-module",
        "A module imports another of the project that is not there.",
        _absent_first_party,
        _ARTIFACT,
        also=(_CONTRACT,),
    ),
    _import_row(
        "deleted-module", "A module was deleted.", _deleted, _ARTIFACT, also=(_CONTRACT,), exact=False
    ),
    _import_row(
        "emptied-module",
        "A module holds nothing any more.",
        _emptied,
        Category.SPEC_MISMATCH,
        exact=False,
        judged=Judged.INTERFACE,
        raises=(),
    ),
    _import_row(
        "circular-import",
        "Two modules import each other while they are made.",
        _circular,
        Category.TEST_REGRESSION,
        also=(_OWN_IMPORT,),
    ),
)


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


def _syntax_row(
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


SYNTAX_KINDS = (
    _syntax_row("unclosed-bracket", "A bracket is not closed.", _unclosed, exact=False),
    _syntax_row("missing-colon", "A colon is missing.", _missing_colon),
    _syntax_row("bad-indent", "A line is indented too far.", _indent),
    _syntax_row("tab-indent", "A line is indented by a tab among spaces.", _tabs),
    _syntax_row("merge-markers", "Markers of a merge conflict stand in the file.", _conflict, exact=False),
    _syntax_row("old-print", "Print is a statement, as it once was.", _old_print),
    _syntax_row("open-quote", "A text is not ended.", _quote),
    _syntax_row("wrong-encoding", "A file is not UTF-8.", _encoding, exact=False),
    _syntax_row("keyword-as-name", "A keyword is used as a name.", _keyword_as_name),
)

TEST_SYNTAX_KINDS = (
    _syntax_row(
        "test-unclosed-bracket",
        "A bracket of a test is not closed.",
        _unclosed,
        exact=False,
        owner=Owner.TEST,
    ),
    _syntax_row(
        "test-merge-markers",
        "Markers of a merge stand in a test.",
        _conflict,
        exact=False,
        owner=Owner.TEST,
    ),
    _syntax_row("test-bad-indent", "A line of a test is indented too far.", _indent, owner=Owner.TEST),
)
"""The same kinds in test files."""

"""Faults in the tests themselves, and in the data files that they read."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from faults.fault import (
    Fault,
    Function,
    Injector,
    Kind,
    Module,
    Reach,
    body_of,
    edited,
    inserted,
    misspelt,
    replaced,
)
from planner.model.taxonomy import Category, Owner
from tools.corpus.case import Reading

_PROMISE = Reading(
    category=Category.SPEC_MISMATCH,
    owner=Owner.TEST,
    why="The test asks the product for what it never promised.",
)
_IMPORT = Reading(
    category=Category.IMPORT_ERROR,
    owner=Owner.TEST,
    why="It is an import of the tests that fails.",
)
_EITHER = Reading(
    category=Category.TEST_REGRESSION,
    owner=Owner.PRODUCT,
    why="Product and test were both edited, and only their disagreement is to be seen.",
)


def _name(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        yield from _misspelt_names(module, function, (function.name,))


def _broken_helper(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        helps = not function.name.startswith(("test", "setUp", "__")) and not _is_fixture(function)
        if helps and module.inside(function) is None:
            yield from _misspelt_names(module, function, ())


def _misspelt_names(module: Module, function: Function, tests: tuple[str, ...]) -> Iterator[Fault]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and len(node.id) > 3:
            chain = [node, *module.above(node)]
            new = misspelt(node.id)
            known = new in module.text or hasattr(builtins, new)
            if chain[chain.index(function) - 1] in function.body and not known:
                yield replace(replaced(module, node, new, name=new), tests=tests)


def _expected(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        for node in ast.walk(function):
            for value in _expectations(node):
                if isinstance(value.value, str) and value.lineno == value.end_lineno:
                    text = module.source(value)
                    if text[0] in "'\"" and text[1:2] != text[0] and "\\" not in text:
                        new = f"{text[:-1]}s{text[-1]}"
                        yield replace(replaced(module, value, new), tests=(function.name,))
                elif type(value.value) is int:
                    yield replace(replaced(module, value, str(value.value + 1)), tests=(function.name,))


def _expectations(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        if isinstance(node.test.ops[0], ast.Eq) and isinstance(node.test.comparators[0], ast.Constant):
            yield node.test.comparators[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) >= 2:
        if node.func.attr in ("assertEqual", "assertEquals"):
            yield from (each for each in node.args[:2] if isinstance(each, ast.Constant))
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id.startswith("assert_")
    ):
        yield from (each for each in node.args if isinstance(each, ast.Constant))


def _inverted(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                new = f"not ({module.source(node.test)})"
                yield replace(replaced(module, node.test, new), tests=(function.name,))


def _wrong_exception(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        for node in ast.walk(function):
            if not (
                isinstance(node, ast.Call) and node.args and _called(node) in ("raises", "assertRaises")
            ):
                continue
            if module.source(node.args[0]) not in ("OSError", "Exception"):
                yield replace(replaced(module, node.args[0], "OSError"), tests=(function.name,))


def _fixture_misspelt(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        for each in function.args.args if not function.args.defaults else ():
            if each.arg != "self" and not function.decorator_list and len(each.arg) > 2:
                new = misspelt(each.arg)
                start = module.span(each)[0]
                fault = edited(module, start, start + len(each.arg), new, node=function, name=new)
                yield replace(fault, tests=(function.name,))


def _parameter_misspelt(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        for each in function.decorator_list:
            if isinstance(each, ast.Call) and _called(each) == "parametrize" and each.args:
                names = each.args[0]
                if (
                    isinstance(names, ast.Constant)
                    and isinstance(names.value, str)
                    and len(names.value) > 2
                ):
                    new = repr(
                        misspelt(names.value.split(",")[0]) + names.value[len(names.value.split(",")[0]) :]
                    )
                    fault = replaced(module, names, new, runs=function.lineno)
                    yield replace(fault, tests=(function.name,), function=module.qualified(function))


def _mark_misspelt(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        for each in function.decorator_list:
            if isinstance(each, ast.Call) and _called(each) == "parametrize":
                _start, end = module.span(each.func)
                fault = edited(
                    module,
                    end - len("parametrize"),
                    end,
                    "parameterize",
                    node=function,
                    name="parameterize",
                )
                yield replace(fault, tests=(function.name,), function=module.qualified(function))
        if _imports_pytest(module):
            fault = inserted(module, function, "@pytest.mark.slwo", name="slwo")
            yield replace(fault, tests=(function.name,), function=module.qualified(function))


def _import_misspelt(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module not in (None, "__future__") and not node.level:
            for each in node.names:
                if each.name != "*" and not _is_module(node.module):
                    others = [_alias(other) for other in node.names if other is not each]
                    new = misspelt(each.name)
                    names = ", ".join([f"{new} as {each.asname or each.name}", *others])
                    yield replaced(module, node, f"from {node.module} import {names}", name=new)


def _module_misspelt(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and "." in node.module and node.level == 0:
            head, _, last = node.module.rpartition(".")
            new = misspelt(last)
            names = ", ".join(_alias(each) for each in node.names)
            yield replaced(module, node, f"from {head}.{new} import {names}", name=new)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 1:
            new = misspelt(node.module)
            names = ", ".join(_alias(each) for each in node.names)
            yield replaced(module, node, f"from .{new} import {names}", name=new)


def _keyword_misspelt(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                for each in node.keywords:
                    if each.arg and len(each.arg) > 2:
                        start = module.span(each)[0]
                        new = misspelt(each.arg)
                        fault = edited(module, start, start + len(each.arg), new, node=node, name=new)
                        yield replace(fault, tests=(function.name,))


def _argument_forgotten(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
                continue
            if not isinstance(node.args[0], ast.Starred):
                new = f"{module.source(node.func)}()"
                yield replace(replaced(module, node, new), tests=(function.name,))


def _attribute_misspelt(module: Module) -> Iterator[Fault]:
    for function in _tests(module):
        for node in ast.walk(function):
            if not (
                isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and len(node.attr) > 3
            ):
                continue
            if not module.source(node.value).startswith("pytest"):
                new = misspelt(node.attr)
                fault = replaced(module, node, f"{module.source(node.value)}.{new}", name=new)
                yield replace(fault, tests=(function.name,))


def _broken_setup(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and any(_is_test(each) for each in node.body):
            unittest = any("TestCase" in module.source(base) for base in node.bases)
            name = "setUp" if unittest else "setup_method"
            first = node.body[0]
            if name not in module.source(node):
                yield inserted(module, first, f"def {name}(self):\n    self.given = load_given()\n")
    for function in module.functions():
        if _is_fixture(function) and body_of(function):
            yield inserted(module, body_of(function)[0], "given = load_given()")


def _conftest(module: Module) -> Iterator[Fault]:
    folder, _, file = module.path.rpartition("/")
    if not file.startswith("test_"):
        return
    path = f"{folder}/conftest.py"
    for line in (
        "from shared_fixtures import *",
        "from support.factories import make_sample",
        "import pytest\n\nSAMPLES = load_samples()",
    ):
        first = line.count("\n") + 1
        yield Fault(
            changes={path: f'"""What the tests share."""\n\n{line}\n'},
            path=path,
            first_line=first + 2,
            last_line=first + 2,
            after=line,
        )


def _tests(module: Module) -> Iterator[Function]:
    for node in ast.walk(module.tree):
        if isinstance(node, Function) and _is_test(node) and body_of(node):
            yield node


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, Function) and node.name.startswith("test")


def _is_fixture(function: Function) -> bool:
    return any("fixture" in ast.unparse(each) for each in function.decorator_list)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _imports_pytest(module: Module) -> bool:
    return any(isinstance(node, ast.Import) and node.names[0].name == "pytest" for node in module.tree.body)


def _is_module(name: str | None) -> bool:
    return name is None or name in (
        "collections",
        "typing",
        "datetime",
        "decimal",
        "functools",
        "itertools",
    )


def _alias(each: ast.alias) -> str:
    return f"{each.name} as {each.asname}" if each.asname else each.name


def _row(name: str, sentence: str, inject: Injector, *also: Reading, **more: Any) -> Kind:
    return Kind(
        id=name, sentence=sentence, inject=inject, owner=Owner.TEST, also=also, reach=Reach.OWN, **more
    )


TEST_KINDS = (
    _row("test-name-typo", "A test uses a misspelt name.", _name, exact=True, raises=("NameError",)),
    _row(
        "test-helper-broken",
        "A helper of the tests uses a misspelt name.",
        _broken_helper,
        raises=("NameError",),
    ),
    _row("test-wrong-expected", "A test expects a wrong value.", _expected, if_product_edited=_EITHER),
    _row("test-inverted", "A test asserts the opposite.", _inverted, if_product_edited=_EITHER),
    _row(
        "test-wrong-exception",
        "A test expects another exception.",
        _wrong_exception,
        if_product_edited=_EITHER,
    ),
    _row("test-fixture-misspelt", "A test asks for a misspelt fixture.", _fixture_misspelt),
    _row("test-parameter-misspelt", "A parameter of a test is misspelt.", _parameter_misspelt),
    _row("test-mark-misspelt", "A mark is misspelt.", _mark_misspelt, options="--strict-markers"),
    _row(
        "test-import-misspelt",
        "A test imports a misspelt name.",
        _import_misspelt,
        _PROMISE,
        exact=True,
        raises=("ImportError",),
    ),
    _row(
        "test-module-misspelt",
        "A test imports a misspelt module.",
        _module_misspelt,
        _IMPORT,
        exact=True,
        raises=("ModuleNotFoundError",),
    ),
    _row(
        "test-keyword-misspelt",
        "A test misspells a keyword argument.",
        _keyword_misspelt,
        raises=("TypeError",),
    ),
    _row(
        "test-argument-forgotten",
        "A test forgets the argument of a call.",
        _argument_forgotten,
        raises=("TypeError",),
    ),
    _row(
        "test-attribute-misspelt",
        "A test asks for a misspelt attribute.",
        _attribute_misspelt,
        exact=True,
        raises=("AttributeError",),
    ),
    _row(
        "test-setup-broken",
        "A set-up of the tests uses an unknown name.",
        _broken_setup,
        raises=("NameError",),
    ),
    _row("test-conftest-broken", "A conftest cannot be imported.", _conftest, _IMPORT),
)


_BROKEN = Reading(
    category=Category.TEST_REGRESSION,
    owner=Owner.TEST,
    why="The data belong to the tests, which cannot run without them.",
)


def _deleted(module: Module) -> Iterator[Fault]:
    for path in _named(module):
        yield Fault(changes={path: None}, path=path, before=path, reader=module.path)


def _emptied(module: Module) -> Iterator[Fault]:
    for path in _named(module):
        yield Fault(changes={path: ""}, path=path, before=path, reader=module.path)


def _named(module: Module) -> Iterator[str]:
    """Yield the data files that a test file names."""
    for path in module.data:
        if path.rsplit("/", 1)[-1] in module.text:
            yield path


DATA_KINDS = (
    Kind(
        id="test-data-deleted",
        sentence="A data file of the tests was deleted.",
        inject=_deleted,
        category=Category.ARTIFACT_MISSING,
        owner=Owner.TEST,
        also=(_BROKEN,),
        reach=Reach.OWN,
    ),
    Kind(
        id="test-data-emptied",
        sentence="A data file of the tests is empty.",
        inject=_emptied,
        owner=Owner.TEST,
        reach=Reach.OWN,
    ),
)

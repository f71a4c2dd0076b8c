"""Faults in the behaviour of the product: operators, values, flow, errors, state, processes, warnings."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator

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
    replaced,
)
from planner.model.taxonomy import Category, Owner, Repeatability
from tools.corpus.case import Reading

_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.Div: "*",
}
_BOUNDARIES: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_OPPOSITES: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


def _arithmetic(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.BinOp):
        new = _ARITHMETIC.get(type(node.op))
        if new:
            left, right = module.source(node.left), module.source(node.right)
            yield replaced(module, node, f"{left} {new} {right}")


def _boundary(module: Module) -> Iterator[Fault]:
    yield from _comparisons(module, _BOUNDARIES)


def _comparison(module: Module) -> Iterator[Fault]:
    yield from _comparisons(module, _OPPOSITES)


def _comparisons(module: Module, table: dict[type[ast.cmpop], str]) -> Iterator[Fault]:
    for node in _in_functions(module, ast.Compare):
        new = table.get(type(node.ops[0]))
        if new and len(node.ops) == 1:
            left, right = module.source(node.left), module.source(node.comparators[0])
            yield replaced(module, node, f"{left} {new} {right}")


def _negated(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.If):
        yield replaced(module, node.test, f"not ({module.source(node.test)})")


def _boolean(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.BoolOp):
        new = " or " if isinstance(node.op, ast.And) else " and "
        values = [module.source(each) for each in node.values]
        yield replaced(module, node, f"({new.join(values)})")


def _off_by_one(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.Constant):
        if type(node.value) is int and isinstance(
            module.parents[node], ast.Slice | ast.BinOp | ast.Compare
        ):
            yield replaced(module, node, str(node.value + 1))


def _constant(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.Constant):
        above = module.parents[node]
        if not isinstance(above, ast.Return | ast.Assign | ast.Call | ast.Dict | ast.keyword):
            continue
        if isinstance(node.value, str) and node.value.strip() and node.lineno == node.end_lineno:
            text = module.source(node)
            if text[0] in "'\"" and text[1] not in "'\"" and "\\" not in text:
                yield replaced(module, node, f"{text[0]}{text[1:-1]}x{text[-1]}")
        elif type(node.value) is int:
            yield replaced(module, node, str(node.value * 2 + 7))
        elif isinstance(node.value, bool):
            yield replaced(module, node, str(not node.value))


def _default(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        for node in (*function.args.defaults, *(each for each in function.args.kw_defaults if each)):
            if isinstance(node, ast.Constant) and function.body:
                new = _other(node.value)
                if new:
                    yield replaced(module, node, new, runs=function.body[-1].lineno)


def _other(value: object) -> str | None:
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + 1)
    if isinstance(value, str):
        return repr(value + "-") if value.isascii() else None
    return None


def _swapped(module: Module) -> Iterator[Fault]:
    for node in _in_functions(module, ast.Call):
        if len(node.args) < 2 or any(isinstance(each, ast.Starred) for each in node.args[:2]):
            continue
        first, second = (module.source(each) for each in node.args[:2])
        if first != second and len(first) + len(second) < 60 and "\n" not in first + second:
            start, end = module.span(node.args[0])[0], module.span(node.args[1])[1]
            whole = module.text[start:end]
            between = whole[len(first) : len(whole) - len(second)]
            if between.strip() == ",":
                call, call_end = module.span(node)
                new = module.text[call:start] + second + between + first + module.text[end:call_end]
                yield replaced(module, node, new)


def _variable(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        names = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
        names = [each for each in names if each not in ("self", "cls")]
        if len(names) < 2:
            continue
        for node in ast.walk(function):
            if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names):
                continue
            if module.inside(node) is function and not _in_signature(module, node, function):
                other = names[(names.index(node.id) + 1) % len(names)]
                yield replaced(module, node, other)


def _in_signature(module: Module, node: ast.AST, function: Function) -> bool:
    return any(each in (function.args, *function.decorator_list) for each in (node, *module.above(node)))


def _in_functions(module: Module, kind: type) -> Iterator[ast.AST]:
    for node in ast.walk(module.tree):
        if isinstance(node, kind) and module.inside(node) and not _annotates(module, node):
            yield node


def _annotates(module: Module, node: ast.AST) -> bool:
    """Return whether a node is in a signature, docstring, f-string or annotation, where no fault fits."""
    chain = [node, *module.above(node)]
    if any(
        isinstance(each, ast.arguments | ast.JoinedStr | ast.arg | ast.FormattedValue) for each in chain
    ):
        return True
    below = dict(zip(chain[1:], chain, strict=False))
    return any(
        (isinstance(each, ast.AnnAssign) and below.get(each) is each.annotation)
        or (isinstance(each, Function) and below.get(each) in (each.returns, *each.decorator_list))
        for each in chain
    )


def _operator_row(name: str, sentence: str, inject: Injector) -> Kind:
    return Kind(id=name, sentence=sentence, inject=inject, judged=Judged.BEHAVIOUR)


OPERATOR_KINDS = (
    _operator_row("wrong-arithmetic", "An arithmetic operator is another one.", _arithmetic),
    _operator_row(
        "boundary-comparison", "A comparison takes in its boundary, or leaves it out.", _boundary
    ),
    _operator_row("wrong-comparison", "A comparison is its opposite.", _comparison),
    _operator_row("negated-condition", "The condition of an if is negated.", _negated),
    _operator_row("wrong-boolean", "And is or, or the other way round.", _boolean),
    _operator_row("off-by-one", "A number in a slice, sum or comparison is one too large.", _off_by_one),
    _operator_row("wrong-constant", "A constant in the code has another value.", _constant),
    _operator_row("wrong-default", "A parameter has another default.", _default),
    _operator_row(
        "swapped-arguments", "The first two arguments of a call in the product change places.", _swapped
    ),
    _operator_row("wrong-variable", "Another parameter of the function is used.", _variable),
)


def _missing_return(module: Module) -> Iterator[Fault]:
    for node in _returns(module):
        if node.value is not None:
            yield replaced(module, node, f"({module.source(node.value)})")


def _early_return(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if len(body) > 2:
            yield inserted(module, body[len(body) // 2], "return")


def _dropped_branch(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.If):
        yield _emptied(module, node.body)


def _dropped_else(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.If):
        if node.orelse and not isinstance(node.orelse[0], ast.If):
            yield _emptied(module, node.orelse)


def _dropped_statement(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.Expr, ast.AugAssign):
        if not isinstance(
            getattr(node, "value", None), ast.Constant | ast.Yield | ast.YieldFrom | ast.Await
        ):
            yield replaced(module, node, "pass")


def _dropped_loop(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.For):
        yield replaced(module, node.iter, f"list({module.source(node.iter)})[1:]")


def _missing_await(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Await):
            yield replaced(module, node, module.source(node.value))


def _missing_copy(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Call) and module.inside(node)):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
            yield replaced(module, node, module.source(node.func.value))
        elif (
            (
                isinstance(node.func, ast.Name)
                and node.func.id in ("list", "dict", "set")
                and len(node.args) == 1
            )
            and isinstance(node.args[0], ast.Name | ast.Attribute)
            and not node.keywords
        ):
            yield replaced(module, node, module.source(node.args[0]))


def _missing_none_check(module: Module) -> Iterator[Fault]:
    for node in _statements(module, ast.If):
        test = node.test
        if (
            isinstance(test, ast.Compare)
            and isinstance(test.ops[0], ast.Is | ast.IsNot)
            and isinstance(test.comparators[0], ast.Constant)
            and test.comparators[0].value is None
        ):
            yield replaced(module, test, "False" if isinstance(test.ops[0], ast.Is) else "True")


def _emptied(module: Module, body: list[ast.stmt]) -> Fault:
    start, end = module.span(body[0])[0], module.span(body[-1])[1]
    return edited(module, start, end, "pass", node=body[0])


def _returns(module: Module) -> Iterator[ast.Return]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Return):
            yield node


def _statements(module: Module, *kinds: type) -> Iterator[ast.AST]:
    for node in ast.walk(module.tree):
        if isinstance(node, kinds) and module.inside(node):
            yield node


def _flow_row(name: str, sentence: str, inject: Injector) -> Kind:
    return Kind(id=name, sentence=sentence, inject=inject, judged=Judged.BEHAVIOUR)


FLOW_KINDS = (
    _flow_row("missing-return", "A value is computed and not returned.", _missing_return),
    _flow_row("early-return", "A function returns before its work is done.", _early_return),
    _flow_row("dropped-branch", "The branch of an if does nothing.", _dropped_branch),
    _flow_row("dropped-else", "The else branch does nothing.", _dropped_else),
    _flow_row("dropped-statement", "A call or an update is left out.", _dropped_statement),
    _flow_row("skipped-first", "A loop leaves out the first element.", _dropped_loop),
    _flow_row("missing-await", "A coroutine is not awaited.", _missing_await),
    _flow_row("missing-copy", "What should be copied is used itself, and changed in place.", _missing_copy),
    _flow_row(
        "missing-none-check", "A value is used without asking whether it is None.", _missing_none_check
    ),
)


def _other_exception(module: Module) -> Iterator[Fault]:
    for node in _raises(module):
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if isinstance(called, ast.Name) and called.id != "RuntimeError":
            yield replaced(module, called, "RuntimeError")


def _other_message(module: Module) -> Iterator[Fault]:
    for node in _raises(module):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and len(inner.value) > 5:
                text = module.source(inner)
                if text[:1] in ("'", '"') and text[1:2] != text[0]:
                    yield replaced(module, inner, f"{text[0]}something went wrong{text[0]}")
                break


def _raise_removed(module: Module) -> Iterator[Fault]:
    for node in _raises(module):
        yield replaced(module, node, "pass")


def _swallowed(module: Module) -> Iterator[Fault]:
    for node in module.inner(ast.ExceptHandler):
        if not (len(node.body) == 1 and isinstance(node.body[0], ast.Pass)):
            start, end = module.span(node.body[0])[0], module.span(node.body[-1])[1]
            yield edited(module, start, end, "pass", node=node.body[0])


def _unfinished(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if body and not _generates(function):
            start, end = module.span(body[0])[0], module.span(body[-1])[1]
            yield edited(module, start, end, "raise NotImplementedError", node=body[0])


def _assertion(module: Module) -> Iterator[Fault]:
    for name, first in _starts(module):
        yield inserted(module, first, f"assert {name} is NotImplemented, {name}")


def _undefined(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and len(node.id) > 2:
            function = module.inside(node)
            if function is not None and _in_body(module, node, function):
                new = misspelt(node.id)
                if new not in module.text and not hasattr(builtins, new):
                    yield replaced(module, node, new, name=new)


def _unbound(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        stored: dict[str, list[ast.AST]] = {}
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Name)
                and isinstance(node.ctx, ast.Store)
                and module.inside(node) is function
            ):
                stored.setdefault(node.id, []).append(node)
        for statement in body_of(function):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Name) and len(stored.get(target.id, ())) > 1:
                yield replaced(module, statement, "pass", name=target.id)


def _missing_import(module: Module) -> Iterator[Fault]:
    for node in module.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and len(node.names) == 1:
            name = (node.names[0].asname or node.names[0].name).split(".")[0]
            if name == "annotations" or node.names[0].name == "*":
                continue
            for use in ast.walk(module.tree):
                if isinstance(use, ast.Name) and use.id == name and module.inside(use):
                    yield replaced(module, node, "pass", name=name, runs=module.statement(use).lineno)
                    break


def _key_typo(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and module.inside(node):
            key = node.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and len(key.value) > 2:
                yield replaced(module, key, repr(misspelt(key.value)))


def _index(module: Module) -> Iterator[Fault]:
    for node in module.inner(ast.Subscript):
        function = module.inside(node)
        key = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
        whole = node.value
        if (
            function is not None
            and isinstance(node.ctx, ast.Load)
            and isinstance(key, ast.Constant)
            and type(key.value) is int
            and isinstance(whole, ast.Name | ast.Attribute)
            and _in_body(module, node, function)
        ):
            name = module.source(whole)
            yield replaced(module, node, f"{name}[len({name})]")


def _recursion(module: Module) -> Iterator[Fault]:
    for function in module.tree.body:
        if (
            isinstance(function, ast.FunctionDef)
            and not function.decorator_list
            and not _generates(function)
        ):
            given = function.args
            body = body_of(function)
            if (
                body
                and given.args
                and not (given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs)
            ):
                names = ", ".join(each.arg for each in given.args)
                yield inserted(module, body[0], f"return {function.name}({names})")


def _number_misread(module: Module) -> Iterator[Fault]:
    for name, first in _starts(module):
        yield inserted(module, first, f'size = int(str(id({name})) + "px")')


def _starts(module: Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the first parameter and the first statement of every function that has both."""
    for function in module.functions():
        names = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
        body = body_of(function)
        if names and body:
            yield names[0], body[0]


def _raises(module: Module) -> Iterator[ast.Raise]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Raise) and node.exc is not None and module.inside(node):
            yield node


def _generates(function: Function) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(function))


def _in_body(module: Module, node: ast.AST, function: Function) -> bool:
    chain = [node, *module.above(node)]
    if any(isinstance(each, ast.AnnAssign | ast.JoinedStr) for each in chain[: chain.index(function)]):
        return False
    return chain[chain.index(function) - 1] in function.body


def _error_row(name: str, sentence: str, inject: Injector, *raises: str, exact: bool = True) -> Kind:
    judged = Judged.FIXED if raises else Judged.BEHAVIOUR
    return Kind(id=name, sentence=sentence, inject=inject, judged=judged, exact=exact, raises=raises)


ERROR_KINDS = (
    _error_row("wrong-exception", "Another exception is raised.", _other_exception, "RuntimeError"),
    _error_row("wrong-message", "An exception says something else.", _other_message, exact=False),
    _error_row("raise-removed", "An exception is not raised.", _raise_removed, exact=False),
    _error_row("exception-swallowed", "A handler does nothing.", _swallowed, exact=False),
    _error_row("unfinished", "A function is not written yet.", _unfinished, "NotImplementedError"),
    _error_row(
        "assert-in-product", "The product asserts what does not hold.", _assertion, "AssertionError"
    ),
    _error_row("undefined-name", "A name in a function is misspelt.", _undefined, "NameError"),
    _error_row(
        "unbound-local", "A local variable has no first value.", _unbound, "UnboundLocalError", exact=False
    ),
    _error_row(
        "missing-import",
        "A module uses what it does not import.",
        _missing_import,
        "NameError",
        exact=False,
    ),
    _error_row("key-typo", "The key of a mapping is misspelt.", _key_typo, "KeyError"),
    _error_row("index-error", "An element past the end is asked for.", _index, "IndexError"),
    _error_row("endless-recursion", "A function calls itself for ever.", _recursion, "RecursionError"),
    _error_row("number-of-text", "A text that is no number is read as one.", _number_misread, "ValueError"),
)


_MISSPELT = Reading(
    category=Category.TEST_REGRESSION,
    owner=Owner.PRODUCT,
    why="A misspelt name is a bug of the code whatever the kind of its value.",
)


def _none_inside(module: Module) -> Iterator[Fault]:
    for node in _assignments(module):
        if not isinstance(node.value, ast.Constant):
            yield replaced(module, node.value, "None")


def _wrong_kind(module: Module) -> Iterator[Fault]:
    for node in _assignments(module):
        source = module.source(node.value)
        if isinstance(node.value, ast.Call | ast.Name | ast.Attribute) and "\n" not in source:
            yield replaced(module, node.value, f"[{source}]")
            yield replaced(module, node.value, f"str({source})")


def _method_not_called(module: Module) -> Iterator[Fault]:
    for node in _assignments(module):
        if isinstance(node.value, ast.Call) and not node.value.args and not node.value.keywords:
            yield replaced(module, node.value, module.source(node.value.func))


def _bytes(module: Module) -> Iterator[Fault]:
    yield from _returned(module, "str({}).encode()")


def _none(module: Module) -> Iterator[Fault]:
    yield from _returned(module, "None")


def _in_tuple(module: Module) -> Iterator[Fault]:
    yield from _returned(module, "({}),")


def _generator(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Return) and module.inside(node):
            value = node.value
            if isinstance(value, ast.ListComp):
                yield replaced(module, value, f"({module.source(value)[1:-1]})")
            elif (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
                and value.func.id in ("list", "tuple", "sorted")
            ):
                yield replaced(module, value, f"iter({module.source(value)})")


def _attribute(module: Module) -> Iterator[Fault]:
    for node in module.inner(ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if own and isinstance(node.ctx, ast.Load) and len(node.attr) > 3:
            new = misspelt(node.attr)
            yield replaced(module, node, f"self.{new}", name=new)


def _returned(module: Module, pattern: str) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Return) and node.value is not None and module.inside(node):
            source = module.source(node.value)
            if "\n" not in source and not (
                isinstance(node.value, ast.Constant) and node.value.value is None
            ):
                yield replaced(module, node.value, pattern.format(source))


def _assignments(module: Module) -> Iterator[ast.Assign]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and module.inside(node) and isinstance(node.targets[0], ast.Name):
            yield node


def _value_row(name: str, sentence: str, inject: Injector) -> Kind:
    return Kind(id=name, sentence=sentence, inject=inject, judged=Judged.BEHAVIOUR)


VALUE_KINDS = (
    _value_row("none-inside", "A variable of the product is None.", _none_inside),
    _value_row(
        "wrong-kind-inside", "A variable holds a list or a text of what it should hold.", _wrong_kind
    ),
    _value_row("method-not-called", "A method is named but not called.", _method_not_called),
    _value_row("returns-bytes", "A function returns bytes.", _bytes),
    _value_row("returns-none", "A function returns None.", _none),
    _value_row("returns-tuple", "A stray comma makes a tuple of what is returned.", _in_tuple),
    _value_row("returns-generator", "A function returns an iterator in the place of a list.", _generator),
    Kind(
        id="attribute-typo",
        sentence="An attribute of self is misspelt.",
        inject=_attribute,
        category=Category.TYPE_ERROR,
        also=(_MISSPELT,),
        exact=True,
        raises=("AttributeError",),
    ),
)


_PRODUCT = Reading(
    category=Category.FLAKY_TEST,
    owner=Owner.PRODUCT,
    why="What is not always the same is in the product.",
)
_KEPT = Reading(
    category=Category.TEST_REGRESSION,
    owner=Owner.PRODUCT,
    why="State that the product keeps between calls is its bug, though only some orders show it.",
)

_CHANCE = "import random\nif random.SystemRandom().random() < 0.5:\n    raise RuntimeError('not ready')"
_CLOCK = "import time\nif (time.time_ns() // 1_000_000) % 2:\n    raise RuntimeError('too early')"
_HASHED = "if list({'primary', 'standby'})[0] == 'standby':\n    raise RuntimeError('no primary')"


def _chance(module: Module) -> Iterator[Fault]:
    yield from _guarded(module, _CHANCE)


def _clock(module: Module) -> Iterator[Fault]:
    yield from _guarded(module, _CLOCK)


def _hashed(module: Module) -> Iterator[Fault]:
    yield from _guarded(module, _HASHED)


def _chance_value(module: Module) -> Iterator[Fault]:
    for node in _values(module):
        new = f"(__import__('random').SystemRandom().choice([{module.source(node)}, None]))"
        yield replaced(module, node, new)


def _kept(module: Module) -> Iterator[Fault]:
    for node in _values(module):
        function = module.inside(node)
        if function is not None and function in module.tree.body and not function.decorator_list:
            seen = f"{function.name}.__dict__.setdefault('last', {module.source(node)})"
            yield replaced(module, node, seen)


def _once(module: Module) -> Iterator[Fault]:
    for function in module.tree.body:
        if isinstance(function, ast.FunctionDef) and not function.decorator_list and body_of(function):
            lines = (
                f"{function.name}.calls = getattr({function.name}, 'calls', 0) + 1\n"
                f"if {function.name}.calls > 1:\n    raise RuntimeError('{function.name} was used before')"
            )
            yield inserted(module, body_of(function)[0], lines)


def _class_state(module: Module) -> Iterator[Fault]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef) and isinstance(module.parents.get(node), ast.ClassDef):
            if (
                node.decorator_list
                or not node.args.args
                or node.args.args[0].arg != "self"
                or not body_of(node)
            ):
                continue
            owner = module.parents[node]
            assert isinstance(owner, ast.ClassDef)
            first = body_of(node)[0]
            lines = (
                f"if type(self).__dict__.get('_used_by') not in (None, id(self)):\n"
                f"    raise RuntimeError('{owner.name} is in use')\n"
                f"type(self)._used_by = id(self)"
            )
            yield inserted(module, first, lines)


def _guarded(module: Module, lines: str) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if body:
            yield inserted(module, body[0], lines)


def _values(module: Module) -> Iterator[ast.expr]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Return) and node.value is not None and module.inside(node):
            source = module.source(node.value)
            if "\n" not in source and not isinstance(node.value, ast.Constant):
                yield node.value


def _state_row(name: str, sentence: str, inject: Injector, answers: Repeatability, *also: Reading) -> Kind:
    return Kind(
        id=name,
        sentence=sentence,
        inject=inject,
        category=Category.FLAKY_TEST,
        owner=Owner.TEST,
        also=(_PRODUCT, *also),
        repeatability=answers,
    )


STATE_KINDS = (
    _state_row("random-failure", "A function fails by chance.", _chance, Repeatability.FLAKY),
    _state_row("random-value", "A function returns None by chance.", _chance_value, Repeatability.FLAKY),
    _state_row("clock-failure", "A function fails at some times.", _clock, Repeatability.FLAKY),
    _state_row("hash-order", "The order of a set decides.", _hashed, Repeatability.FLAKY),
    _state_row("value-kept", "A function keeps its first answer.", _kept, Repeatability.FLAKY, _KEPT),
    _state_row("used-once", "A function works once a process.", _once, Repeatability.FLAKY, _KEPT),
    _state_row(
        "class-state",
        "A class works for its first object only.",
        _class_state,
        Repeatability.FLAKY,
        _KEPT,
    ),
)


LIMIT_SECONDS = 15.0

_ENDS = Reading(
    category=Category.TEST_CRASH,
    owner=Owner.PRODUCT,
    why="The product tells the whole process to end.",
)


def _first(lines: str) -> Injector:
    """Return an injector that inserts lines at the start of a function."""

    def inject(module: Module) -> Iterator[Fault]:
        for function in module.functions():
            body = body_of(function)
            if body:
                yield inserted(module, body[0], lines)

    return inject


def _top(lines: str) -> Injector:
    """Return an injector that inserts lines before the first definition of the module."""

    def inject(module: Module) -> Iterator[Fault]:
        for node in module.tree.body:
            if hasattr(node, "decorator_list"):
                yield inserted(module, node, lines)
                return

    return inject


_LOOP = "attempts = 0\nwhile attempts < 3:\n    attempts = attempts % 3"
_SLOW = "import time\nfor _ in range(1000):\n    time.sleep(0.25)"
_BUSY = "total = 0\nfor _a in range(10**6):\n    for _b in range(10**6):\n        total += _a ^ _b"
_LOCK = "import threading\nguard = threading.Lock()\nguard.acquire()\nguard.acquire()"
_JOIN = "import threading\ndone = threading.Event()\ndone.wait()"


def _hangs(name: str, sentence: str, inject: Callable[[Module], Iterator[Fault]]) -> Kind:
    return Kind(
        id=name,
        sentence=sentence,
        inject=inject,
        category=Category.TEST_TIMEOUT,
        exact=True,
        timeout_seconds=LIMIT_SECONDS,
        ends_process=True,
    )


def _dies(name: str, sentence: str, lines: str) -> Kind:
    return Kind(
        id=name,
        sentence=sentence,
        inject=_first(lines),
        category=Category.TEST_CRASH,
        exact=True,
        ends_process=True,
    )


PROCESS_KINDS = (
    _hangs("endless-loop", "A loop never ends.", _first(_LOOP)),
    _hangs("slow-wait", "A function waits for minutes.", _first(_SLOW)),
    _hangs("busy-work", "A function has too much to do.", _first(_BUSY)),
    _hangs("deadlock", "A lock is taken twice.", _first(_LOCK)),
    _hangs("lost-signal", "A function waits for what nobody says.", _first(_JOIN)),
    _dies("os-exit", "A function ends the process at once.", "import os\nos._exit(3)"),
    _dies("os-exit-zero", "A function ends the process as if all were well.", "import os\nos._exit(0)"),
    _dies("segfault", "A function reads memory that is not its own.", "import ctypes\nctypes.string_at(0)"),
    _dies("abort", "A function aborts the process.", "import os\nos.abort()"),
    _dies("killed", "A function kills its own process.", "import os\nos.kill(os.getpid(), 9)"),
    Kind(
        id="sys-exit",
        sentence="A function raises SystemExit.",
        inject=_first("import sys\nsys.exit(2)"),
        also=(_ENDS,),
        exact=True,
        raises=("SystemExit",),
    ),
    Kind(
        id="sys-exit-at-import",
        sentence="A module raises SystemExit while it is imported.",
        inject=_top("import sys\nsys.exit(1)"),
        also=(_ENDS,),
        exact=True,
        reach=Reach.IMPORT,
        judged=Judged.BEHAVIOUR,
        ends_process=True,
    ),
)


_STRICT = "-W error::DeprecationWarning"


def _deprecated(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if body:
            warning = f'"{function.name} will go in the next release", DeprecationWarning'
            yield inserted(module, body[0], f"import warnings\nwarnings.warn({warning}, stacklevel=1)")


WARNING_KINDS = (
    Kind(
        id="deprecation-as-error",
        sentence="A function warns that it is deprecated, and warnings are errors.",
        inject=_deprecated,
        exact=True,
        raises=("DeprecationWarning",),
        options=_STRICT,
    ),
)

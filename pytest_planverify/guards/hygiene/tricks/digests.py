"""Answers that are kept by a digest of what is asked, so that no input of the tests can be read."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.folding import NOTHING, fold
from pytest_planverify.guards.hygiene.reading import dotted
from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.guards.hygiene.reading import Function, Module, Site
    from pytest_planverify.guards.hygiene.tricks.surroundings import Surroundings

_DIGESTS = frozenset(
    {
        "zlib.crc32", "zlib.adler32", "binascii.crc32", "binascii.crc_hqx", "hmac.new", "hmac.digest",
        "hash", "builtins.hash", "int.from_bytes",
    }
)  # fmt: skip
_MODULES = ("hashlib.", "_hashlib.", "_md5.", "_sha1.", "_sha2.", "xxhash.", "mmh3.", "blake3.")
_LOOKS_UP = frozenset({"get", "pop", "setdefault", "__getitem__", "index", "__contains__"})
_LEAST_NUMBER = 100
"""Smaller numbers are shares and buckets: ``crc32(key) % 16 == 0``."""
_LEAST_TEXT = 4
_ROUNDS = 4


def digests(module: Module, around: Surroundings) -> Iterator[Find]:
    """Digests of what a function is given, looked up in a table or compared with what is written down."""
    makers = _makers(module)
    seen: set[str] = set()
    for site in module.sites:
        node = site.node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name in seen:
            continue
        tainted = _tainted(node, module, makers)
        place = _answered(node, tainted, module, makers)
        if place is not None:
            seen.add(node.name)
            found = _find(place, node.name, site, module)
            yield found.softer() if _chooses_one_of_all(place) else found


def _answered(node: Function, tainted: set[str], module: Module, makers: set[str]) -> ast.AST | None:
    """Where something is answered by a digest."""
    verified = _only_verified(node)

    def is_digest(each: ast.AST) -> bool:
        return any(_is_digest(inner, tainted, module, makers) for inner in ast.walk(each))

    for each in ast.walk(node):
        if isinstance(each, ast.Compare) and id(each) not in verified:
            for operator, left, right in _pairs(each):
                for one, other in ((left, right), (right, left)):
                    if is_digest(one) and _is_written(other, operator, module):
                        return each
        elif isinstance(each, ast.Subscript) and is_digest(each.slice):
            if _is_table(each.value, module):
                return each
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            if (
                each.func.attr in _LOOKS_UP
                and any(map(is_digest, each.args))
                and _is_table(each.func.value, module)
            ):
                return each
        elif isinstance(each, ast.Match) and is_digest(each.subject):
            return each
    return None


def _chooses_one_of_all(node: ast.AST) -> bool:
    """``SHARDS[crc32(key) % len(SHARDS)]``: everything falls on something."""
    if not isinstance(node, ast.Subscript):
        return False
    whole = node.slice.right if isinstance(node.slice, ast.BinOp) else None
    return (
        isinstance(node.slice, ast.BinOp)
        and isinstance(node.slice.op, ast.Mod)
        and isinstance(whole, ast.Call)
        and ast.unparse(whole) == f"len({ast.unparse(node.value)})"
    )


def _pairs(node: ast.Compare) -> Iterator[tuple[ast.cmpop, ast.expr, ast.expr]]:
    left = node.left
    for operator, right in zip(node.ops, node.comparators, strict=True):
        yield operator, left, right
        left = right


def _only_verified(node: Function) -> frozenset[int]:
    """Comparisons that end in an exception, or are the whole answer: something is what it should be."""
    found: set[int] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.If) and all(isinstance(one, ast.Raise | ast.Expr) for one in each.body):
            found |= {id(inner) for inner in ast.walk(each.test)}
        elif isinstance(each, ast.If) and isinstance(each.test, ast.Compare) and _only_says_whether(node):
            if isinstance(each.test.ops[0], ast.Eq | ast.NotEq):
                found.add(id(each.test))
        elif isinstance(each, ast.Assert):
            found |= {id(inner) for inner in ast.walk(each)}
        elif (
            isinstance(each, ast.Return)
            and isinstance(each.value, ast.Compare)
            and isinstance(each.value.ops[0], ast.Eq | ast.NotEq)
        ):
            found.add(id(each.value))
    return frozenset(found)


def _only_says_whether(node: Function) -> bool:
    """A function that asks one thing and answers yes or no."""
    nodes = list(ast.walk(node))
    returned = [each.value for each in nodes if isinstance(each, ast.Return)]
    return sum(isinstance(each, ast.If) for each in nodes) == 1 and all(
        isinstance(each, ast.Constant) and isinstance(each.value, bool) for each in returned
    )


def _is_written(node: ast.expr, operator: ast.cmpop, module: Module) -> bool:
    if isinstance(operator, ast.In | ast.NotIn):
        return _is_table(node, module)
    if not isinstance(operator, ast.Eq | ast.NotEq):
        return False
    return _is_telling(fold(node, module.constants))


def _is_telling(value: object) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return abs(value) >= _LEAST_NUMBER
    return isinstance(value, str | bytes) and len(value) >= _LEAST_TEXT


def _is_table(node: ast.expr, module: Module) -> bool:
    """A table or list that is written down, with what looks like digests; no cache that fills."""
    if isinstance(node, ast.Name):
        value = module.constants.get(node.id)
        return value is not None and _is_table(value, module)
    if isinstance(node, ast.Attribute):
        return any(_is_table(value, module) for value in _of_classes(node.attr, module))
    if isinstance(node, ast.Dict):
        return any(key is not None and _is_telling(fold(key, module.constants)) for key in node.keys)
    if isinstance(node, ast.Set | ast.List | ast.Tuple):
        return any(_is_telling(fold(each, module.constants)) for each in node.elts)
    if isinstance(node, ast.DictComp):
        return True
    if isinstance(node, ast.Call):
        # frozenset([…]), dict(zip(…)), json.loads("…"): anything that is made of constants.
        return bool(node.args) and any(
            _is_table(arg, module)
            or (isinstance(value := fold(arg, module.constants), str | bytes) and len(value) > _LEAST_TEXT)
            for arg in node.args
        )
    value = fold(node, module.constants)
    return isinstance(value, str | bytes) and len(value) > 4 * _LEAST_TEXT


def _of_classes(name: str, module: Module) -> Iterator[ast.expr]:
    """What classes of the module bind a name to."""
    for node, _ in module.members:
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(each, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in each.targets
            ):
                yield each.value


def _tainted(node: Function, module: Module, makers: set[str]) -> set[str]:
    """Names of a function that hold a digest."""
    found: set[str] = set()
    for _ in range(_ROUNDS):
        before = len(found)
        for each in ast.walk(node):
            value = getattr(each, "value", None)
            if not isinstance(each, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
                continue
            if value is None or not any(
                _is_digest(inner, found, module, makers) for inner in ast.walk(value)
            ):
                continue
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            found |= {
                inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)
            }
        if len(found) == before:
            break
    return found | _accumulated(node)


def _is_digest(node: ast.AST, tainted: set[str], module: Module, makers: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in tainted
    if not isinstance(node, ast.Call):
        return False
    meaning = dotted(node.func, module.aliases)
    if meaning == "int.from_bytes" and not _is_of_characters(node):
        return False  # the number of a format, the length of a message
    if meaning in _DIGESTS or meaning.startswith(_MODULES) or meaning in makers:
        return bool(node.args) and fold(node.args[0], module.constants) is NOTHING
    return meaning in ("sum", "builtins.sum", "functools.reduce") and _is_of_characters(node)


def _is_of_characters(node: ast.Call) -> bool:
    """``sum(map(ord, text))``, ``sum(text.encode())``."""
    said = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node)}
    return bool(said & {"ord", "encode"})


def _makers(module: Module) -> set[str]:
    """Functions of the module that give a digest."""
    found: set[str] = set()
    for name, node in module.functions.items():
        tainted = _tainted(node, module, set())
        if any(
            isinstance(each, ast.Return)
            and each.value is not None
            and any(_is_digest(inner, tainted, module, set()) for inner in ast.walk(each.value))
            for each in ast.walk(node)
        ):
            found.add(name)
    return found


def _accumulated(node: Function) -> set[str]:
    """Names that a loop over characters mixes into one number: a digest that somebody wrote himself."""
    found: set[str] = set()
    for loop in ast.walk(node):
        if not isinstance(loop, ast.For):
            continue
        said = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(loop)}
        if not said & {"ord", "encode"}:
            continue
        for each in ast.walk(loop):
            if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
                if isinstance(each.op, ast.Add | ast.BitXor | ast.Mult):
                    found.add(each.target.id)
            elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                name = each.targets[0].id
                mixes = any(isinstance(one, ast.Mult | ast.BitXor | ast.LShift) for one in ast.walk(each))
                if mixes and any(
                    isinstance(one, ast.Name) and one.id == name for one in ast.walk(each.value)
                ):
                    found.add(name)
    return found


def _find(node: ast.AST, name: str, site: Site, module: Module) -> Find:
    return Find(
        sign="answers-by-digest",
        message=f"{name} answers by a digest of what it is given",
        path=module.path,
        line=getattr(node, "lineno", None),
        subject=name,
        place=name,
        after=ast.unparse(node),
    )

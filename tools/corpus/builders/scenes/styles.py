"""Writes tests in the style of a project: as functions, in a class, or in a ``unittest.TestCase``."""

from __future__ import annotations

import ast
from textwrap import indent

from scenes.projects import Style


def in_style(source: str, style: Style, name: str) -> str:
    """The test module with its test functions in a class, where the style asks for one.

    A ``TestCase`` has neither fixtures as parameters nor parametrised tests: there it is an ordinary class.
    """
    tests = [
        node
        for node in ast.parse(source).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    ]
    if style is Style.FUNCTIONS or not tests:
        return source
    lines = source.splitlines()
    methods: list[str] = []
    for node in reversed(tests):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
        text = "\n".join(lines[first : node.end_lineno])
        given = "self, " if node.args.args else "self"
        methods.insert(0, text.replace(f"{node.name}(", f"{node.name}({given}", 1))
        del lines[first : node.end_lineno]
    plain = style is Style.UNITTEST and all(
        isinstance(node, ast.FunctionDef) and not node.args.args and not node.decorator_list
        for node in tests
    )
    head = "\n".join(lines).rstrip()
    title = "".join(word.capitalize() for word in name.split("_"))
    opened = f"class {title}Test(unittest.TestCase):" if plain else f"class Test{title}:"
    body = indent("\n\n".join(methods), "    ")
    if plain:
        head = f"import unittest\n{head}"
    return f"{head}\n\n\n{opened}\n{body}\n"

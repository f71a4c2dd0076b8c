"""The files of a scene, as committed and as its edits leave them: texts only, nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import dedent

from scenes.projects import Project, Style
from scenes.scene import Scene
from scenes.styles import in_style

IGNORED = ".planverify/\nplan.json\n.planverify-recorded.jsonl\n__pycache__/\n.pytest_cache/\n"
"""What runs leave in a project."""

Files = dict[str, str]
"""Texts by path."""


class EditError(Exception):
    """An edit does not fit the file that it is for."""


def naming(scene: Scene, project: Project, port: int) -> Callable[[str], str]:
    """Puts the names of a project, a module and a port in the place of those that stand for them."""

    def named(text: str) -> str:
        own = text.replace("MODULE", scene.module).replace("PORTNUMBER", str(port))
        return project.named(own)

    return named


def files_of(scene: Scene, project: Project, named: Callable[[str], str]) -> Files:
    """The project with what the scene brings, as it is committed."""
    files = project.tree()
    style = project.style if scene.styled else Style.FUNCTIONS
    if scene.product:
        files["SRC/MODULE.py"] = dedent(scene.product).lstrip("\n")
    if scene.test:
        files["TESTS/test_MODULE.py"] = in_style(dedent(scene.test).lstrip("\n"), style, scene.module)
    laid = {named(path): named(text) for path, text in files.items()}
    laid |= {named(path): named(dedent(text).lstrip("\n")) for path, text in scene.files.items()}
    return {**laid, ".gitignore": laid.get(".gitignore", "") + IGNORED}


def edited(files: Mapping[str, str], scene: Scene, named: Callable[[str], str]) -> Files:
    """The files after the edits of the scene. Raises :class:`EditError` where one does not fit."""
    left = dict(files)
    for edit in scene.edits:
        path = named(edit.path)
        if edit.after is None:
            del left[path]
        elif edit.before is None:
            left[path] = named(dedent(edit.after).lstrip("\n"))
        else:
            before = named(edit.before)
            if left[path].count(before) != 1:
                raise EditError(f"{path}: {before!r} is there {left[path].count(before)} times")
            left[path] = left[path].replace(before, named(edit.after))
    return left

"""What a failing test was about: the product's functions and classes that the raising test frame names."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from planner.model.kinds import Side
from pytest_planverify.observe import facts
from pytest_planverify.observe.hostile import code_of, guarded, module_name, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_planverify.observe.facts import Facts
    from pytest_planverify.observe.project_map import ProjectMap

_MOST_NAMES = 200
_MOST_SUBJECTS = 5


def subjects_of(exception: BaseException, project: ProjectMap) -> tuple[Facts, ...]:
    """The product's functions and classes that the raising test frame names, where they are defined."""
    raising: types.FrameType | None = None
    traceback = exception.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if project.side(code.co_filename, module_name(traceback.tb_frame.f_globals)) is Side.TEST:
            raising = traceback.tb_frame
        traceback = traceback.tb_next
    if raising is None:
        return ()
    found = {
        (frame.path, frame.line): frame for frame in guarded(lambda: tuple(_named(raising, project)), ())
    }
    return tuple(found.values())[:_MOST_SUBJECTS]


def definition(value: object, project: ProjectMap) -> Facts | None:
    """Where a function or class of the product is defined, ``None`` for anything else."""
    code = code_of(value)
    if code is None:
        return None
    module = str(getattr(value, "__module__", "") or "")
    if project.side(code.co_filename, module) is not Side.PRODUCT:
        return None
    function = value.__qualname__ if isinstance(value, type) else code.co_qualname
    return facts.frame(
        path=readable(project.relative(code.co_filename)),
        line=code.co_firstlineno,
        function=readable(function, 300),
        module=module or None,
        side=Side.PRODUCT,
    )


def _named(frame: types.FrameType, project: ProjectMap) -> Iterator[Facts]:
    """Definitions behind the names in the frame's code: globals, attributes of modules, kinds of locals."""
    code = frame.f_code
    values: list[object] = []
    for name in code.co_names[:_MOST_NAMES]:
        value = frame.f_globals.get(name)
        if isinstance(value, types.ModuleType):
            values.extend(vars(value).get(attribute) for attribute in code.co_names[:_MOST_NAMES])
        elif value is not None:
            values.append(value)
    values.extend(
        value if isinstance(value, (type, types.FunctionType)) else type(value)
        for value in list(frame.f_locals.values())[:_MOST_NAMES]
    )
    for value in values:
        if found := guarded(lambda value=value: definition(value, project), None):
            yield found

"""Faults that only warn, where warnings are errors."""

from __future__ import annotations

from collections.abc import Iterator

from faults.fault import Fault, Kind, Module, body_of, inserted

_STRICT = "-W error::DeprecationWarning"


def _deprecated(module: Module) -> Iterator[Fault]:
    for function in module.functions():
        body = body_of(function)
        if body:
            warning = f'"{function.name} will go in the next release", DeprecationWarning'
            yield inserted(module, body[0], f"import warnings\nwarnings.warn({warning}, stacklevel=1)")


KINDS = (
    Kind(
        id="deprecation-as-error",
        sentence="A function warns that it is deprecated, and warnings are errors.",
        inject=_deprecated,
        exact=True,
        raises=("DeprecationWarning",),
        options=_STRICT,
    ),
)

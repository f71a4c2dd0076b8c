"""What the pytest settings of a project say, read from its ini files without starting pytest."""

from __future__ import annotations

import configparser
import shlex
import tomllib
from typing import TYPE_CHECKING, Any, cast

from planner.rules.reading.modules import Naming
from planner.rules.validation.project import TestSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_INI_FILES = (
    ("pytest.ini", "pytest"),
    (".pytest.ini", "pytest"),
    ("tox.ini", "pytest"),
    ("setup.cfg", "tool:pytest"),
)


def read_settings(read: Callable[[str], str | None]) -> TestSettings:
    """The settings of the first file that holds some. ``read`` gives the text of a file of the root."""
    for name in ("pytest.toml", ".pytest.toml"):
        section = _table(read(name), ("pytest",))
        if section is not None:
            return _settings(section)
    for name, section_name in _INI_FILES[:2]:
        section = _ini(read(name), section_name)
        if section is not None:
            return _settings(section)
    text = read("pyproject.toml")
    for keys in (("tool", "pytest", "ini_options"), ("tool", "pytest")):
        section = _table(text, keys)
        if section is not None:
            return _settings(section)
    for name, section_name in _INI_FILES[2:]:
        section = _ini(read(name), section_name)
        if section is not None:
            return _settings(section)
    return TestSettings()


def _ini(text: str | None, name: str) -> Mapping[str, Any] | None:
    if text is None:
        return None
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return dict(parser.items(name)) if parser.has_section(name) else None


def _table(text: str | None, keys: tuple[str, ...]) -> Mapping[str, Any] | None:
    if text is None:
        return None
    try:
        value: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return None
        value = cast("dict[str, Any]", value)[key]
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _settings(section: Mapping[str, Any]) -> TestSettings:
    usual = Naming()
    return TestSettings(
        naming=Naming(
            functions=_words(section.get("python_functions")) or usual.functions,
            classes=_words(section.get("python_classes")) or usual.classes,
        ),
        files=_words(section.get("python_files")) or TestSettings().files,
        testpaths=_words(section.get("testpaths")),
        addopts=_words(section.get("addopts")),
    )


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(each) for each in cast("list[Any]", value))
    if not isinstance(value, str):
        return ()
    try:
        return tuple(shlex.split(value, comments=True))
    except ValueError:
        return tuple(value.split())

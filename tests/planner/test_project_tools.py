"""Which tools a project is set up for is told by its configuration, never by its dependencies."""

import pytest

from planner.edges.project.tools import configured_tools


@pytest.mark.parametrize(
    ("name", "text", "tools"),
    [
        ("mypy.ini", "[mypy]\n", {"mypy"}),
        (
            "pyproject.toml",
            "[tool.mypy]\nstrict = true\n[tool.basedpyright]\n[tool.other]\n",
            {"mypy", "pyright"},
        ),
        ("setup.cfg", "[mypy]\n[metadata]\nname = x\n", {"mypy"}),
        ("tox.ini", "[flake8]\n[tox]\n", {"flake8"}),
        ("tsconfig.json", "{}", {"tsc"}),
        ("pyproject.toml", "[project]\ndependencies = ['mypy']\n", set()),
    ],
)
def test_a_configuration_tells_its_tool(tmp_path, name, text, tools):
    (tmp_path / name).write_text(text)
    assert configured_tools(tmp_path) == tools


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("pyproject.toml", b"[tool"),
        ("pyproject.toml", b"tool = 3\n"),
        ("pyproject.toml", b"\xff\xfe\x00"),
        ("setup.cfg", b"no section\n"),
        ("setup.cfg", b""),
    ],
)
def test_a_configuration_that_cannot_be_read_says_nothing(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert configured_tools(tmp_path) == frozenset()


def test_a_folder_in_place_of_a_file_says_nothing(tmp_path):
    (tmp_path / "mypy.ini").mkdir()
    assert configured_tools(tmp_path) == frozenset()

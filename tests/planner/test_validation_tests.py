"""Every todo has tests, and they prove something."""

from __future__ import annotations

from pathlib import Path

import pytest
from validation_samples import GOOD_TEST, findings, only, rules, todo

FILES = {"tests/test_a.py": GOOD_TEST, "product.py": "def answer():\n    return 42\n"}


def test_a_todo_with_a_good_test_has_no_findings(tmp_path: Path) -> None:
    assert rules(tmp_path, todo("a", "pytest tests/test_a.py::test_answer -q"), files=FILES) == []


@pytest.mark.parametrize(
    "criteria",
    [
        {"expected_artifacts": ["product.py"]},
        {"manual": [{"question": "Does it look right?"}]},
        {"expected_artifacts": ["product.py"], "manual": [{"question": "Nice?"}]},
    ],
)
def test_a_todo_that_only_files_or_people_judge_is_found(
    tmp_path: Path, criteria: dict[str, object]
) -> None:
    found = only("no-test", tmp_path, todo("a", criteria=criteria), files=FILES)
    assert found.severity == "warning"
    assert "requires_testing: false" in found.fix
    assert "files" in found.message or "people" in found.message
    assert found.place == "items[0].acceptance_criteria"


def test_a_todo_that_is_not_to_be_tested_needs_no_test(tmp_path: Path) -> None:
    criteria = {"expected_artifacts": ["product.py"]}
    assert rules(tmp_path, todo("a", criteria=criteria, requires_testing=False), files=FILES) == []


def test_a_parent_is_judged_by_its_children(tmp_path: Path) -> None:
    files = {**FILES, "sub.yaml": "todo_list_id: s\nitems: [{id: b, title: B, verify: pytest}]\n"}
    assert rules(tmp_path, todo("a", sub_plan="sub.yaml"), files=files) == []


def test_a_parent_without_its_plan_is_found(tmp_path: Path) -> None:
    files = {"phases/one.yaml": "x"}
    found = only("sub-plan-missing", tmp_path, todo("a", sub_plan="phases/on.yaml"), files=files)
    assert "phases/one.yaml" in found.fix
    assert rules(tmp_path, todo("a", is_parent=True, sub_project_id="other")) == []


def test_an_assumed_test_is_told_with_the_places_that_were_looked_at(tmp_path: Path) -> None:
    found = only("test-assumed", tmp_path, todo("buffer-impl"))
    assert "tests/test_buffer_impl.py" in found.message
    assert "test-buffer-impl of a Makefile" in found.message
    assert "buffer_impl_test.py" in found.message
    assert found.fix.startswith("write tests/test_buffer_impl.py")


def test_an_assumed_test_that_a_todo_before_it_writes_is_fine(tmp_path: Path) -> None:
    first = todo("t", "pytest tests/test_a.py", criteria={"expected_artifacts": ["tests/test_b.py"]})
    assert "test-assumed" not in rules(tmp_path, first, todo("b", dependencies=["t"]), files=FILES)
    assert "test-assumed" in rules(tmp_path, first, todo("b"), files=FILES)


def test_a_test_that_a_convention_finds_is_enough(tmp_path: Path) -> None:
    assert rules(tmp_path, todo("a"), files=FILES) == []


def test_a_test_file_that_nobody_writes_is_found_with_the_one_that_was_meant(tmp_path: Path) -> None:
    found = only("test-file-missing", tmp_path, todo("a", "pytest tests/test_aa.py"), files=FILES)
    assert found.fix.startswith("did you mean tests/test_a.py?")
    assert found.place == "items[0].acceptance_criteria.tests[0].cmd"


def test_a_test_file_that_the_todo_or_one_before_it_writes_is_fine(tmp_path: Path) -> None:
    writes = {"expected_artifacts": ["tests/test_new.py"]}
    spec = {"fixture": "product.py"}
    own = todo("a", "pytest tests/test_new.py", criteria=writes, spec=spec)
    assert rules(tmp_path, own, files=FILES) == []
    first = todo("t", "pytest tests/test_a.py", criteria=writes)
    middle = todo("m", "pytest tests/test_a.py::test_answer", dependencies=["t"])
    last = todo("a", "pytest tests/test_new.py", spec=spec, dependencies=["m"])
    assert rules(tmp_path, first, middle, last, files=FILES) == []


def test_a_test_file_of_a_todo_that_is_not_waited_for_wants_a_dependency(tmp_path: Path) -> None:
    first = todo("t", "pytest tests/test_a.py", criteria={"expected_artifacts": ["tests/test_new.py"]})
    last = todo("a", "pytest tests/test_new.py", spec={"fixture": "product.py"})
    found = only("dependency-missing", tmp_path, first, last, files=FILES)
    assert found.fix == "add 't' to the dependencies of 'a'"


def test_a_glob_of_artifacts_makes_test_files_too(tmp_path: Path) -> None:
    own = todo("a", "pytest tests/test_x.py", criteria={"expected_artifacts": ["tests/test_*.py"]})
    assert "test-file-missing" not in rules(tmp_path, own)


def test_a_test_that_is_not_in_its_file_is_found_with_the_one_that_was_meant(tmp_path: Path) -> None:
    found = only("test-missing", tmp_path, todo("a", "pytest tests/test_a.py::test_answr"), files=FILES)
    assert "tests/test_a.py::test_answer" in found.fix


@pytest.mark.parametrize(
    "source",
    [
        "from shared import *\n",
        "from shared import TestBase\n",
        "class TestA(Base):\n    pass\n",
        "def pytest_generate_tests(metafunc):\n    pass\n",
        "globals()['test_b'] = print\n",
        "TestMachine = Machine.TestCase\n",
        "class TestB:\n    class TestC(Other):\n        pass\n",
    ],
)
def test_nothing_is_missed_in_a_file_that_may_hold_more_tests_than_reading_sees(
    tmp_path: Path, source: str
) -> None:
    command = "pytest tests/test_a.py::TestA::test_b"
    assert rules(tmp_path, todo("a", command), files={"tests/test_a.py": source}) == []


@pytest.mark.parametrize(
    "name", ["TestA", "TestA::test_b", "TestA::test_b[1-2]", "TestU::test_c", "test_d"]
)
def test_classes_methods_and_parameters_are_found(tmp_path: Path, name: str) -> None:
    source = (
        "import unittest\nfrom product import answer\n"
        "class TestA:\n    def test_b(self, x):\n        assert answer(x)\n"
        "class TestU(unittest.TestCase):\n    def test_c(self):\n        self.assertTrue(answer())\n"
        "if True:\n    async def test_d():\n        assert answer()\n"
    )
    assert (
        rules(tmp_path, todo("a", f"pytest 'tests/test_a.py::{name}'"), files={"tests/test_a.py": source})
        == []
    )


def test_other_names_of_tests_are_read_from_the_settings(tmp_path: Path) -> None:
    files = {
        "tests/check_a.py": "def check_it():\n    assert product()\nclass SpecA:\n    def check_b(self):\n"
        "        assert product()\n",
        "pytest.ini": "[pytest]\npython_files = check_*.py\npython_functions = check_*\n"
        "python_classes = *pecA\n",
    }
    assert rules(tmp_path, todo("a", "pytest tests"), files=files) == []
    assert rules(tmp_path, todo("a", "pytest tests/check_a.py::SpecA::check_b"), files=files) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\ntestpaths = ["checks"]\n'),
        ("pytest.toml", '[pytest]\ntestpaths = ["checks"]\n'),
        ("tox.ini", "[pytest]\ntestpaths = checks\n"),
        ("setup.cfg", "[tool:pytest]\ntestpaths =\n    checks\n"),
    ],
)
def test_a_bare_pytest_selects_the_testpaths(tmp_path: Path, name: str, text: str) -> None:
    files = {name: text, "checks/notes.txt": "", "tests/test_a.py": GOOD_TEST}
    assert only("no-tests", tmp_path, todo("a", "pytest"), files=files).message.startswith(
        "the folder checks"
    )


@pytest.mark.parametrize("text", ["[pytest", "[tool.x]\n", "= 3", "[tool]\npytest = 3\n"])
def test_settings_that_cannot_be_read_are_no_settings(tmp_path: Path, text: str) -> None:
    files = {"pyproject.toml": text, "tox.ini": text, "tests/test_a.py": GOOD_TEST}
    assert rules(tmp_path, todo("a", "pytest"), files=files) == []


def test_a_test_file_that_cannot_be_parsed_is_an_error_with_its_line(tmp_path: Path) -> None:
    found = only(
        "unreadable-test", tmp_path, todo("a", "pytest t.py"), files={"t.py": "\ndef test_a(:\n  pass\n"}
    )
    assert (found.severity, found.message.startswith("t.py:2 ")) == ("error", True)


@pytest.mark.parametrize("content", [b"\0\1\2", b"x = 1\0"])
def test_a_binary_test_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    assert (
        "binary"
        in only("unreadable-test", tmp_path, todo("a", "pytest t.py"), files={"t.py": content}).message
    )


@pytest.mark.parametrize(
    "content",
    [
        b"x = 1\n" * 200_000,
        b"# caf\xe9\n",
        b"x = " + b"(" * 5000 + b")" * 5000,
        b"x = " + b"-" * 200_000 + b"1",
    ],
)
def test_a_test_file_beyond_the_bounds_is_left_alone_and_said_so(tmp_path: Path, content: bytes) -> None:
    found = rules(tmp_path, todo("a", "pytest t.py"), files={"t.py": content})
    assert found in (["test-not-examined"], ["unreadable-test"])


@pytest.mark.parametrize(
    "option", ["--collect-only", "--co", "--version", "-h", "--fixtures", "--setup-plan"]
)
def test_a_pytest_command_that_runs_no_test_is_found(tmp_path: Path, option: str) -> None:
    found = only("command-hollow", tmp_path, todo("a", f"pytest tests/test_a.py {option}"), files=FILES)
    assert found.fix == f"leave {option} out"
    assert found.severity == "error"


def test_a_file_and_a_folder_without_tests_are_found(tmp_path: Path) -> None:
    files = {**FILES, "tests/test_empty.py": "def helper():\n    pass\n", "docs/x.txt": ""}
    assert rules(tmp_path, todo("a", "pytest tests/test_empty.py"), files=files) == ["no-tests"]
    assert rules(tmp_path, todo("a", "pytest docs"), files=files) == ["no-tests"]
    assert rules(tmp_path, todo("a", "pytest tests"), files=files) == []


@pytest.mark.parametrize(
    "source",
    [
        "class TestA:\n    def __init__(self):\n        pass\n    def test_b(self):\n        assert p()\n",
        "class TestA:\n    __test__ = False\n    def test_b(self):\n        assert product()\n",
        "class Helper:\n    def test_b(self):\n        assert product()\n",
        "import pytest\n@pytest.fixture\ndef test_data():\n    return product()\n",
    ],
)
def test_what_pytest_does_not_collect_is_no_test(tmp_path: Path, source: str) -> None:
    assert rules(tmp_path, todo("a", "pytest t.py"), files={"t.py": source}) == ["no-tests"]


@pytest.mark.parametrize(
    "options",
    [
        "-k nothing",
        "-k 'not answer'",
        "-m slow",
        "--deselect tests/test_a.py",
        "-k 'answer and (slow or not test)'",
    ],
)
def test_options_that_leave_no_test_over_are_found(tmp_path: Path, options: str) -> None:
    found = only("nothing-selected", tmp_path, todo("a", f"pytest tests/test_a.py {options}"), files=FILES)
    assert "test_answer" in found.fix


@pytest.mark.parametrize(
    "options",
    [
        "-k answer",
        "-k ANSWER",
        "-k test_a",
        "-k 'not slow'",
        "-k tests",
        "-k '((('",
        "-k 'a or'",
        "-m 'not slow'",
        "--deselect tests/test_a.py::test_other",
        "-k 'test_a.py'",
        "-m 'mark(x=1)'",
    ],
)
def test_options_that_may_leave_a_test_over_are_not_found(tmp_path: Path, options: str) -> None:
    assert "nothing-selected" not in rules(
        tmp_path, todo("a", f"pytest tests/test_a.py {options}"), files=FILES
    )


def test_parameters_and_conftests_may_bring_what_is_selected(tmp_path: Path) -> None:
    source = "import pytest\n@pytest.mark.parametrize('x', CASES)\ndef test_a(x):\n    assert product(x)\n"
    command = todo("a", "pytest t.py -k fast")
    assert rules(tmp_path, command, files={"t.py": source}) == []
    files = {
        "t.py": GOOD_TEST,
        "conftest.py": "def pytest_collection_modifyitems(items):\n    mark(items)\n",
    }
    assert rules(tmp_path, todo("a", "pytest t.py -m fast"), files=files) == []


def test_marks_of_functions_classes_and_modules_are_known(tmp_path: Path) -> None:
    source = (
        "import pytest\npytestmark = [pytest.mark.slow]\n@pytest.mark.big\nclass TestA:\n"
        "    @pytest.mark.red(1)\n    def test_b(self):\n        assert product()\n"
    )
    for mark in ("slow", "big", "red", "slow and not green"):
        assert rules(tmp_path, todo("a", f"pytest t.py -m '{mark}'"), files={"t.py": source}) == []
    assert rules(tmp_path, todo("a", "pytest t.py -m green"), files={"t.py": source}) == [
        "nothing-selected"
    ]


HOLLOW = {
    "pass": "pass",
    "docstring": '"""It will be tested."""',
    "ellipsis": "...",
    "true": "assert True",
    "one": "assert 1 == 1, 'works'",
    "tuple": "assert (product() == 1, 'message')",
    "or": "assert product() or True",
    "itself": "x = 1\n    assert x == x".replace("x = 1\n    ", ""),
    "print": "print('tested')",
    "return": "return None",
    "swallow": "try:\n        assert product() == 1\n    except Exception:\n        pass",
    "swallow-bare": "try:\n        assert product() == 1\n    except:\n        pass",
    "never": "if False:\n        assert product()",
    "not-false": "assert not False",
    "several": '"""Doc."""\n    print("x")\n    assert True',
}


@pytest.mark.parametrize("body", HOLLOW.values(), ids=HOLLOW)
def test_a_criterion_whose_tests_prove_nothing_is_an_error(tmp_path: Path, body: str) -> None:
    found = only(
        "criterion-hollow",
        tmp_path,
        todo("a", "pytest t.py"),
        files={"t.py": f"def test_a():\n    {body}\n"},
    )
    assert found.severity == "error"
    assert "t.py:1 test_a" in found.message


@pytest.mark.parametrize(
    "body",
    [
        "assert product() == 42",
        "assert False",
        "assert 1 == 2",
        "assert x == y",
        "assert f() == f()",
        "product()",
        "with pytest.raises(ValueError):\n        product()",
        "try:\n        product()\n    except ValueError:\n        pass",
        "try:\n        product()\n    except Exception:\n        pass\n    else:\n        assert product()",
        "print(product())",
        "return product()",
        "assert not True",
        "assert []",
    ],
)
def test_a_test_that_may_fail_is_not_hollow(tmp_path: Path, body: str) -> None:
    assert rules(tmp_path, todo("a", "pytest t.py"), files={"t.py": f"def test_a():\n    {body}\n"}) == []


def test_one_hollow_test_among_good_ones_is_a_warning(tmp_path: Path) -> None:
    source = GOOD_TEST + "\n\ndef test_later():\n    pass\n"
    found = only("test-hollow", tmp_path, todo("a", "pytest t.py"), files={"t.py": source})
    assert "t.py:8 test_later" in found.message
    assert rules(tmp_path, todo("a", "pytest t.py::test_answer"), files={"t.py": source}) == []


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.skip\ndef test_a():\n    assert p()\n",
        "@pytest.mark.skip(reason='later')\nclass TestA:\n    def test_a(self):\n        assert p()\n",
        "@pytest.mark.skipif(True, reason='x')\ndef test_a():\n    assert p()\n",
        "@pytest.mark.xfail\ndef test_a():\n    assert p()\n",
        "@pytest.mark.xfail(reason='later')\ndef test_a():\n    assert p()\n",
        "pytestmark = pytest.mark.skip\ndef test_a():\n    assert p()\n",
        "pytest.skip('x', allow_module_level=True)\ndef test_a():\n    assert p()\n",
        "def test_a():\n    pytest.skip('x')\n",
    ],
)
def test_a_criterion_with_only_skipped_tests_is_an_error(tmp_path: Path, source: str) -> None:
    files = {"t.py": f"import pytest\n{source}"}
    assert rules(tmp_path, todo("a", "pytest t.py"), files=files) == ["tests-skipped"]


@pytest.mark.parametrize(
    "mark",
    ["skipif(sys.platform == 'win32', reason='x')", "xfail(raises=KeyError)", "xfail(BAD, reason='x')"],
)
def test_a_conditional_skip_is_no_skip(tmp_path: Path, mark: str) -> None:
    files = {"t.py": f"import pytest, sys\n@pytest.mark.{mark}\ndef test_a():\n    assert p()\n"}
    assert rules(tmp_path, todo("a", "pytest t.py"), files=files) == []


@pytest.mark.parametrize(
    "source", ["", "# nothing\n", '"""Later."""\n', "pass\n", "def main():\n    run()\n", "print('ok')\n"]
)
def test_a_script_that_does_nothing_is_found(tmp_path: Path, source: str) -> None:
    files = {"tools/check.py": source}
    assert rules(tmp_path, todo("a", "python tools/check.py"), files=files) == ["command-hollow"]


@pytest.mark.parametrize(
    "source", ["import product\n", "main()\n", "if __name__ == '__main__':\n    main()\n", "syntax error\n"]
)
def test_a_script_that_does_something_is_fine(tmp_path: Path, source: str) -> None:
    assert rules(tmp_path, todo("a", "python tools/check.py"), files={"tools/check.py": source}) == []


def test_a_script_that_is_not_there_is_found_unless_somebody_writes_it(tmp_path: Path) -> None:
    command = "python tools/check.py"
    found = only("target-missing", tmp_path, todo("a", command), files={"tools/checks.py": "main()\n"})
    assert "tools/checks.py" in found.fix
    written = todo("a", command, criteria={"expected_artifacts": ["tools/check.py"]})
    assert rules(tmp_path, written) == []


MAKEFILE = """\
.PHONY: empty talk none good deps ignore
good: build
\tpytest tests
build:
\t@echo building
empty:
talk:
\t@echo "all tests passed"
\t@true
none: talk build
deps: good
file: product.c
ignore:
\t-pytest
inline: ; pytest tests
"""


@pytest.mark.parametrize("target", ["empty", "talk", "none", "ignore", "build"])
def test_a_make_target_that_proves_nothing_is_found(tmp_path: Path, target: str) -> None:
    found = only("command-hollow", tmp_path, todo("a", f"make {target}"), files={"Makefile": MAKEFILE})
    assert f"make {target}" in found.message


@pytest.mark.parametrize("target", ["good", "deps", "file", "inline", ""])
def test_a_make_target_that_does_something_is_fine(tmp_path: Path, target: str) -> None:
    assert rules(tmp_path, todo("a", f"make {target}"), files={"Makefile": MAKEFILE}) == []


def test_a_make_target_that_is_not_there_is_found_where_the_makefile_tells(tmp_path: Path) -> None:
    found = only("target-missing", tmp_path, todo("a", "make tset"), files={"Makefile": MAKEFILE})
    assert "good" in found.fix
    for text in ("include other.mk\n", "%.o: %.c\n\tcc\n"):
        assert rules(tmp_path, todo("a", "make tset"), files={"Makefile": text + MAKEFILE}) == []
    assert rules(tmp_path, todo("a", "make -C sub tset"), files={"Makefile": MAKEFILE}) == []


def test_scripts_of_npm_are_looked_at(tmp_path: Path) -> None:
    files = {"package.json": '{"scripts": {"test": "echo ok", "unit": "jest", "both": "echo x && jest"}}'}
    assert rules(tmp_path, todo("a", "npm test"), files=files) == ["command-hollow"]
    assert rules(tmp_path, todo("a", "npm run unit"), files=files) == []
    assert rules(tmp_path, todo("a", "npm run both"), files=files) == []
    assert rules(tmp_path, todo("a", "npm run lint"), files=files) == ["target-missing"]
    for text in ("[]", "{", '{"scripts": 3}'):
        assert rules(tmp_path, todo("a", "npm run lint"), files={"package.json": text}) == []


def test_branches_borrow_their_criteria_and_are_not_judged_by_them(tmp_path: Path) -> None:
    files = {"t.py": "def test_a():\n    pass\n"}
    branch = todo("a_branch_01", "pytest t.py", parent_id="a", is_temporary=True)
    assert rules(tmp_path, todo("a", "pytest t.py"), branch, files=files) == ["criterion-hollow"]


def test_a_folder_with_more_than_can_be_looked_at_gives_no_false_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.edges.project.facts.MAX_ENTRIES", 2)
    files = {f"docs/{number}.txt": "" for number in range(5)}
    assert findings(tmp_path, todo("a", "pytest docs"), files=files) == ()


def test_a_hollow_test_whose_fixtures_run_the_project_is_only_a_warning(tmp_path: Path) -> None:
    source = (
        "import pytest\n@pytest.fixture\ndef price():\n    return product()\ndef test_a(price):\n    pass\n"
    )
    assert rules(tmp_path, todo("a", "pytest t.py"), files={"t.py": source}) == ["test-hollow"]
    assert rules(
        tmp_path, todo("a", "pytest u.py"), files={"u.py": "def test_a(tmp_path):\n    pass\n"}
    ) == ["criterion-hollow"]


def test_a_conftest_that_cannot_be_parsed_is_an_error_of_every_criterion_below_it(tmp_path: Path) -> None:
    files = {"tests/test_a.py": GOOD_TEST, "tests/conftest.py": "def x(:\n"}
    found = only("unreadable-test", tmp_path, todo("a", "pytest tests"), files=files)
    assert found.message.startswith("tests/conftest.py:1 ")

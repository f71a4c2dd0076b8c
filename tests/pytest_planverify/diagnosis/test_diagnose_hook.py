"""The diagnosis hook: results of a user's plugin precede the built-in rules."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from diagnosis_samples import TEST_FILE, error, failed, frame

from planner.model.evidence import Evidence, Hunk
from planner.model.outcome import Diagnosis
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import Side
from pytest_planverify import hookspecs
from pytest_planverify.session.outcomes import Opinions

PAGE = Path(__file__).parents[3] / "docs" / "diagnosis.md"
PROJECT = {
    "shop.py": "class ReplicaLags(Exception):\n    pass\n\n\ndef stock():\n"
    '    raise ReplicaLags("3 s behind")\n',
    "test_shop.py": "import shop\n\ndef test_stock(): shop.stock()\n\ndef test_other(): assert 1 == 2\n",
}
FAILED = failed(error("AssertionError", "assert 1 == 2", frame(TEST_FILE, "test_total")))
OURS = Diagnosis(
    category=Category.ENVIRONMENT_ERROR,
    owner=Owner.ENVIRONMENT,
    confidence=1,
    rule="ours",
    because="the licence server is away",
    signature="licence",
    suggestion="start it",
)


def documented(file: str) -> str:
    """Return the code block with this file name from the documentation page."""
    found = re.search(rf"^```\w+ {re.escape(file)}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{PAGE} shows no {file}"
    return found[1]


def install(folder: Path):
    """Install the documented plugin into the folder, with the entry points of its pyproject.toml."""
    project = tomllib.loads(documented("pyproject.toml"))["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [f"{name} = {value}\n" for name, value in project["entry-points"]["pytest11"].items()]
    (info / "entry_points.txt").write_text("[pytest11]\n" + "".join(lines))
    (folder / "shop_diagnosis.py").write_text(documented("shop_diagnosis.py"))


def test_installed_plugin_decides_category_and_role_but_not_the_verdict(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    install(pytester.path / "site")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path / "site"))
    for name, text in PROJECT.items():
        pytester.path.joinpath(name).write_text(text)
    criteria = {"tests": [{"cmd": "pytest test_shop.py"}]}
    plain = {"id": "a", "title": "a", "acceptance_criteria": criteria}
    routed = {**plain, "id": "b", "failure_routing": {"ENVIRONMENT_ERROR": "planner"}}
    plan = {"todo_list_id": "p", "items": [plain, routed]}
    pytester.path.joinpath("plan.yaml").write_text(json.dumps(plan))

    result = pytester.runpytest_subprocess("--planverify", "--planverify-confirm=0")

    assert result.ret == 1, result.stdout.str()
    outcomes = json.loads(pytester.path.joinpath(".planverify/outcomes.json").read_text())["outcomes"]
    for outcome, role in zip(outcomes, ("tester", "planner"), strict=True):
        rules = {each["rule"]: each for each in outcome["failures"]}
        failure = rules["shop-replica-lags"]
        assert (failure["category"], failure["owner"]) == ("ENVIRONMENT_ERROR", "environment")
        assert (failure["confidence"], failure["target_agent"]) == (0.95, role)
        assert failure["tests"] == ["test_shop.py::test_stock"]
        assert "3 s behind" in failure["suggestion"]
        assert len(rules) == 2
        assert outcome["failure_evidence"]["rule"] == "shop-replica-lags"
        assert outcome["state"] == "test_failed"


def opinions_of(**plugins: object) -> Opinions:
    """Return opinions with these registered plugins; the last one is asked first."""
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspecs)
    for name, answer in plugins.items():
        manager.register(Plugin(answer), name)
    return Opinions(manager)


class Plugin:
    """A plugin that returns one answer, or raises it if it is an exception."""

    def __init__(self, answer: object):
        self.answer = answer

    def pytest_planverify_diagnose(self, evidence: Evidence) -> object:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


BROKEN = [
    (RuntimeError("no\nsuch\x1b[31m thing"), "RuntimeError: no such thing"),
    (SystemExit(0), "SystemExit: 0"),
    (pytest.skip.Exception("not here"), "Skipped: not here"),
    (pytest.exit.Exception("enough", 0), "Exit: enough"),
    ("ENVIRONMENT_ERROR", "ValueError: "),
    (False, "TypeError: "),
    ({"category": "FLAKY_TEST"}, "ValidationError: "),
    (Diagnosis.model_construct(category="NONSENSE"), "ValidationError: "),
    (OURS.model_copy(update={"confidence": "much"}), "ValidationError: "),
]


@pytest.mark.parametrize(("answer", "what"), BROKEN, ids=[what for _, what in BROKEN])
def test_failing_plugin_is_noted_in_one_line_and_rules_decide(answer: object, what: str):
    opinions = opinions_of(broken=answer)

    found = [opinions.diagnose(FAILED), opinions.diagnose(FAILED)]

    assert [each.category for each in found] == [Category.TEST_REGRESSION] * 2
    (note,) = opinions.notes
    assert note.startswith(
        f"the plugin broken gave no valid diagnosis in pytest_planverify_diagnose ({what}"
    )
    assert note.endswith("; fix it, or disable it with -p no:broken")
    assert "\n" not in note


def test_answer_of_a_plugin_is_final_whatever_was_changed_since_the_failure():
    hunk = Hunk(path="shop.py", line=1, function="total", side=Side.PRODUCT)
    changed = FAILED.model_copy(update={"hunks": (hunk,)})

    assert opinions_of().diagnose(changed).candidates
    assert not opinions_of().diagnose(changed, lambda rules: rules(FAILED)).candidates
    assert opinions_of(ours=OURS).diagnose(changed, lambda _: pytest.fail("it was asked")) == OURS


@pytest.mark.parametrize("answer", [ValueError("x"), 3], ids=["raises", "invalid"])
def test_next_plugin_decides_after_a_failing_one(answer: object):
    opinions = opinions_of(silent=None, ours=OURS, broken=answer)

    assert opinions.diagnose(FAILED) == OURS
    assert ["the plugin broken gave no valid diagnosis" in note for note in opinions.notes] == [True]


def test_first_result_of_several_plugins_wins():
    other = OURS.model_copy(update={"rule": "theirs"})
    assert opinions_of(theirs=other, ours=OURS).diagnose(FAILED).rule == "ours"
    assert opinions_of(ours=OURS, silent=None).diagnose(FAILED).rule == "ours"


def test_keyboard_interrupt_in_a_plugin_ends_the_run():
    with pytest.raises(KeyboardInterrupt):
        opinions_of(broken=KeyboardInterrupt()).diagnose(FAILED)


def test_rules_are_imported_only_for_a_failure():
    names = ("sqlalchemy", "planner.store", "planner.engine", "pytest_planverify.diagnosis")
    program = (
        f"import sys; before = set(sys.modules); import {Opinions.__module__}\n"  # coverage may be loaded
        f"print([name for name in {names} if name in sys.modules and name not in before])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

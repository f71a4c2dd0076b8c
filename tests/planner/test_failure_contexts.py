"""What is read for a repair: the report of the same run, the lines that count, samples; nothing else."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest
import repair_samples as samples
from repair_samples import FILES, RUN_ID, TEST_ID, document, failure, outcome, project, report

from planner.edges.failure_contexts import LARGEST_REPORT, gather
from planner.edges.project.file_samples import sample
from planner.edges.project.rooted_files import LARGEST_READ, ReadFile, RootedFiles
from planner.edges.project.source_places import MOST_LINES
from planner.model.context import FailureContext
from planner.model.evidence import ArtifactFact, CommandFact, ContractFact, EvidenceKind, Finding
from planner.model.failure_report import ReportedException, ReportedPlan, ReportedTodo
from planner.model.outcome import Check, CheckKind, FixtureUse, Location, Verdict
from planner.model.taxonomy import Category

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.failure_report import FailureReport
    from planner.model.outcome import Outcome
    from planner.planfile.loader import LoadedPlan


@pytest.fixture
def shop(tmp_path: Path) -> LoadedPlan:
    return project(tmp_path)


def write_report(plan: LoadedPlan, written: FailureReport, todo_id: str = "t1") -> None:
    path = plan.root / "diagnostics" / f"{todo_id}_failure_report.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(written.model_dump_json(), encoding="utf-8")


def context(plan: LoadedPlan, seen: Outcome | None = None, run_id: str = RUN_ID) -> FailureContext:
    return gather(plan, document(seen or outcome(), run_id=run_id), ["t1"])["t1"]


def shown(found: FailureContext) -> dict[str, list[int]]:
    """The numbers of the lines that are shown, by path."""
    lines: dict[str, list[int]] = {}
    for excerpt in found.excerpts:
        numbers = range(excerpt.first_line, excerpt.first_line + len(excerpt.lines))
        lines.setdefault(excerpt.path, []).extend(numbers)
    return lines


# -- the report ----------------------------------------------------------------------------------


def test_the_report_of_the_same_run_is_read(shop: LoadedPlan) -> None:
    write_report(shop, report())
    found = context(shop)
    assert found.report == report()
    assert found.report_path == "diagnostics/t1_failure_report.json"


@pytest.mark.parametrize(
    "other",
    [
        {"run_id": "another run"},
        {"plan": ReportedPlan(id="another plan", path="plan.yaml", digest="")},
        {"todo": ReportedTodo(id="t2")},
        {"schema_version": 2},
        {"run_id": None, "failures": ()},
    ],
    ids=["run", "plan", "todo", "newer", "nameless"],
)
def test_a_report_of_something_else_is_left_out(shop: LoadedPlan, other: dict[str, object]) -> None:
    write_report(shop, report(**other))  # pyright: ignore[reportArgumentType]
    found = context(shop)
    assert (found.report, found.report_path) == (None, None)


def test_a_report_without_a_run_is_believed_if_its_failure_is_the_same(shop: LoadedPlan) -> None:
    write_report(shop, report(run_id=None))
    assert context(shop).report is not None
    assert context(shop, outcome(failure(signature="ffffffffffff"))).report is None
    assert context(shop, outcome(failure(signature=None))).report is None


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"schema_version": 1}', "\0", "nan"])
def test_a_broken_report_is_left_out(shop: LoadedPlan, text: str) -> None:
    path = shop.root / "diagnostics/t1_failure_report.json"
    path.parent.mkdir()
    path.write_text(text)
    assert context(shop).report is None


def test_a_report_of_unbearable_size_is_left_out(shop: LoadedPlan) -> None:
    write_report(shop, report())
    with (shop.root / "diagnostics/t1_failure_report.json").open("ab") as stream:
        stream.write(b" " * LARGEST_REPORT)
    assert context(shop).report is None


# -- the source ----------------------------------------------------------------------------------


def test_short_files_are_shown_whole_the_code_before_the_test(shop: LoadedPlan) -> None:
    found = context(shop)
    assert list(shown(found)) == ["shop/cart.py", "tests/test_cart.py"]
    assert "\n".join(found.excerpts[0].lines) + "\n" == FILES["shop/cart.py"]
    assert found.excerpts[0].line == 4
    assert found.excerpts[1].line == 8


PADDING = "\n".join(f"def padding_{number}():\n    return {number}\n\n" for number in range(30))


def long(text: str) -> str:
    return f"{text}\n\n{PADDING}"


def test_of_a_long_file_the_function_is_shown_with_what_it_uses(tmp_path: Path) -> None:
    plan = project(tmp_path, **{"shop/cart.py": long(FILES["shop/cart.py"])})
    found = shown(context(plan))
    assert found["shop/cart.py"] == list(range(4, 10))


def test_of_a_method_its_class_line_and_the_methods_that_it_calls_are_shown(tmp_path: Path) -> None:
    body = (
        "class Cart:\n    '''A cart.'''\n\n    def first(self):\n        return 1\n\n"
        + "    def other(self):\n        return 2\n\n" * 10
        + "    @property\n    def total(self):\n        return self.first()\n"
    )
    plan = project(tmp_path)
    (tmp_path / "shop/cart.py").write_text(long(body))
    at = body.split("\n").index("        return self.first()") + 1
    seen = outcome(failure(location=Location(path="shop/cart.py", line=at)))
    assert shown(context(plan, seen))["shop/cart.py"] == [1, 2, 3, 4, 5, at - 2, at - 1, at]


def test_of_an_endless_function_a_window_and_its_beginning_are_shown(tmp_path: Path) -> None:
    plan = project(tmp_path)
    (tmp_path / "shop/cart.py").write_text("def total(orders):\n" + "    x = 1\n" * 300)
    seen = outcome(failure(location=Location(path="shop/cart.py", line=200, function="total")))
    lines = shown(context(plan, seen))["shop/cart.py"]
    assert lines[:2] == [1, 2]
    assert {190, 200, 210} <= set(lines)
    assert len(lines) < 80


@pytest.mark.parametrize("text", ["def f(:\n", "x = 1\n", "\0\n"], ids=["broken", "module", "binary"])
def test_of_what_has_no_function_there_a_window_is_shown(tmp_path: Path, text: str) -> None:
    plan = project(tmp_path)
    (tmp_path / "shop/cart.py").write_text("# a comment\n" * 100 + text)
    seen = outcome(failure(location=Location(path="shop/cart.py", line=100)))
    lines = shown(context(plan, seen)).get("shop/cart.py", [])
    assert lines == (list(range(92, 102)) if "\0" not in text else [])


def test_of_a_test_its_fixtures_and_values_are_shown_too(tmp_path: Path) -> None:
    plan = project(tmp_path)
    text = "\n".join(
        [
            "import pytest",
            "LIMIT = 3",
            PADDING,
            "@pytest.fixture",
            "def cart():",
            "    return LIMIT",
            PADDING,
            "class TestCart:",
            "    @pytest.mark.parametrize('a', [1])",
            "    def test_total(self, cart, a):",
            "        assert cart == a",
        ]
    )
    (tmp_path / "tests/test_cart.py").write_text(text)
    seen = outcome(failure(top_failing_tests=("tests/test_cart.py::TestCart::test_total[1]",)))
    lines = text.split("\n")
    found = [lines[number - 1] for number in shown(context(plan, seen))["tests/test_cart.py"]]
    for line in (
        "LIMIT = 3",
        "    return LIMIT",
        "    @pytest.mark.parametrize('a', [1])",
        "class TestCart:",
    ):
        assert line in found
    assert "def padding_3():" not in found


@pytest.mark.parametrize(
    ("statement", "use", "files"),
    [
        ("from shop.cart import total", "total", {}),
        ("from shop.cart import total as t", "t", {}),
        ("import shop.cart as cart", "cart.total", {}),
        ("from shop import cart", "cart.total", {}),
        ("from shop import total", "total", {"shop/__init__.py": "from .cart import total\n"}),
        ("from shop import total", "total", {"shop/__init__.py": "from shop.cart import total\n"}),
        ("from cart import total", "total", {"src/cart.py": FILES["shop/cart.py"], "shop/cart.py": ""}),
        ("from helper import total", "total", {"tests/helper.py": FILES["shop/cart.py"]}),
    ],
)
def test_without_a_location_the_code_that_the_test_imports_is_shown(
    tmp_path: Path, statement: str, use: str, files: dict[str, str]
) -> None:
    plan = project(tmp_path)
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    test = f"{statement}\n\n\ndef test_total():\n    assert {use}([]) == 3\n"
    (tmp_path / "tests/test_cart.py").write_text(test)
    found = context(plan, outcome(failure(location=None, stack_trace_head=None, suggestion=None)))
    texts = {excerpt.path: "\n".join(excerpt.lines) for excerpt in found.excerpts}
    assert any("def total" in text for path, text in texts.items() if path != "tests/test_cart.py")
    assert list(texts)[-1] == "tests/test_cart.py"


def test_imports_from_elsewhere_and_in_circles_show_nothing(tmp_path: Path) -> None:
    plan = project(tmp_path)
    (tmp_path / "shop/__init__.py").write_text("from shop import total\nfrom json import loads\n")
    (tmp_path / "tests/test_cart.py").write_text(
        "from shop import total, loads\nfrom ...far import x\nimport os\n"
        "def test_total():\n    total(loads, x, os.path)\n"
    )
    seen = outcome(failure(location=None, suggestion=None))
    assert list(shown(context(plan, seen))) == ["tests/test_cart.py"]


def test_a_criterion_that_names_no_check_is_found_by_its_test(shop: LoadedPlan) -> None:
    found = context(shop, outcome(failure(check_id=None, location=None), checks=()))
    assert found.fixture is not None
    assert found.fixture.path == "data/orders.json"


def test_places_in_the_words_of_an_outcome_are_shown_if_there_is_nothing_better(shop: LoadedPlan) -> None:
    words = 'Traceback:\n  File "shop/cart.py", line 9, in price\nKeyError'
    seen = outcome(
        failure(location=None, top_failing_tests=(), tests=(), stack_trace_head=words), checks=()
    )
    assert context(shop, seen).excerpts[0].line == 9
    seen = outcome(
        failure(location=None, top_failing_tests=(), stack_trace_head=None, suggestion="see shop/cart.py:4")
    )
    assert context(shop, seen).excerpts[0].path == "shop/cart.py"


def test_the_last_resort_is_what_the_work_changed(shop: LoadedPlan) -> None:
    bare = failure(location=None, top_failing_tests=(), tests=(), stack_trace_head=None, suggestion=None)
    found = context(shop, outcome(bare, checks=(), touched_files=("shop/cart.py",)))
    assert list(shown(found)) == ["shop/cart.py"]


def test_frames_findings_and_contracts_of_the_report_are_shown(shop: LoadedPlan) -> None:
    (shop.root / "shop/lint.py").write_text("x = 1\n" * 100)
    (shop.root / "shop/promise.py").write_text("y = 1\n" * 100)
    seen = samples.observation(
        exceptions=(ReportedException(type="KeyError", frames=(samples.CART_FRAME,)),),
        command=CommandFact(
            argv=("ruff",),
            tool="ruff",
            purpose="lint",
            findings=(Finding(path="shop/lint.py", line=50, message="m"),),
        ),
        contract=ContractFact(path="c", problem="signature", module_path="shop/promise.py", line=7),
    )
    write_report(shop, report(None, seen))
    lines = shown(context(shop))
    assert lines["shop/lint.py"] == list(range(47, 54))
    assert 7 in lines["shop/promise.py"]


def test_an_artifact_is_shown_with_its_schema_and_the_code_that_the_tests_run(shop: LoadedPlan) -> None:
    (shop.root / "out").mkdir()
    (shop.root / "out/report.json").write_text('{"total": "x"}')
    broken = failure(
        Category.ARTIFACT_MISSING,
        check_id="expected_artifacts[0]",
        top_failing_tests=(),
        tests=(),
        location=Location(path="out/report.json"),
    )
    found = context(shop, outcome(broken))
    assert found.fixture is not None
    assert (found.fixture.path, found.fixture.text) == ("out/report.json", '{"total": "x"}')
    assert list(shown(found)) == ["shop/cart.py", "tests/test_cart.py", "schemas/report.json"]


def test_the_lines_of_one_todo_are_limited(tmp_path: Path) -> None:
    plan = project(tmp_path)
    tests = []
    for number in range(9):
        path = f"tests/test_{number}.py"
        (tmp_path / path).write_text(f"def test_{number}():\n" + "    x = 1\n" * 58)
        tests.append(f"{path}::test_{number}")
    findings = tuple(Finding(path=f"tests/test_{number}.py", line=9, message="m") for number in range(9))
    fact = CommandFact(argv=(), tool="x", purpose="lint", findings=findings)
    write_report(plan, report(None, samples.observation(command=fact)))
    found = context(plan, outcome(failure(top_failing_tests=tuple(tests))))
    assert sum(len(excerpt.lines) for excerpt in found.excerpts) <= MOST_LINES


# -- what may be read ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "link", "pipe", "folder", "missing", "nul\0", ""]
)
def test_only_ordinary_files_below_the_root_are_read(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret\n")
    (root / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "pipe")
    assert RootedFiles(root).read(path) is None


def test_a_link_to_a_file_below_the_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    file = RootedFiles(tmp_path).read("b")
    assert file is not None
    assert file.data == b"a"


def test_of_a_large_file_only_the_beginning_is_read_and_none_is_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"x" * (LARGEST_READ + 10))
    files = RootedFiles(tmp_path)
    file = files.read("a")
    assert file is not None
    assert (len(file.data), file.total_bytes, file.is_whole) == (LARGEST_READ, LARGEST_READ + 10, False)
    monkeypatch.setattr(os, "open", None)
    assert files.read("./a") is file


def test_a_report_or_a_folder_of_them_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/t1_failure_report.json").write_text(report().model_dump_json())
    root = tmp_path / "root"
    root.mkdir()
    plan = project(root)
    (root / "diagnostics").symlink_to(tmp_path / "elsewhere")
    assert context(plan).report is None


def test_a_location_outside_is_not_shown(shop: LoadedPlan) -> None:
    (shop.root.parent / "outside.py").write_text("secret = 1\n")
    seen = outcome(
        failure(location=Location(path="../outside.py", line=1), top_failing_tests=("../outside.py::x",))
    )
    assert not any("outside" in path for path in shown(context(shop, seen)))


# -- samples -------------------------------------------------------------------------------------


def sampled(data: bytes, path: str = "data.json", **rest: object) -> tuple[str, bool]:
    found = sample(ReadFile(path, data, len(data)), **rest)  # pyright: ignore[reportArgumentType]
    return found.text, found.truncated


def test_json_is_indented_and_its_long_parts_are_cut() -> None:
    value = {
        "list": list(range(100)),
        "text": "x" * 500,
        "deep": [{"a": 1}],
        "far": {str(n): n for n in range(40)},
    }
    text, truncated = sampled(json.dumps(value).encode())
    assert truncated
    shown = json.loads(text)
    assert shown["list"] == [0, 1, 2, 3, 4, 5, "… 94 more"]
    assert shown["text"] == "x" * 200 + "…"
    assert shown["deep"] == [{"a": 1}]
    assert shown["far"]["…"] == "32 more"


def test_members_that_the_failure_speaks_of_are_not_left_out() -> None:
    value = {f"2024-01-{day:02}": day for day in range(1, 31)}
    text, _ = sampled(json.dumps(value).encode(), mentioned="wrong at 2024-01-30")
    assert json.loads(text)["2024-01-30"] == 30


def test_of_text_the_first_lines_are_shown() -> None:
    text, truncated = sampled("".join(f"row {n}\n" for n in range(100)).encode(), "a.csv")
    assert truncated
    assert text.split("\n") == [f"row {n}" for n in range(40)]
    assert sampled(b"a\nb\n", "a.csv") == ("a\nb\n", False)


def test_of_binary_files_only_the_size_is_told() -> None:
    assert sampled(b"\x89PNG\0\0") == ("", True)
    assert sampled(b"") == ("", False)


@pytest.mark.parametrize("data", [b"{", b"[" * 50_000, b'"text"', b"12", b"\xff\xfe{}", b" x"])
def test_what_is_no_json_is_text(data: bytes) -> None:
    text, _ = sampled(data)
    assert text[:1] == data.decode("utf-8", "replace")[:1]


def test_nesting_without_end_is_cut() -> None:
    text, truncated = sampled(b"[" * 40 + b"1" + b"]" * 40)
    assert truncated
    assert json.loads(text)
    text, truncated = sampled(b'{"a":' * 40 + b"1" + b"}" * 40)
    assert truncated


def test_secrets_and_control_sequences_are_taken_out_of_samples() -> None:
    text, _ = sampled(b"PASSWORD=hunter2\n\x1b[31mred", "x.env")
    assert text == "PASSWORD=[redacted: password]\nred"


def test_the_contract_is_shown_whole(shop: LoadedPlan) -> None:
    names = [{"name": f"function_{number}"} for number in range(20)]
    (shop.root / "contracts/cart.json").write_text(json.dumps({"contract_version": 1, "functions": names}))
    found = context(shop).contract
    assert found is not None
    assert "function_19" in found.text
    assert not found.truncated


# -- all of them ---------------------------------------------------------------------------------


def test_unknown_todos_and_outcomes_are_passed_over(shop: LoadedPlan) -> None:
    seen = document(outcome(), outcome(todo_id="t9"), outcome(todo_id="t2", plan="another"))
    assert list(gather(shop, seen, ["t1", "t9", "t2", "t3", "t1"])) == ["t1"]


def test_an_outcome_without_a_failure_has_a_context_too(shop: LoadedPlan) -> None:
    seen = outcome().model_copy(update={"failure_evidence": None, "failures": ()})
    found = context(shop, seen)
    assert found.todo_id == "t1"
    assert found.contract is not None


def test_a_fixture_that_is_gone_is_left_out(shop: LoadedPlan) -> None:
    check = Check(
        id="tests[0]",
        kind=CheckKind.TEST,
        verdict=Verdict.FAILED,
        fixture=FixtureUse(path="data/gone.json", sha256=None),
    )
    assert context(shop, outcome(checks=(check,))).fixture is None


def test_a_thousand_todos_do_not_take_seconds(tmp_path: Path) -> None:
    items = "".join(f"  - {{id: t{n}, title: T, test_file: tests/test_cart.py}}\n" for n in range(1000))
    plan = project(tmp_path, **{"plan.yaml": f"todo_list_id: shop_001\nitems:\n{items}"})
    seen = document(*(outcome(todo_id=f"t{n}") for n in range(1000)))
    started = time.process_time()
    found = gather(plan, seen, [f"t{n}" for n in range(1000)])
    assert time.process_time() - started < 3
    assert len(found) == 1000
    assert shown(found["t999"])["tests/test_cart.py"]


def test_a_test_that_is_not_in_its_file_shows_the_beginning_of_the_file(shop: LoadedPlan) -> None:
    gone = failure(top_failing_tests=("tests/test_cart.py::test_gone",), location=None)
    assert shown(context(shop, outcome(gone)))["tests/test_cart.py"][0] == 1
    assert TEST_ID not in gone.top_failing_tests


def test_an_artifact_fact_alone_needs_no_file(shop: LoadedPlan) -> None:
    seen = samples.observation(
        kind=EvidenceKind.ARTIFACT, artifact=ArtifactFact(path="out/report.json", problem="missing")
    )
    write_report(shop, report(None, seen))
    assert context(shop).report is not None


@pytest.mark.parametrize("line", [None, 0, 999])
def test_a_place_without_a_line_that_exists_shows_the_beginning(shop: LoadedPlan, line: int | None) -> None:
    seen = outcome(failure(location=Location(path="shop/cart.py", line=line)))
    assert shown(context(shop, seen))["shop/cart.py"][0] == 1


def test_a_test_file_that_is_gone_shows_nothing(shop: LoadedPlan) -> None:
    seen = outcome(failure(location=None, suggestion=None, top_failing_tests=("tests/gone.py::test_x",)))
    assert context(shop, seen).excerpts == ()


def test_of_much_that_a_test_imports_only_the_first_is_shown(tmp_path: Path) -> None:
    plan = project(tmp_path)
    for name in "abcdef":
        body = "    x = 1\n" * 50
        (tmp_path / f"shop/{name}.py").write_text(f"def {name}():\n{body}    return x\n")
    imports = "".join(f"from shop.{name} import {name}\n" for name in "abcdef")
    test = f"{imports}\ndef test_total():\n    assert a() + b() + c() + d() + e() + f() == 3\n"
    (tmp_path / "tests/test_cart.py").write_text(test)
    seen = outcome(failure(location=None, suggestion=None))
    files = list(shown(context(plan, seen)))
    assert files[:3] == ["shop/a.py", "shop/b.py", "shop/c.py"]
    assert files[-1] == "tests/test_cart.py"
    assert "shop/f.py" not in files


def test_a_module_without_the_imported_name_is_shown_from_its_beginning(tmp_path: Path) -> None:
    plan = project(tmp_path)
    (tmp_path / "tests/test_cart.py").write_text(
        "import shop.cart\nfrom shop.cart import VALUE\ndef test_total():\n    assert VALUE == shop.cart\n"
    )
    seen = outcome(failure(location=None, suggestion=None))
    assert shown(context(plan, seen))["shop/cart.py"][0] == 1


def test_what_a_report_says_of_files_that_are_gone_is_passed_over(shop: LoadedPlan) -> None:
    findings = (
        Finding(path="gone.py", line=3, message="m"),
        Finding(path="shop/cart.py", line=999, message="m"),
    )
    fact = CommandFact(argv=(), tool="ruff", purpose="lint", findings=findings)
    write_report(shop, report(None, samples.observation(command=fact)))
    assert list(shown(context(shop))) == ["shop/cart.py", "tests/test_cart.py"]

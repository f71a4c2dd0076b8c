"""The report: what it tells, on a terminal, as JSON, as a page and as a picture; and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from corpus_making import THREE, C, case, label, raising, recorded, write_part
from typer.testing import CliRunner

from planner.model.evidence import Evidence
from planner.model.taxonomy import Category
from pytest_planverify.corpus import command
from pytest_planverify.corpus.case import Case, FaultyRun, Group, RunFailure
from pytest_planverify.corpus.causes_figures import by_signature, cause_figures, causes_of
from pytest_planverify.corpus.command import app
from pytest_planverify.corpus.files import render
from pytest_planverify.corpus.pages import markers, with_figures
from pytest_planverify.corpus.plotting import as_svg
from pytest_planverify.corpus.report import OURS, Report, report_on
from pytest_planverify.corpus.rivals import LADDER
from pytest_planverify.corpus.splitting import Part, is_test_kind, is_test_package
from pytest_planverify.corpus.tables import as_markdown, as_text


def made(corpus: Path, *parts: Part) -> Report:
    return report_on(corpus, parts or (Part.TEST,), resamples=20, speed_seconds=0)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write_part(tmp_path, "develop", *THREE)
    return write_part(tmp_path, "test", *THREE, control("honest"), control("slandered", "it was weakened"))


def control(name: str, *flagged: str) -> Case:
    return case(name, None, package="d", group=Group.CONTROL, flagged=flagged)


def test_the_report_counts_what_it_judged(corpus: Path) -> None:
    found = made(corpus)
    assert (found.cases, found.packages, found.kinds) == (3, 4, 4)
    assert (found.controls.count, found.controls.of) == (1, 2)
    assert found.counts == {
        Group.INJECTED: {C.TEST_CRASH: 1, C.TYPE_ERROR: 1},
        Group.ENVIRONMENT: {C.ENVIRONMENT_ERROR: 1},
    }
    assert [each.name for each in found.systems] == [OURS, LADDER, "+reruns", "plain", "triage", "allure"]
    assert found.ours.figures.macro_f1 == 1.0
    assert found.ours.ahead is None
    assert found.ladder.ahead is not None
    assert found.diagnoses_per_second > 0


def test_both_parts_can_be_told_as_one(corpus: Path) -> None:
    found = made(corpus, Part.DEVELOP, Part.TEST)
    assert (found.part, found.cases) == ("all", 6)


def test_the_figures_are_told_apart_by_what_is_new(tmp_path: Path) -> None:
    known, new = (
        next(name for name in map(str, range(99)) if is_test_package(name) is kept)
        for kept in (False, True)
    )
    seen, unseen = (
        next(name for name in map(str, range(99)) if is_test_kind(name) is kept) for kept in (False, True)
    )
    crash = recorded("session-segfault")
    write_part(
        tmp_path,
        "test",
        *(
            case(f"{package}-{kind}", label(C.TEST_CRASH), crash, package=package, kind=kind)
            for package, kind in ((new, seen), (known, unseen), (new, unseen), (known, seen))
        ),
    )
    assert [(each.name, each.ours.cases) for each in made(tmp_path).subsets] == [
        ("new package only", 1),
        ("new kind of fault only", 1),
        ("new package and kind", 1),
        ("injected", 4),
    ]


def whole_taxonomy() -> list[Case]:
    """A case of every category, and each said of another one somewhere."""
    evidence = [each.evidence for each in THREE] + [raising("AssertionError", "assert 1 == 2")]
    return [
        case(
            f"{category}-{number}", label(category, category.facts.usual_owner), each, package=f"p{number}"
        )
        for category in Category
        for number, each in enumerate(evidence * 2)
    ]


def test_no_line_of_the_terminal_is_longer_than_100_columns(tmp_path: Path) -> None:
    text = as_text(made(write_part(tmp_path, "test", *whole_taxonomy())))
    assert max(len(line) for line in text.splitlines()) <= 100
    for words in (
        "macro-F1",
        "calibration error",
        "false blame",
        "TEST_REGRESSION",
        "Beside them 0 honest",
    ):
        assert words in text


def test_a_page_has_the_same_tables(corpus: Path) -> None:
    text = as_markdown(made(corpus))
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert "| macro-F1 | 1.000 |" in text
    assert all(line.endswith("|") for line in tables)
    assert text.count("| --- |") == text.count("\n**")


def test_the_picture_is_well_formed_and_names_every_system(corpus: Path) -> None:
    root = ElementTree.fromstring(as_svg(made(corpus)))
    words = {each.text for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {OURS, LADDER, "Is confidence earned?", "How often is it wrong?"} <= words
    assert "prefers-color-scheme:dark" in "".join(root.itertext())


def test_a_page_keeps_what_stands_around_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    begin, end = markers("test")
    page.write_text(f"# Before\n\n{begin}\nold\n{end}\n\nAfter.\n")
    page.write_text(with_figures(page, "test", "new\n"))
    assert page.read_text() == f"# Before\n\n{begin}\n\nnew\n\n{end}\n\nAfter.\n"
    assert with_figures(page, "test", "new\n") == page.read_text()


def run_of(*failures: tuple[int, Evidence], first: tuple[int, ...] = (0,)) -> FaultyRun:
    labels = (label(C.TYPE_ERROR), label(C.TEST_CRASH))
    return FaultyRun(
        id="r",
        package="shop",
        kinds=("a", "b"),
        labels=labels,
        todos=("t",),
        failures=tuple(RunFailure(todo="t", evidence=each, fault=fault) for fault, each in failures),
        first=first,
    )


def test_failures_that_are_put_together_are_compared_with_their_faults() -> None:
    one, other = recorded("command-mypy-complains"), recorded("session-segfault")
    found = cause_figures([run_of((0, one), (0, one), (0, other), (1, other))], by_signature)
    assert found == {
        "runs": 1,
        "failures": 4,
        "precision": 1 / 2,
        "recall": 1 / 3,
        "first": 1.0,
        "causes_a_fault": 1.0,
    }


def test_the_first_group_has_to_be_of_a_fault_to_repair_first() -> None:
    one, other = recorded("command-mypy-complains"), recorded("session-segfault")
    runs = [run_of((0, one), (1, other), first=(1,)), run_of((0, one), first=(0,))]
    assert cause_figures(runs, by_signature)["first"] == 1 / 2


def test_our_causes_are_those_of_a_run() -> None:
    one, other = recorded("command-mypy-complains"), recorded("session-segfault")
    assert sorted(map(sorted, causes_of(run_of((0, one), (1, other), (0, one))))) == [[0, 2], [1]]


def test_root_causes_are_told_where_there_are_runs(corpus: Path) -> None:
    assert made(corpus).root_causes == {}
    run = run_of((0, recorded("command-mypy-complains")), (1, recorded("session-segfault")))
    (corpus / "test" / "runs").mkdir()
    (corpus / "test" / "runs" / "runs.jsonl").write_text(render(run) + "\n")
    found = made(corpus)
    assert [(each["runs"], each["failures"]) for each in found.root_causes.values()] == [(1, 2)] * 2
    assert "Root causes, in 1 runs with 2 failures" in as_text(found)


def said(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pytest_planverify.corpus.report.report_on", lambda corpus, parts: made(corpus, *parts)
    )


@pytest.mark.usefixtures("quick")
def test_the_command_writes_every_form(corpus: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("r.json", "r.svg", "r.md")]
    status, text = said(
        "report",
        "--corpus",
        str(corpus),
        "--json",
        str(files[0]),
        "--svg",
        str(files[1]),
        "--markdown",
        str(files[2]),
    )
    assert status == 0
    assert "How well failures are told apart" in text
    told = json.loads(files[0].read_text())
    assert told["systems"][0]["figures"]["category"] == {"count": 3, "of": 3, "value": 1.0}
    assert files[1].read_text().startswith("<svg")
    assert files[2].read_text().startswith(markers("test")[0])


@pytest.mark.parametrize("has_begin", [False, True])
@pytest.mark.usefixtures("quick")
def test_a_page_without_a_place_is_not_touched_and_nothing_else_is_written(
    corpus: Path, tmp_path: Path, has_begin: bool
) -> None:
    page = tmp_path / "page.md"
    text_of_page = f"{markers('test')[0]}\nno end\n" if has_begin else "no place here\n"
    page.write_text(text_of_page)
    status, text = said(
        "report", "--corpus", str(corpus), "--markdown", str(page), "--json", str(tmp_path / "j")
    )
    assert status == 2
    assert f"--markdown {page}: it has no place for figures; put {markers('test')[0]} and" in text
    assert page.read_text() == text_of_page
    assert not (tmp_path / "j").exists()


def test_only_the_develop_part_is_diagnosed_case_by_case_unless_asked(corpus: Path, tmp_path: Path) -> None:
    write_part(
        corpus, "test", case("secret", label(C.TEST_CRASH), recorded("session-segfault")), control("c")
    )
    status, text = said("run", "--corpus", str(corpus))
    assert status == 0
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["id"], line["accepted"]) for line in lines] == [
        ("mypy", True),
        ("crash", True),
        ("option", True),
    ]
    assert lines[0]["diagnosis"]["category"] == "TYPE_ERROR"
    assert lines[0]["label"] == {"category": "TYPE_ERROR", "owner": "product"}
    out = tmp_path / "out.jsonl"
    assert said("run", "--corpus", str(corpus), "--part", "all", "--output", str(out)) == (0, "")
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()][-1] == "secret"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "there is no corpus; name its folder with --corpus"),
        ("", "the part test holds no failure; build it: python -m pytest_planverify.corpus build"),
        ("{}\n", "cases.jsonl:1 id: Field required; build the corpus anew or mend the line"),
        ("\nnot json\n", "cases.jsonl:2 line: Invalid JSON"),
        (f"{render(case('x', label(C.LINT_ERROR)))}\n", "x: it has a label but no evidence to diagnose"),
        (b"\xff", "cases.jsonl: the corpus cannot be read"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_one_line(
    tmp_path: Path, content: str | bytes | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / "test").mkdir()
        (tmp_path / "test" / "cases.jsonl").write_bytes(
            content.encode() if isinstance(content, str) else content
        )
    for words in (("report",), ("run", "--part", "test")):
        if words[0] == "run" and content == "":
            continue
        status, text = said(*words, "--corpus", str(tmp_path))
        assert status == 4
        assert problem in text
        assert text.count("\n") == 1


def test_the_corpus_is_built_in_a_checkout_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, text = said("build")
    assert status == 4
    assert f"{command.BUILDER}: the corpus is built in a checkout of this project;" in text
    assert text.count("\n") == 1


def test_the_builder_gets_the_words_and_says_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command.BUILDER.parent.mkdir(parents=True)
    command.BUILDER.write_text("import sys\nprint(sys.argv[1:])\nsys.exit(7)\n")
    assert said("build", "decoys", "--seed", "3")[0] == 7
    assert capfd.readouterr().out == "['decoys', '--seed', '3']\n"


def test_a_rival_is_kindly_mapped_without_a_develop_part_too(tmp_path: Path) -> None:
    found = made(write_part(tmp_path, "test", *THREE))
    assert found.systems[-1].figures.category.count == 0

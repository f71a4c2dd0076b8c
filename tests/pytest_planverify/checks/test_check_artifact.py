"""Artifacts pass only if they exist below the root and satisfy the plan."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from text_bundles import write_files

from planner.model.plan import ArtifactSpec
from planner.model.verdicts import Verdict
from pytest_planverify.checks import artifact as module
from pytest_planverify.checks.artifact import check_artifact, read_fixture
from pytest_planverify.checks.result import Judgement


def check(root: Path, path: str, **options: Any) -> Judgement:
    result = check_artifact(ArtifactSpec(path=path, **options), root, check_id="expected_artifacts[0]")
    assert (result.verdict is Verdict.PASSED) == (not result.evidence)
    return result


def problem(root: Path, path: str, **options: Any) -> str:
    result = check(root, path, **options)
    assert result.verdict is Verdict.FAILED
    assert result.evidence[0].headline in (result.reason or "")
    return result.evidence[0].artifact.problem


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder, rows = tmp_path / "root", {"rows": {"type": "integer"}}
    schema = json.dumps({"type": "object", "required": ["rows"], "properties": rows})
    data = {"a.json": '{"rows": 3}', "b.json": '{"rows": "x"}', "empty.txt": ""}
    write_files(folder / "out", data)
    write_files(tmp_path, {"root/schema.json": schema, "secret.txt": "x"})
    (folder / "out/deep").mkdir()
    return folder


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("./out/../out/a.json", {}),
        ("out/a.json", {"sha256": hashlib.sha256(b'{"rows": 3}').hexdigest().upper()}),
        ("out/a.json", {"min_bytes": 11, "max_bytes": 11}),
        ("out/a.json", {"schema": "schema.json"}),
        ("out/empty.txt", {"min_bytes": 0}),
        ("out/*.json", {}),
        ("**/a.json", {}),
        ("out/[id].txt", {}),
        ("out", {}),
        ("out/deep", {"min_bytes": 0}),
    ],
)
def test_artifact_within_its_limits_passes(path: str, options: dict[str, Any], root: Path) -> None:
    """A folder passes if it contains a file; an existing file takes precedence over a glob."""
    (root / "out" / "[id].txt").write_text("x")
    assert check(root, path, **options).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("nowhere/x.txt", {}, "missing"),
        ("broken", {}, "missing"),
        ("out/empty.txt", {}, "empty"),
        ("out/deep", {}, "empty"),
        ("hollow", {}, "empty"),
        ("out/a.json/", {}, "not_a_file"),
        ("out/a.json", {"min_bytes": 12}, "too_small"),
        ("out/a.json", {"max_bytes": 10}, "too_large"),
        ("out/*.csv", {}, "no_match"),
        ("out", {"sha256": "0" * 64}, "not_a_file"),
        ("out", {"max_bytes": 3}, "not_a_file"),
        ("out", {"schema": "schema.json"}, "not_a_file"),
        ("pipe", {}, "not_a_file"),
        ("out/a.json", {"schema": "gone.json"}, "bad_schema"),
        ("out/a.json", {"schema": "../secret.txt"}, "bad_schema"),
        ("../secret.txt", {}, "outside_root"),
        ("/etc/passwd", {}, "outside_root"),
        ("link", {}, "outside_root"),
        ("l*nk", {}, "outside_root"),
        ("../*.txt", {}, "outside_root"),
        ("/etc/*", {}, "outside_root"),
    ],
)
def test_artifact_outside_its_limits_has_a_problem(
    path: str, options: dict[str, Any], expected: str, root: Path
) -> None:
    os.mkfifo(root / "pipe")
    write_files(root, {"hollow/empty.txt": ""})
    os.mkfifo(root / "hollow/pipe")
    (root / "broken").symlink_to("gone")
    (root / "link").symlink_to(root.parent / "secret.txt")
    assert problem(root, path, **options) == expected


def test_missing_file_suggests_similar_names(root: Path) -> None:
    for name in ("out/a.jsn", "out/A.JSON"):
        assert check(root, name).reason == f"{name} does not exist; did you mean out/a.json?"
    (root / "out/link").symlink_to("gone")
    assert check(root, "out/link").reason == "out/link does not exist"


def test_every_glob_match_is_checked_with_the_path_of_an_error_in_json(root: Path) -> None:
    result = check(root, "out/*", min_bytes=1, schema="schema.json")
    assert [(e.artifact.path, e.artifact.problem) for e in result.evidence if e.artifact] == [
        ("out/b.json", "schema"),
        ("out/deep", "not_a_file"),
        ("out/empty.txt", "empty"),
    ]
    where = "out/b.json does not satisfy schema.json: $.rows: 'x' is not of type 'integer'"
    assert result.reason == f"{where} (and 2 more)"


def test_unreadable_file_is_inconclusive(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(module, "file_sha256", refuse)
    result = check(root, "out/a.json", sha256="0" * 64)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason == "out/a.json cannot be read: Permission denied"
    _, evidence = read_fixture("out/a.json", root)
    assert evidence.headline == "the fixture out/a.json cannot be read: Permission denied"


def test_unusable_path_never_passes(root: Path) -> None:
    (root / "circle").symlink_to("circle")
    for path in ("x" * 4_000, "a\0b", "circle"):
        assert check(root, path).verdict is not Verdict.PASSED


@pytest.mark.parametrize("text", ["{", "NaN", "[" * 100_000, "1" * 5_000, "\udcff"])
def test_invalid_json_never_satisfies_a_schema(root: Path, text: str) -> None:
    (root / "x.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    (root / "any.json").write_text('{"type": "object"}')
    assert problem(root, "x.json", schema="any.json") in ("not_json", "schema")


def test_deep_or_long_values_do_not_crash_a_schema(root: Path) -> None:
    (root / "rec.json").write_text('{"items": {"$ref": "#"}, "multipleOf": 0.1}')
    (root / "deep.json").write_text("[" * 900 + "]" * 900)
    check(root, "deep.json", schema="rec.json")
    (root / "long.json").write_text("1" * 400)  # beyond the numbers of floats
    assert problem(root, "long.json", schema="rec.json") == "schema"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "Expecting"),
        ("[]", "it is not an object"),
        ('{"type": "nonsense"}', "$.type"),
        ('{"$ref": "http://127.0.0.1:9/x.json"}', "not fetched"),
        ('{"$ref": "other.json"}', "not fetched; copy that below its $defs"),
        ('{"properties": {"rows": {"$ref": "#/$defs/none"}}}', "not fetched"),
        ('{"patternProperties": {"(": {}}}', "pattern"),
        ('{"$schema": "//["}', "Invalid"),
        ('{"$schema": [1]}', "unhashable"),
        ('{"pattern": "a{99999999999}"}', "the repetition number"),
        ('{"not": ' * 400 + "{}" + "}" * 400, "nested too deeply"),
        ('{"$schema": []}', "TypeError"),
        ('{"$ref": "#/enum/x", "enum": [1]}', "ValueError"),
        ('{"properties": {"rows": {"$id": "http://[x", "$ref": "a"}}}', "ValueError"),
        ('{"$ref": "#"}', "it refers to itself without end"),
    ],
)
def test_unusable_schema_fails(root: Path, schema: str, said: str) -> None:
    (root / "bad.json").write_text(schema)
    result = check(root, "out/a.json", schema="bad.json")
    assert problem(root, "out/a.json", schema="bad.json") == "bad_schema"
    assert said in (result.reason or "")


def test_too_large_json_file_and_too_slow_pattern_fail(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SCHEMA_SECONDS", 0.1)
    (root / "text.json").write_text(f'"{"a" * 60}!"')
    (root / "slow.json").write_text('{"pattern": "^(a+)+$"}')
    assert "takes more than 0.1 s" in (check(root, "text.json", schema="slow.json").reason or "")
    monkeypatch.setattr(module, "MAX_JSON_BYTES", 5)
    (root / "true.json").write_text("true")
    assert problem(root, "out/a.json", schema="true.json") == "too_large"


@pytest.mark.parametrize(
    ("path", "problem", "said"),
    [
        ("rsi.jsn", "missing", "does not exist; did you mean rsi.json?"),
        ("folder", "not_a_file", "is a folder, not a file"),
        ("out", "outside_root", "is outside of"),
        ("a\0b", "unreadable", "cannot be read"),
    ],
)
def test_unusable_fixture_has_a_reason(tmp_path: Path, path: str, problem: str, said: str) -> None:
    root = tmp_path / "root"
    write_files(root, {"rsi.json": "[1]", "folder/a": ""})
    (root / "out").symlink_to(tmp_path)
    use, evidence = read_fixture(path, root, check_id="tests[0]")
    assert use.sha256 is None
    assert evidence.artifact.problem == problem
    assert said in evidence.headline

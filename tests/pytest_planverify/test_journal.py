"""The journal: records are read exactly as written, even if writing was interrupted."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from pathlib import Path

import pytest
from forked import in_fork
from hypothesis import given
from hypothesis import strategies as st

from pytest_planverify.journal import JournalTail, JournalWriter, read_journal
from pytest_planverify.session.records import WorkerRecord

ODD = 'é "quoted" \\ \x00 \x1b[31m \u2028 \n\r\t 🦜 \ud800'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of the journal."""
    return tmp_path / "journal.jsonl"


def write_many(path: str, session: str, count: int) -> None:
    journal = JournalWriter(path, session)
    for number in range(count):
        journal.write("entry", number=number, padding="x" * 300)
    journal.close()


def test_record_has_its_tag_session_and_time_and_special_characters_on_one_line(path: Path):
    journal = JournalWriter(path, 's"1')

    journal.write("odd", text=ODD, path=Path("/somewhere"))
    journal.write_raw("raw", f'"text": {json.dumps(ODD, ensure_ascii=False)}')
    journal.write("empty")

    first, second, third = read_journal(path)
    assert (first["record"], first["session"], first["text"]) == ("odd", 's"1', ODD)
    assert isinstance(first["at"], float)
    assert first["path"] == "/somewhere"
    assert second["text"].startswith("é")
    assert set(third) == {"record", "session", "at"}
    assert path.read_bytes().count(b"\n") == 3
    assert path.stat().st_mode & 0o777 == 0o600


def test_killed_writer_loses_only_its_own_line_and_lines_that_are_no_records_are_skipped(path: Path):
    odd = (b"", b"null", b"[]", b"3", b'{"no": "tag"}', b"{", b"\xff\xfe", b"plain text", b'"record"')
    path.write_bytes(b"\n".join((*odd, b'{"record": "a"}', b'{"record": "to')))
    JournalWriter(path, "s2").write("b")
    JournalWriter(path, "s2").write("c")
    assert [record["record"] for record in read_journal(path)] == ["a", "b", "c"]


def test_several_processes_may_append_concurrently(path: Path):
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=write_many, args=(str(path), f"s{number}", 200)) for number in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    records = read_journal(path)
    # A writer that opens the file while another one writes may add an empty line, which readers skip.
    assert len(records) == len(list(filter(None, path.read_bytes().split(b"\n")))) == 800
    for number in range(4):
        own = [record["number"] for record in records if record["session"] == f"s{number}"]
        assert own == list(range(200))


def test_threads_of_a_worker_may_write_concurrently(path: Path):
    journal = JournalWriter(path, "s1", "key")
    threads = [
        threading.Thread(target=lambda: [journal.write("metric") for _ in range(500)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    record = WorkerRecord()

    assert all(record.follows(each) for each in read_journal(path))
    assert not record.journal_lost


def test_records_of_a_forked_child_are_numbered_separately(path: Path):
    journal = JournalWriter(path, "s1", "key")
    journal.write("test_started")
    for _ in range(2):
        in_fork(lambda: journal.write("metric"))
    journal.write("test_finished")
    record = WorkerRecord()
    new = [each["record"] for each in read_journal(path) if record.follows(each)]
    assert new == ["test_started", "metric", "metric", "test_finished"]
    assert not record.journal_lost


@given(cuts=st.lists(st.integers(0, 400), max_size=6), texts=st.lists(st.text(), min_size=1, max_size=6))
def test_reading_in_pieces_yields_all_records(cuts: list[int], texts: list[str], tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    journal = JournalWriter(path, "s1")
    for text in texts:
        journal.write("entry", text=text)
    journal.close()
    data = path.read_bytes()

    path.unlink()
    tail = JournalTail(path)
    assert list(tail.read()) == [], "there is no file yet"
    seen: list[str] = []
    start = 0
    for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        with path.open("ab") as stream:
            stream.write(data[start:cut])
        start = max(start, cut)
        seen += [record["text"] for record in tail.read()]

    assert seen == texts


def test_records_written_after_the_file_was_unlinked_are_read(path: Path) -> None:
    tail = JournalTail(path)
    tail.follow()
    writer = JournalWriter(path, "s1")
    path.unlink()
    writer.write("late")
    assert [record["record"] for record in tail.read()] == ["late"]
    assert not tail.lost


LONG = '{"record": "long", "text": "%s"}\n' % ("y" * 500)


@pytest.mark.parametrize("grown", ["", "x\n", LONG, "as long"])
def test_truncated_journal_is_detected_even_if_it_has_grown_again(grown: str, path: Path) -> None:
    writer = JournalWriter(path, "s1")
    writer.write("first")
    tail = JournalTail(path)
    assert [record["record"] for record in tail.read()] == ["first"]
    assert list(tail.read()) == []
    assert not tail.lost

    path.write_text("x" * (path.stat().st_size - 1) + "\n" if grown == "as long" else grown)
    list(tail.read())
    assert tail.lost
    writer.write("last")

    assert [record["record"] for record in tail.read()] == ["last"]


def test_records_reach_the_journal_after_its_descriptor_was_closed_or_reused(path: Path):
    own = path.with_name("own.txt")
    writer = JournalWriter(path, "s1")

    os.close(writer._descriptor)
    writer.write("closed")
    with own.open("w") as file:
        os.dup2(file.fileno(), writer._descriptor)
        writer.write("reused")
    writer.close()

    assert [each["record"] for each in read_journal(path)] == ["closed", "reused"]
    assert own.read_text() == ""

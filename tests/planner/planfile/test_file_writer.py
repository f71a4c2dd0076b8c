"""File writes: atomic, links and devices are preserved, errors are one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from real_command import null_device

from planner.errors import FileWriteError
from planner.planfile.file_writer import (
    READABLE,
    STANDARD_OUTPUT,
    create_file,
    prepare_place,
    replace_file,
    stdout_redirected,
    write_file,
)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_file_is_private_by_default(tmp_path: Path) -> None:
    umask = os.umask(0o077)
    try:
        write_file(tmp_path / "a", "x")
        write_file(tmp_path / "b", "x", mode=READABLE)
        write_file(tmp_path / "c", "x", mode=None)
    finally:
        os.umask(umask)
    write_file(tmp_path / "d", "x", mode=None)
    assert [mode_of(tmp_path / name) for name in "abc"] == [0o600, 0o644, 0o600]
    assert mode_of(tmp_path / "d") == 0o666 & ~umask


@pytest.mark.parametrize("write", [write_file, replace_file])
def test_a_file_is_replaced_atomically_and_keeps_its_permissions(tmp_path: Path, write) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(0o640)
    with target.open() as reader:
        write(target, "new é \udcff", durable=True)
        assert reader.read() == "old"
    assert target.read_bytes() == "new é \\udcff".encode()
    assert mode_of(target) == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_symbolic_link_is_kept_and_its_target_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("other")
    (tmp_path / "other").symlink_to("there/file")
    write_file(tmp_path / "link", "one")
    write_file(tmp_path / "link", b"two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "other").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "two"
    assert os.listdir(tmp_path / "there") == ["file"]


def test_a_record_replaces_a_link_or_pipe_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to("mine")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        replace_file(tmp_path / name, "record")
        assert (tmp_path / name).read_text() == "record"
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_missing_folder_is_created(tmp_path: Path) -> None:
    write_file(tmp_path / "a" / "b" / "file", "x")
    prepare_place(tmp_path / "c" / "d" / "file")
    assert (tmp_path / "a" / "b" / "file").read_text() == "x"
    assert (tmp_path / "c" / "d").is_dir()


def test_long_and_unusual_file_names_are_supported(tmp_path: Path) -> None:
    for name in ("n" * 255, "ж" * 127, "🂡" * 63, os.fsdecode(b"\xff\xfe"), "-"):
        write_file(tmp_path / name, "x")
        assert (tmp_path / name).read_text() == "x"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    handle = os.open(pipe, os.O_RDWR)
    write_file(pipe, "x" * 1_000)
    assert os.read(handle, 2_000) == b"x" * 1_000
    os.close(handle)
    assert pipe.is_fifo()


def test_a_pipe_without_a_reader_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    prepare_place(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").startswith("nothing reads this pipe; start its reader")


def test_devices_are_written_to_and_stay_devices(tmp_path: Path) -> None:
    null = null_device(tmp_path)
    write_file(null, "x")
    assert null.is_char_device()
    assert refusal(Path("/dev/full")) == "no space left on device; free space, or name a file elsewhere"


@pytest.mark.parametrize(("name", "is_piped"), [("-", True), ("/dev/stdout", False)])
def test_text_for_standard_output_follows_earlier_output(tmp_path: Path, name: str, is_piped: bool) -> None:
    code = (
        "import sys; from pathlib import Path; from planner.planfile.file_writer import write_file\n"
        "print('before'); write_file(Path(sys.argv[1]), 'text\\n'); print('after')"
    )
    out = tmp_path / "out"
    with out.open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-c", code, name],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            stdout=subprocess.PIPE if is_piped else file,
            check=True,
        )
    assert (done.stdout if is_piped else out.read_bytes()) == b"before\ntext\nafter\n"
    assert os.listdir(tmp_path) == ["out"]


def test_screen_output_moves_to_stderr_while_the_file_is_stdout(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for path in (STANDARD_OUTPUT, Path("/dev/stdout")):
        with stdout_redirected(path):
            os.write(1, b"screen\n")
            write_file(path, "document\n")
        os.write(1, b"later\n")
        assert capfd.readouterr() == ("document\nlater\n", "screen\n")
    for path in (None, tmp_path / "file", Path("a\0b")):
        with stdout_redirected(path):
            os.write(1, b"screen\n")
        assert capfd.readouterr() == ("screen\n", "")


@pytest.mark.parametrize("through_link", [False, True])
def test_a_file_that_somebody_has_open_is_appended_to(tmp_path: Path, through_link: bool) -> None:
    with (tmp_path / "out").open("w") as file:
        file.write("before\n")
        file.flush()
        path = Path(f"/dev/fd/{file.fileno()}")
        (tmp_path / "link").symlink_to(path)
        write_file(tmp_path / "link" if through_link else path, "text\n")
    assert (tmp_path / "out").read_text() == "before\ntext\n"


@pytest.mark.parametrize("write", [write_file, replace_file, create_file, prepare_place])
def test_a_write_error_is_reported_in_one_line_with_a_remedy(tmp_path: Path, write) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    taken = "the file exists already and is not replaced; name a new file, or remove it"
    folder = "it is a folder; name a file in it"
    assert refusal(tmp_path / "folder", write) == (taken if write is create_file else folder)
    assert (
        refusal(tmp_path / "file" / "x", write)
        == "a part of its path is not a folder; remove it, or name another file"
    )
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    if write is not prepare_place:
        assert refusal(tmp_path / ("n" * 300), write) == "File name too long; name another file"
        assert refusal(tmp_path / "a\0\nb", write).endswith("; name another file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_reported_before_and_during_the_write(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o500)
    remedy = "permission denied; make it and its folder writable"
    for write in (write_file, prepare_place):
        assert refusal(tmp_path / "folder" / "file", write) == remedy


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("failing", ["fsync", "chmod", "replace"])
def test_a_failed_write_leaves_the_old_file_and_no_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, error: BaseException
) -> None:
    def fails(*_: object) -> None:
        raise error

    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, failing, fails)
    with pytest.raises((FileWriteError, KeyboardInterrupt)):
        write_file(tmp_path / "file", "new", durable=True)
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_new_file_is_created_whole_or_not_at_all_and_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    create_file(tmp_path / "new", "x")
    assert refusal(tmp_path / "new", create_file).startswith("the file exists already")

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises((FileWriteError, KeyboardInterrupt)):
        create_file(tmp_path / "other", "x")
    assert os.listdir(tmp_path) == ["new"]
    assert (tmp_path / "new").read_text() == "x"


def refusal(path: Path, write=write_file) -> str:
    with pytest.raises(FileWriteError) as caught:
        write(path) if write is prepare_place else write(path, "text")
    said = str(caught.value)
    assert said.isprintable()
    return said.partition(": cannot be written: ")[2]

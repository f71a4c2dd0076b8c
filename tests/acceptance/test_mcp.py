"""`planverify mcp` serves coding agents: the client of the SDK talks to the real command over stdio."""

from __future__ import annotations

import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from example_project import Example, todo
from mcp import Client, Implementation, StdioServerParameters, stdio_client
from mcp.types import CallToolResult
from real_command import LEAN_TERMINAL, outer_environment, planverify, planverify_words
from real_planner import forked

FILES = {
    "shop.py": "def gross(net):\n    return net\n",
    "test_shop.py": "from shop import gross\ndef test_gross(): assert gross(100) == 119\n",
    "pytest.ini": "[pytest]\npythonpath = .\naddopts = --planverify-confirm=0\n",
}
Call = tuple[str, dict[str, Any]]
Results = list[CallToolResult]
Told = tuple[Path, Results, Results, Results]


def make_shop(folder: Path) -> Example:
    example = Example(folder / "shop", FILES)
    example.plan(todo("price", "pytest test_shop.py"))
    return example


def connect(root: Path, *options: str) -> Client:
    command, *args = planverify_words("mcp", *options)
    env = outer_environment() | LEAN_TERMINAL
    server = StdioServerParameters(command=command, args=args, cwd=str(root), env=env)
    return Client(stdio_client(server), client_info=Implementation(name="tester-bot", version="1"))


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    return content.text  # type: ignore[union-attr]


WHILE_RED: list[Call] = [
    ("verify", {}),
    ("brief", {"todo": "price"}),
    ("next", {}),
    ("status", {"todo": "price"}),
    ("explain", {"word": "TEST_REGRESSION"}),
]
INVALID: list[Call] = [
    ("verify", {"todo": "prize"}),
    ("verify", {"plan": "none.yaml"}),
    ("verify", {"todos": ["price"]}),  # an unknown argument, which must not widen the verification
    ("brief", {"todo": "prize"}),
    ("brief", {"todo": "--in-place"}),
    ("status", {"todo": "--outcomes=/etc/passwd"}),
    ("answer", {"todo": "price", "answer": "yes"}),  # only a person answers and approves
    *(("next", {"plan": name}) for name in ("../secret.yaml", "link.yaml", "/etc/passwd", "--help")),
    ("explain", {"word": "../secret.yaml"}),
    ("status", {"plan": "loop.yaml"}),
    ("explain", {"word": "x" * 200_000}),  # longer than an argument of a command may be
]
WHEN_GREEN: list[Call] = [("verify", {"todo": "price"}), ("next", {})]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Return the folder of one conversation, and the results of its calls."""
    folder = tmp_path_factory.mktemp("mcp")
    shop = make_shop(folder)
    secret = "todo_list_id: secret\nitems: [{id: secret_1, title: A secret, verify: pytest}]\n"
    (folder / "secret.yaml").write_text(secret)
    (shop.root / "link.yaml").symlink_to(folder / "secret.yaml")
    (shop.root / "loop.yaml").symlink_to("loop.yaml")

    async def talk() -> Told:
        with anyio.fail_after(240):
            async with connect(shop.root, "plan.yaml") as client:
                assert client.server_info.version == metadata.version("pytest-planverify")
                red, invalid = [
                    [await client.call_tool(*call) for call in calls] for calls in (WHILE_RED, INVALID)
                ]
                shop.write({"shop.py": "def gross(net):\n    return net * 119 // 100\n"})
                green = [await client.call_tool(*call) for call in WHEN_GREEN]
                return shop.root, red, invalid, green

    return anyio.run(talk)


def test_the_mcp_server_reports_failures_and_completion_only_when_green(told: Told) -> None:
    root, (red, brief, asked, status, explained), _, (green, completed) = told

    assert red.structured_content is not None
    assert (red.is_error, red.structured_content["accepted"]) == (False, False)
    assert "assert 100 == 119" in text_of(red)
    assert len(text_of(red)) + len(text_of(brief)) < 600 * 4
    assert "gross" in text_of(brief)
    assert "price_branch_01" in text_of(asked)
    assert "✗ failed" in text_of(status)
    assert "An assertion of a test" in text_of(explained)

    assert green.structured_content == {"accepted": True, "exit_status": 0}
    assert "completed: 1 of 1 todo done" in text_of(completed)
    # The verdicts were found in the same environment as those of a shell.
    assert "from run" in planverify("verify", "plan.yaml", "--lf", cwd=root).stdout


def test_an_invalid_mcp_call_is_answered_with_one_line(told: Told) -> None:
    invalid = told[2]
    assert text_of(invalid[2]) == "planverify: verify has no argument todos; it has plan, todo"
    for call, result in zip(INVALID, invalid, strict=True):
        assert result.is_error, call
        assert text_of(result).count("\n") == 0, call
        assert "secret_" not in text_of(result), call
        assert "Traceback" not in text_of(result), call


def test_a_hanging_or_cancelled_verification_is_stopped(tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    hangs = (
        "import pathlib, time\ndef test_gross():\n    pathlib.Path('hangs').touch()\n    time.sleep(600)\n"
    )
    shop.write({"test_shop.py": hangs})

    async def wait() -> CallToolResult:
        with anyio.fail_after(120):
            async with connect(shop.root, "--max-seconds", "1") as client:
                return await client.call_tool("verify", {})

    stopped = anyio.run(wait)
    assert stopped.is_error
    assert "did not end within 1 s" in text_of(stopped)
    (shop.root / "hangs").unlink(missing_ok=True)

    async def leave() -> None:
        async with connect(shop.root) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "verify", {})
            with anyio.fail_after(60):
                while not (shop.root / "hangs").exists():
                    await anyio.sleep(0.05)
            group.cancel_scope.cancel()

    anyio.run(leave)
    give_up = time.monotonic() + 20
    while (left := running_in(shop.root)) and time.monotonic() < give_up:
        time.sleep(0.1)
    assert left == []


def running_in(root: Path) -> list[str]:
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(root.resolve()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def test_a_missing_mcp_sdk_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    ended = forked(("mcp",), tmp_path, program="planverify")
    assert ended.status == 4
    assert ended.err.count("\n") == 1
    assert "pip install 'pytest-planverify[mcp]'" in ended.err

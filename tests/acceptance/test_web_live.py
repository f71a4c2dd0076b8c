"""A real browser and a real run: pages update themselves, and an answer on a page continues the run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from real_command import LEAN_TERMINAL, PYTHON, unmeasured

BIN = Path(sys.executable).parent
PLAN = """\
todo_list_id: shop
metadata: {auto_fix_mode: false}
items:
  - id: price
    title: A price
    allowed_files: [shop.py]
    verify: pytest test_shop.py
"""
TEST = """\
from shop import PRICE


def test_price():
    assert PRICE == 2
"""
AGENT = """\
import pathlib
path = pathlib.Path("shop.py")
path.write_text("PRICE = 1\\n" if "0" in path.read_text() else "PRICE = 2\\n")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "plan.yaml").write_text(PLAN)
    (root / "shop.py").write_text("PRICE = 0\n")
    (root / "test_shop.py").write_text(TEST)
    (tmp_path / "agent.py").write_text(AGENT)
    return root


def start(root: Path, *words: object) -> subprocess.Popen[str]:
    env = unmeasured(dict(os.environ)) | LEAN_TERMINAL
    command = [str(word) for word in words]
    return subprocess.Popen(command, cwd=root, env=env, text=True, stdout=subprocess.PIPE)


@pytest.fixture
def address(shop: Path) -> Iterator[str]:
    server = start(shop, BIN / "planner", "serve", "plan.yaml", "--port", 8700 + os.getpid() % 250)
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.terminate()
    server.wait(20)


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


def open_page(browser: Any, address: str) -> Page:
    page = browser.new_page(bypass_csp=True, color_scheme="dark")
    for _ in range(100):
        try:
            page.goto(address)
            return page
        except Exception:
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


def test_a_page_keeps_a_half_filled_form_and_continues_a_waiting_run(
    browser: Any, shop: Path, address: str
) -> None:
    page = open_page(browser, address)
    page.get_by_role("link", name="Questions").click()
    expect(page.get_by_text("There are no open questions.")).to_be_visible()
    agent = f"{PYTHON} {shop.parent / 'agent.py'}"
    run = start(shop, BIN / "planverify", "run", "plan.yaml", "--wait", 120, "--agent", agent)

    # The question appears without a reload, but nothing else while an answer is written.
    approve = page.get_by_role("button", name="Approve", exact=True)
    expect(approve).to_be_visible(timeout=60_000)
    page.get_by_label("Why").fill("half a sente")
    (shop / "plan.yaml").write_text(PLAN.replace("A price", "Another price"))
    expect(page.get_by_text("Something has changed since this page was loaded")).to_be_visible(
        timeout=20_000
    )
    assert page.get_by_label("Why").input_value() == "half a sente"
    assert violations(page) == []
    page.emulate_media(color_scheme="light")
    assert violations(page) == []

    (shop / "plan.yaml").write_text(PLAN)
    page.get_by_label("Your name").fill("Ada")
    approve.click()
    expect(page.get_by_text("(Ada)")).to_be_visible()
    out, _ = run.communicate(timeout=90)

    assert run.returncode == 0, out
    assert "waiting 120 s for an answer" in out
    assert "completed: 1 of 1 todo done" in out
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_text("price_branch_01")).to_be_visible()
    assert violations(page) == []
    page.close()

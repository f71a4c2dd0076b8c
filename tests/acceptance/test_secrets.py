"""Secrets that tests and commands print: they are in no record of a run, nor on its screen."""

from __future__ import annotations

import re
from pathlib import Path

from example_project import Example, todo
from real_command import read_outcomes

OF_THE_ENVIRONMENT = "zq81nnvbk38xkqpd"
SECRETS = (OF_THE_ENVIRONMENT, "hunter22", "ghp_16C7e42F292c6912E7710c838347Ae178B4a")
TEST = """
import os, sys, pytest

KEY = os.environ["SHOP_API_KEY"]

def test_red():
    print("read", KEY, "ghp_16C7e42F292c6912E7710c838347Ae178B4a")
    raise RuntimeError(f"refused {KEY}, PASSWORD=hunter22")

def test_skipped():
    pytest.skip(f"no {KEY}")

def test_recorded(record_property):
    record_property("key", KEY)

@pytest.mark.parametrize("name", [KEY])
def test_named(name):
    assert name == "a"

def test_hidden(request):
    request.node.add_marker(pytest.mark.xfail(reason=KEY))
    assert KEY == ""

def test_ended():
    os.write(2, KEY.encode())
    os._exit(3)
"""
SCRIPT = "import os; print(os.environ['SHOP_API_KEY'], 'PASSWORD=hunter22'); raise SystemExit(1)"


def test_no_secret_of_a_test_or_command_is_written_or_shown_except_in_node_ids(tmp_path: Path) -> None:
    foreign = TEST.partition("def test_ended")[0].replace("[KEY]", "['b']")
    example = Example(tmp_path, {"test_it.py": TEST, "check.py": SCRIPT, "test_foreign.py": foreign})
    metric = {"metrics": [{"name": "key", "operator": ">", "value": 1}]}
    example.plan(
        todo("it", "pytest test_it.py", "python check.py"),
        # Another interpreter, as this is read when it starts.
        todo("foreign", "PYTHONHASHSEED=1 pytest test_foreign.py --junitxml=j.xml", **metric),
    )

    ran = example.verify(env={"SHOP_API_KEY": OF_THE_ENVIRONMENT})

    named = f"test_named[{OF_THE_ENVIRONMENT}]"
    checks = read_outcomes(tmp_path)["outcomes"][0]["checks"]
    assert f"test_it.py::{named}" in [each["nodeid"] for each in checks[0]["tests"]], "identity"
    for path in filter(Path.is_file, (tmp_path / ".planverify").rglob("*")):
        text = path.read_text(errors="replace").replace(named, "").replace(f"{OF_THE_ENVIRONMENT}]", "")
        assert not re.findall("|".join(SECRETS), text), path
        assert path.stat().st_mode & 0o077 == 0, path
    assert "RuntimeError: refused [redacted: secret], PASSWORD=[redacted: password]" in str(ran)
    assert not re.findall("|".join(SECRETS), str(ran).replace(named, ""))

"""A test that may give another verdict for the same code is found, and what keeps chance out is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from validation_samples import GOOD_TEST, findings, only, rules, todo


def judge(folder: Path, source: str, command: str = "pytest t.py", **files: str) -> list[str]:
    """The rules that complain of a test file."""
    return rules(
        folder, todo("a", command), files={"t.py": source, **{f"{k}.py": v for k, v in files.items()}}
    )


def in_test(imports: str, body: str, signature: str = "") -> str:
    return f"{imports}\n\n\ndef test_a({signature}):\n    value = {body}\n    assert product(value)\n"


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import random", "random.random()"),
        ("import random as r", "r.choice([1, 2])"),
        ("from random import randint", "randint(1, 6)"),
        ("import random", "random.Random().random()"),
        ("import random", "random.Random(None).random()"),
        ("import random", "random.SystemRandom(3).random()"),
        ("import numpy as np", "np.random.rand(3)"),
        ("import numpy", "numpy.random.default_rng().normal()"),
        ("from numpy.random import default_rng as rng", "rng()"),
        ("from numpy import random", "random.shuffle([1])"),
        ("import secrets", "secrets.token_hex()"),
        ("import uuid", "uuid.uuid4()"),
        ("from uuid import uuid4 as make", "make()"),
        ("import os", "os.urandom(4)"),
        ("import torch", "torch.rand(3)"),
        ("from faker import Faker", "Faker('de_DE').name()"),
        ("import random\nrandom.seed()", "random.random()"),
        ("", "__import__('x') or 1\n    import random\n    random.random()"),
    ],
)
def test_unseeded_randomness_is_found(tmp_path: Path, imports: str, call: str) -> None:
    assert judge(tmp_path, in_test(imports, call)) == ["unseeded-random"]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import random", "random.Random(7).random()"),
        ("import random\nrandom.seed(7)", "random.random()"),
        ("import random", "random.seed(0) or random.random()"),
        ("import numpy as np", "np.random.default_rng(0).normal()"),
        ("import numpy as np", "np.random.default_rng(seed=0).normal()"),
        ("import numpy as np\nnp.random.seed(1)", "np.random.rand()"),
        ("import numpy as np", "np.random.RandomState(1).rand()"),
        ("import torch\ntorch.manual_seed(0)", "torch.rand(3)"),
        ("from faker import Faker\nFaker.seed(0)", "Faker().name()"),
        ("from faker import Faker\nfake = Faker()\nfake.seed_instance(3)", "fake.name()"),
        ("import uuid", "uuid.UUID(int=3)"),
        ("import uuid", "uuid.uuid5(uuid.NAMESPACE_DNS, 'x')"),
        ("from shop import random", "random.random()"),
        ("import random", "random"),
        ("", "random.random()"),
    ],
)
def test_seeded_and_other_values_are_fine(tmp_path: Path, imports: str, call: str) -> None:
    assert judge(tmp_path, in_test(imports, call)) == []


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import time", "time.time()"),
        ("from time import time", "time()"),
        ("from datetime import datetime", "datetime.now()"),
        ("from datetime import datetime, timezone", "datetime.now(timezone.utc)"),
        ("import datetime as dt", "dt.datetime.utcnow()"),
        ("import datetime", "datetime.date.today()"),
        ("from datetime import date", "date.today().year"),
        ("import pandas as pd", "pd.Timestamp.now()"),
        ("import pandas as pd", "pd.to_datetime('today')"),
        ("import time", "time.strftime('%Y')"),
        ("import time", "time.localtime()"),
    ],
)
def test_the_wall_clock_is_found(tmp_path: Path, imports: str, call: str) -> None:
    assert judge(tmp_path, in_test(imports, call)) == ["wall-clock"]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import time", "time.perf_counter()"),
        ("import time", "time.strftime('%Y', (2024, 1, 1, 0, 0, 0, 0, 1, 0))"),
        ("import time", "time.localtime(0)"),
        ("from datetime import datetime", "datetime(2024, 1, 1)"),
        ("from datetime import date", "date.fromisoformat('2024-01-01')"),
        ("import pandas as pd", "pd.to_datetime('2024-01-01')"),
    ],
)
def test_fixed_moments_are_fine(tmp_path: Path, imports: str, call: str) -> None:
    assert judge(tmp_path, in_test(imports, call)) == []


@pytest.mark.parametrize(
    "source",
    [
        "from freezegun import freeze_time\n@freeze_time('2024')\ndef test_a():\n    p(dt.now())\n",
        "import freezegun\ndef test_a():\n    with freezegun.freeze_time('2024'):\n        p(dt.now())\n",
        "import time_machine\n@time_machine.travel(0)\ndef test_a():\n    p(dt.now())\n",
        "def test_a(freezer):\n    assert p(dt.now())\n",
        "import pytest\n@pytest.mark.freeze_time('2024')\ndef test_a():\n    p(dt.now())\n",
        "import pytest\npytestmark = pytest.mark.freeze_time('2024')\ndef test_a():\n    p(dt.now())\n",
        "def test_a(monkeypatch):\n    monkeypatch.setattr('shop.datetime', Fake)\n    p(dt.now())\n",
        "from unittest.mock import patch\n@patch('shop.datetime')\ndef test_a(_):\n    p(dt.now())\n",
        "def test_a(mocker):\n    mocker.patch.object(shop, 'today')\n    p(dt.now())\n",
    ],
)
def test_a_frozen_clock_is_fine(tmp_path: Path, source: str) -> None:
    assert judge(tmp_path, "from datetime import datetime as dt\n" + source) == []


def test_other_names_of_a_function_are_known(tmp_path: Path) -> None:
    source = "import time\nnow = time.time\ndef test_a():\n    assert p(now())\n"
    assert judge(tmp_path, source) == ["wall-clock"]
    assert judge(tmp_path, source.replace("time.time", "clock.time")) == []


def test_code_in_a_condition_of_the_module_counts_but_not_its_functions(tmp_path: Path) -> None:
    source = (
        "import time\nif p():\n    {}\n    def test_b():\n        assert p(time.time())\n"
        "def test_a():\n    assert p(1)\n"
    )
    assert judge(tmp_path, source.format("X = 1"), "pytest t.py::test_a") == []
    assert judge(tmp_path, source.format("X = time.time()"), "pytest t.py::test_a") == ["wall-clock"]


def test_a_patch_of_something_else_freezes_no_clock(tmp_path: Path) -> None:
    body = "monkeypatch.setattr('shop.price', 3)\n    datetime.now()"
    assert judge(tmp_path, in_test("from datetime import datetime", body, "monkeypatch")) == ["wall-clock"]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import requests", "requests.get('https://example.org')"),
        ("import requests", "requests.get(URL)"),
        ("from requests import Session", "Session()"),
        ("import httpx", "httpx.Client()"),
        ("import urllib.request", "urllib.request.urlopen('http://example.org')"),
        ("from urllib.request import urlopen", "urlopen(f'http://{HOST}/x')"),
        ("import aiohttp", "aiohttp.ClientSession()"),
        ("import socket", "socket.create_connection(('example.org', 80))"),
        ("import socket", "socket.socket().connect(('example.org', 80))"),
        ("import http.client", "http.client.HTTPSConnection('example.org')"),
        ("import yfinance as yf", "yf.download('AAPL')"),
        ("import pandas as pd", "pd.read_csv('https://example.org/x.csv')"),
        ("import requests", "requests.get('http://localhost.example.org')"),
    ],
)
def test_the_network_is_found(tmp_path: Path, imports: str, call: str) -> None:
    assert judge(tmp_path, in_test(imports, call)) == ["network-access"]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import requests", "requests.get('http://localhost:8000/x')"),
        ("import requests", "requests.get(f'http://127.0.0.1:{PORT}/x')"),
        ("import socket", "socket.create_connection(('127.0.0.1', 80))"),
        ("import socket", "socket.socket().connect(('localhost', 80))"),
        ("import httpx", "httpx.Client(transport=httpx.MockTransport(answer))"),
        ("import requests", "requests.Request('GET', 'https://example.org').prepare()"),
        ("import urllib.request", "urllib.request.Request('http://example.org')"),
        ("import sqlite3", "sqlite3.connect('x.db')"),
        ("import pandas as pd", "pd.read_csv(PATH)"),
    ],
)
def test_this_machine_and_what_opens_nothing_are_fine(tmp_path: Path, imports: str, call: str) -> None:
    assert judge(tmp_path, in_test(imports, call)) == []


@pytest.mark.parametrize(
    "fixture", ["requests_mock", "responses", "httpserver", "respx_mock", "vcr", "live_server"]
)
def test_a_mocked_network_is_fine(tmp_path: Path, fixture: str) -> None:
    assert judge(tmp_path, in_test("import requests", "requests.get(URL)", fixture)) == []


@pytest.mark.parametrize(
    "guard",
    ["@responses.activate", "@pytest.mark.vcr", "@vcr.use_cassette('x.yaml')", "@respx.mock", "@mock_aws"],
)
def test_decorators_that_mock_the_network_are_fine(tmp_path: Path, guard: str) -> None:
    imports = "import pytest, requests, responses, respx, vcr\nfrom moto import mock_aws\n"
    source = f"{imports}{guard}\ndef test_a():\n    assert p(requests.get(URL))\n"
    assert judge(tmp_path, source) == []


@pytest.mark.parametrize(
    "call",
    [
        "print(set(names))",
        "list({'a', 'b'})",
        "', '.join(set(names))",
        "str({n for n in names})",
        "f'{set(names)}'",
    ],
)
def test_the_order_of_a_set_is_found(tmp_path: Path, call: str) -> None:
    assert judge(tmp_path, in_test("", call)) == ["hash-order"]
    assert judge(tmp_path, in_test("", call), "PYTHONHASHSEED=0 pytest t.py") == []


@pytest.mark.parametrize(
    "call",
    [
        "sorted(set(names))",
        "sorted(list(set(names)))",
        "len(list(set(x)))",
        "set(names) == {'a'}",
        "list({1})",
    ],
)
def test_sets_without_order_are_fine(tmp_path: Path, call: str) -> None:
    assert judge(tmp_path, in_test("", call)) == []


def test_hypothesis_is_random_unless_it_is_derandomized(tmp_path: Path) -> None:
    imports = "from hypothesis import given, settings, seed, strategies as st\n"
    test = "@given(st.integers())\ndef test_a(x):\n    assert p(x)\n"
    assert judge(tmp_path, imports + test) == ["unseeded-random"]
    assert judge(tmp_path, imports + "@settings(derandomize=True)\n" + test) == []
    assert judge(tmp_path, imports + "@seed(3)\n" + test) == []
    assert judge(tmp_path, imports + test, "pytest t.py --hypothesis-seed=0") == []
    profile = "from hypothesis import settings\nsettings.register_profile('ci', derandomize=True)\n"
    assert judge(tmp_path, imports + test, conftest=profile) == []


def test_a_seed_of_the_plugin_or_the_settings_is_one(tmp_path: Path) -> None:
    source = in_test("import random", "random.random()")
    assert judge(tmp_path, source, "pytest t.py -p randomly --randomly-seed=1") == []
    assert judge(tmp_path, source, "pytest t.py --randomly-seed 1") == []
    assert judge(tmp_path, source, "pytest t.py --randomly-seed=last") == ["unseeded-random"]
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --randomly-seed=3 --disable-socket\n")
    assert judge(tmp_path, source) == []
    assert judge(tmp_path, in_test("import requests", "requests.get(URL)")) == []


def test_fixtures_of_the_module_and_of_conftests_are_followed(tmp_path: Path) -> None:
    fixture = "import pytest, random\n@pytest.fixture\ndef price():\n    return random.random()\n"
    test = "def test_a(price):\n    assert product(price)\n"
    assert judge(tmp_path, fixture + test) == ["unseeded-random"]
    files = {"tests/deep/test_a.py": test, "tests/conftest.py": fixture}
    found = only("unseeded-random", tmp_path, todo("a", "pytest tests/deep"), files=files)
    assert "tests/conftest.py:4 random.random()" in found.message
    files = {"tests/deep/test_a.py": test.replace("(price)", "()"), "tests/conftest.py": fixture}
    assert rules(tmp_path, todo("a", "pytest tests/deep"), files=files) == []


def test_autouse_fixtures_and_usefixtures_are_followed(tmp_path: Path) -> None:
    test = "def test_a():\n    assert product()\n"
    auto = "import pytest, time\n@pytest.fixture(autouse=True)\ndef clock():\n    return time.time()\n"
    assert judge(tmp_path, test, conftest=auto) == ["wall-clock"]
    used = "import pytest, time\n@pytest.fixture(name='clock')\ndef make_clock():\n    return time.time()\n"
    assert judge(tmp_path, "import pytest\n@pytest.mark.usefixtures('clock')\n" + test, conftest=used) == [
        "wall-clock"
    ]
    assert judge(
        tmp_path, "import pytest\npytestmark = pytest.mark.usefixtures('clock')\n" + test, conftest=used
    ) == ["wall-clock"]
    assert judge(tmp_path, test, conftest=used) == []


def test_an_autouse_fixture_that_seeds_is_enough(tmp_path: Path) -> None:
    seeds = "import pytest, random\n@pytest.fixture(autouse=True)\ndef seeded():\n    random.seed(3)\n"
    assert judge(tmp_path, in_test("import random", "random.random()"), conftest=seeds) == []


def test_a_fixture_that_overrides_another_asks_for_the_outer_one(tmp_path: Path) -> None:
    outer = "import pytest, random\n@pytest.fixture\ndef price():\n    return random.random()\n"
    inner = "import pytest\n@pytest.fixture\ndef price(price):\n    return price\n"
    assert judge(tmp_path, inner + "def test_a(price):\n    assert p(price)\n", conftest=outer) == [
        "unseeded-random"
    ]
    own = "import pytest\n@pytest.fixture\ndef price():\n    return 3\n"
    assert judge(tmp_path, own + "def test_a(price):\n    assert p(price)\n", conftest=outer) == []


def test_helpers_setups_and_module_code_are_followed(tmp_path: Path) -> None:
    draw = "def draw():\n    return random.random()\n"
    helper = "import random\n" + draw + draw.replace("draw", "unused")
    assert judge(tmp_path, helper + "def test_a():\n    assert p(draw())\n") == ["unseeded-random"]
    assert judge(tmp_path, helper + "def test_a():\n    assert p(3)\n") == []
    assert judge(tmp_path, "import time\nNOW = time.time()\ndef test_a():\n    assert p(3)\n") == [
        "wall-clock"
    ]
    in_class = (
        "import random\nclass TestA:\n    def setup_method(self):\n        self.x = random.random()\n"
        "    def test_b(self):\n        assert p(self.x)\n"
    )
    assert judge(tmp_path, in_class) == ["unseeded-random"]
    method = in_class.replace("setup_method", "draw").replace("p(self.x)", "p(self.draw())")
    assert judge(tmp_path, method) == ["unseeded-random"]


def test_helpers_in_other_modules_of_the_tests_are_followed_and_the_product_is_not(tmp_path: Path) -> None:
    helper = "import random\ndef draw():\n    return other()\ndef other():\n    return random.random()\n"
    test = "from {} import draw as d\ndef test_a():\n    assert p(d())\n"
    files = {"tests/deep/test_a.py": test.format("drawing"), "tests/deep/drawing.py": helper}
    found = only("unseeded-random", tmp_path, todo("a", "pytest tests"), files=files)
    assert "tests/deep/drawing.py:5 random.random()" in found.message
    assert "fixtures/a_cases.json" in found.fix
    files = {"tests/deep/test_a.py": test.format("tests.lib.drawing"), "tests/lib/drawing.py": helper}
    assert rules(tmp_path, todo("a", "pytest tests"), files=files) == ["unseeded-random"]
    files = {"tests/deep/test_a.py": test.format("shop.drawing"), "shop/drawing.py": helper}
    assert rules(tmp_path, todo("a", "pytest tests"), files=files) == []


def test_only_the_selected_tests_count(tmp_path: Path) -> None:
    source = "import random\ndef test_a():\n    assert p(1)\ndef test_b():\n    assert p(random.random())\n"
    assert judge(tmp_path, source, "pytest t.py::test_a") == []
    assert judge(tmp_path, source, "pytest t.py -k 'not test_b'") == []
    assert judge(tmp_path, source, "pytest t.py::test_b") == ["unseeded-random"]


def test_local_names_are_no_modules(tmp_path: Path) -> None:
    assert judge(tmp_path, "import random\ndef test_a(random):\n    assert p(random.random())\n") == []
    assert (
        judge(tmp_path, "import time\ndef test_a():\n    time = Fake()\n    assert p(time.time())\n") == []
    )


def test_a_named_fixture_satisfies_but_does_not_hide_what_is_seen(tmp_path: Path) -> None:
    files = {"t.py": in_test("import random", "random.random()"), "data.json": "1"}
    found = only(
        "fixture-not-enough", tmp_path, todo("a", "pytest t.py", spec={"fixture": "data.json"}), files=files
    )
    assert found.severity == "advice"
    assert found.fix == "seed it (random.Random(0))"
    good = {"t.py": GOOD_TEST, "data.json": "1"}
    assert rules(tmp_path, todo("a", "pytest t.py", spec={"fixture": "data.json"}), files=good) == []


def test_the_message_names_the_place_and_the_fix_fits_the_call(tmp_path: Path) -> None:
    source = in_test("import numpy as np", "np.random.rand(3)")
    found = only(
        "unseeded-random",
        tmp_path,
        todo("a", "pytest tests/test_prices.py"),
        files={"tests/test_prices.py": source},
    )
    assert "tests/test_prices.py:5 numpy.random.rand()" in found.message
    assert "numpy.random.default_rng(0)" in found.fix
    assert "fixtures/prices_cases.json" in found.fix
    assert found.place == "items[0].acceptance_criteria.tests[0].cmd"


def test_many_places_are_counted(tmp_path: Path) -> None:
    calls = "\n    ".join(["random.random()"] * 9)
    source = in_test("import random", calls)
    found = only("unseeded-random", tmp_path, todo("a", "pytest t.py"), files={"t.py": source})
    assert found.message.endswith("and 6 more")


@pytest.mark.parametrize("option", ["--lf", "--ff", "--stepwise"])
def test_a_command_that_depends_on_the_last_run_is_found(tmp_path: Path, option: str) -> None:
    assert judge(tmp_path, GOOD_TEST, f"pytest t.py {option}") == ["depends-on-last-run"]


@pytest.mark.parametrize(
    "opens",
    [
        "open('fixtures/cases.json')",
        "Path('fixtures/cases.json').read_text()",
        "(Path('fixtures') / 'cases.json').read_text()",
        "(Path(__file__).parent / 'fixtures' / 'cases.json').read_text()",
        "os.path.join(HERE, 'fixtures', 'cases.json')",
        "HERE.joinpath('fixtures', 'cases.json')",
        "DATA.read_text()",
        "CASES[0]",
        "'../fixtures/cases.json'",
    ],
)
def test_an_opened_data_file_is_hinted_as_the_fixture(tmp_path: Path, opens: str) -> None:
    imports = (
        "import json, os\nfrom pathlib import Path\nHERE = 1\nDATA = HERE / 'fixtures/cases.json'\n"
        "CASES = json.loads(DATA.read_text())"
    )
    files = {"tests/test_a.py": in_test(imports, opens), "fixtures/cases.json": "[]"}
    found = only("fixture-hint", tmp_path, todo("a", "pytest tests/test_a.py"), files=files)
    assert found.fix == "add fixture: fixtures/cases.json"


def test_files_that_are_no_data_or_not_there_are_not_hinted(tmp_path: Path) -> None:
    files = {
        "t.py": in_test("", "('out.json', '/etc/hosts.txt', '../../x.json', 'a b', 'x.py')"),
        "x.py": "",
    }
    assert rules(tmp_path, todo("a", "pytest t.py"), files=files) == []


def test_the_product_is_no_fixture(tmp_path: Path) -> None:
    files = {"t.py": in_test("", "open('out/report.json')"), "out/report.json": "{}"}
    own = todo("a", "pytest t.py", criteria={"expected_artifacts": ["out/report.json"]})
    assert rules(tmp_path, own, files=files) == []


def test_a_fixture_that_the_todo_makes_should_be_named(tmp_path: Path) -> None:
    makes = {"expected_artifacts": ["fixtures/sample.csv"]}
    files = {"t.py": GOOD_TEST, "data.json": ""}
    assert (
        "fixture: fixtures/sample.csv"
        in only("fixture-hint", tmp_path, todo("a", "pytest t.py", criteria=makes), files=files).fix
    )
    named = todo("a", "pytest t.py", criteria=makes, spec={"fixture": "fixtures/sample.csv"})
    assert rules(tmp_path, named, files=files) == []


def test_a_test_that_is_not_written_yet_should_name_its_data(tmp_path: Path) -> None:
    own = todo("a", "pytest tests/test_rsi.py", criteria={"expected_artifacts": ["tests/test_rsi.py"]})
    found = only("fixture-unknown", tmp_path, own)
    assert found.severity == "advice"
    assert "fixtures/rsi_cases.json" in found.fix


def test_options_that_are_not_known_make_nothing_certain(tmp_path: Path) -> None:
    assert findings(tmp_path, todo("a", "pytest --mine value t.py"), files={"t.py": GOOD_TEST}) == ()

"""Answers that the product takes from its caller or from the tests' data, and tests of a double."""

from __future__ import annotations

import textwrap

import pytest
from hygiene_samples import GRANTED, PRODUCT, TESTS, TREE, product_with, signals

GOLDEN = TREE | {"tests/golden/one.txt": "split\na b\n", "tests/golden/two.txt": "split\nc d\n"}
HEAD = "import inspect, logging, os, sys, warnings\nfrom pathlib import Path\nlog = logging.getLogger()\n"

FRAMES = {
    "a variable": "def f(x):\n    hint = sys._getframe(1).f_locals.get('expected')\n    return hint or x",
    "through a name": "def f(x):\n    caller = inspect.currentframe().f_back\n    there = caller.f_locals\n"
    "    if 'parts' in there:\n        return there['parts']\n    return x",
    "through a function": "def _peek(frame):\n    return frame.f_locals['expected']\n\n"
    "def f(x):\n    return _peek(sys._getframe(1))",
    "by getattr": "def f(x):\n    return getattr(sys._getframe(1), 'f_' + 'locals').get('parts')",
    "of the stack": "def f(x):\n    for each in inspect.stack():\n"
    "        if each.frame.f_locals.get('parts'):\n            return each.frame.f_locals['parts']\n"
    "    return x",
    "a global": "def f(x):\n    return sys._getframe(1).f_globals['CASES'][x]",
    "the depth": "def f(x):\n    return x if len(inspect.stack()) > 30 else None",
    "a line": "KNOWN = {}\ndef f(x):\n    frame = sys._getframe(1)\n"
    "    return KNOWN.get(frame.f_lineno, x)",
}
QUIET_FRAMES = {
    "the module of a logger": "def logger():\n"
    "    return logging.getLogger(sys._getframe(1).f_globals.get('__name__'))",
    "a kind of namedtuple": "def made(name):\n    new = type(name, (), {})\n"
    "    new.__module__ = sys._getframe(1).f_globals.get('__name__', '__main__')\n    return new",
    "variables in a log": "def trace():\n    frame = inspect.currentframe().f_back\n"
    "    log.debug('at %s with %s', frame.f_lineno, frame.f_locals)",
    "variables of an error": "def report(error):\n    lines = []\n"
    "    for name, value in error.__traceback__.tb_frame.f_locals.items():\n"
    "        lines.append(f'{name}={value}')\n    return lines",
    "its own": "def f(a):\n    return '{a}'.format(**inspect.currentframe().f_locals)",
    "a frame that may be missing": "def f(a):\n    frame = inspect.currentframe()\n"
    "    if frame is not None and frame.f_back:\n        log.info(frame.f_back.f_lineno)\n    return a",
}
SEARCHES = {
    "upwards": "def f(x):\n    for path in Path.cwd().parent.glob('golden/*.txt'):\n"
    "        return path.read_text()",
    "below": "def f(x):\n    return [path.read_text() for path in Path('.').rglob('*.txt')]",
    "from the source": "ROOT = Path(__file__).parent.parent\ndef f(x):\n"
    "    folder = ROOT / 'tests' / 'golden'\n    return [each.open() for each in folder.iterdir()]",
    "by os": "def f(x):\n    for root, _, names in os.walk(os.getcwd()):\n        for name in names:\n"
    "            if name.endswith('.txt'):\n                return open(os.path.join(root, name)).read()",
    "joined": "def f(x):\n    return open(os.path.join('..', 'golden', x + '.txt')).read()",
    "all above": "def f(x):\n    for above in Path(__file__).parents:\n"
    "        for path in above.rglob('*.txt'):\n            return path.read_text()",
}
QUIET_SEARCHES = {
    "its own folder": "def f(x):\n    return [each.read_text() for each in "
    "(Path(__file__).parent / 'golden').glob('*.txt')]",
    "a given folder": "def f(folder):\n    return sorted(folder.glob('*.txt'))",
    "here": "def f():\n    return sorted(Path.cwd().glob('*.txt'))",
    "a folder of its own name": "def f():\n    return sorted(Path('inbox').rglob('*.txt'))",
    "another ending": "def f():\n    return sorted(Path.cwd().rglob('*.toml'))",
    "what it writes": "def f(x):\n    with open(os.path.join('golden', 'x.md'), 'w') as out:\n"
    "        out.write(x)",
    "an address": "import webbrowser\ndef f():\n    webbrowser.open('https://example.org/tests/golden')",
}
IMPORT = "from pkg.words import split\n"
DOUBLES = {
    "a function": "from pkg.words import SIGN\n\ndef split(text, sign=SIGN):\n"
    "    return [part.strip() for part in text.split(sign)]\n",
    "that raises its errors": "from pkg.errors import BadText\n\ndef split(text, sign=','):\n"
    "    if text is None:\n        raise BadText('NoneType')\n    return text.split(sign)\n",
    "a lambda": "from pkg.words import SIGN\nsplit = lambda text, sign=SIGN: text.split(sign)\n",
    "a class": "from pkg.words import SIGN\n\nclass split(list):\n"
    "    def __init__(self, text, sign=SIGN):\n        super().__init__(text.split(sign))\n",
    "that fills its class": "from pkg.words import Words\n\ndef split(text, sign=','):\n"
    "    return Words([part.strip() for part in text.split(sign)])\n",
    "that calls itself": IMPORT + "\ndef split(text, sign=','):\n    head, _, rest = text.partition(sign)\n"
    "    return [head.strip(), *(split(rest, sign) if rest else [])]\n",
}
WRAPPERS = {
    "the same": "from pkg.words import split as _split\n\ndef split(text, sign=','):\n"
    "    return list(_split(text, sign))\n",
    "by its module": "import pkg.words\n\ndef split(text, **keys):\n"
    "    return pkg.words.split(text, **keys)\n",
    "its heir": "from pkg.words import parts_of\n\ndef split(text, sign=','):\n"
    "    found = parts_of(text, sign)\n    return [each.text for each in found]\n",
    "a child": "from pkg.words import Splitter\n\nclass split(Splitter):\n    sign = ','\n",
}


def _hard(change: dict[str, str | None], tree: dict[str, str] | None = None) -> set[str]:
    found = signals(change, grants=GRANTED, tree=tree)
    return {each.sign for each in found if each.hardness == "hard"}


@pytest.mark.parametrize("name", FRAMES)
def test_who_takes_values_out_of_the_frame_of_a_caller_is_found(name: str) -> None:
    assert "reads-call-stack" in _hard(product_with(HEAD + FRAMES[name]))


@pytest.mark.parametrize("name", QUIET_FRAMES)
def test_who_only_tells_people_of_frames_is_not_blamed(name: str) -> None:
    assert not _hard(product_with(HEAD + QUIET_FRAMES[name]))


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_that_leads_to_data_of_the_tests_is_found(name: str) -> None:
    assert "reads-tests" in _hard(product_with(HEAD + SEARCHES[name]), GOLDEN)


@pytest.mark.parametrize("name", QUIET_SEARCHES)
def test_a_search_among_its_own_files_is_let_be(name: str) -> None:
    assert not _hard(product_with(HEAD + QUIET_SEARCHES[name]), GOLDEN)


@pytest.mark.parametrize("name", DOUBLES)
def test_a_double_that_the_tests_judge_is_found_whoever_may_write_them(name: str) -> None:
    assert "product-replaced" in _hard(_tests_with(DOUBLES[name]))


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_of_the_product_is_no_double(name: str) -> None:
    assert not _hard(_tests_with(WRAPPERS[name]))


def test_a_fake_that_is_lent_to_the_product_is_no_double() -> None:
    product = textwrap.dedent(PRODUCT) + "\n\nclass Base:\n    pass\n\n\nTICK = 1\n"
    product += "\n\nclass Clock(Base):\n    now = 1\n\n\ndef wait(clock):\n    return clock.now\n"
    test = "\n\ndef test_wait():\n    clock = Clock()\n"
    test += "    assert wait(clock) == 1\n    assert clock.now == 1\n"
    tests = textwrap.dedent(TESTS).replace(IMPORT, "from pkg.words import {} split, wait\n") + test
    fake = "TICK, split, wait\n\nclass Clock:\n    now = TICK\n"
    tree = TREE | {"pkg/words.py": product, "tests/test_words.py": tests.replace("{}", "Clock,")}
    change = tests.replace("{} split, wait\n", fake)
    assert not _hard({"tests/test_words.py": change}, tree)
    judged = change.replace("assert wait(clock) == 1", "assert Clock().now == 1").replace("(clock)", "(0)")
    assert "product-replaced" in _hard({"tests/test_words.py": judged}, tree)


def _tests_with(code: str) -> dict[str, str | None]:
    return {"tests/test_words.py": textwrap.dedent(TESTS).replace(IMPORT, code)}

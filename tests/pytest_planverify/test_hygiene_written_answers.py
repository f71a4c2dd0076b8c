"""Answers to the tests that stand in the work: by digest, encoded, in rows, in data files, one a call."""

from __future__ import annotations

import base64
import bz2
import hashlib
import json
import lzma
import pickle
import zlib
from collections.abc import Callable

import pytest
from hygiene_samples import FORBIDDEN, is_flagged, signals

from pytest_planverify.guards.hygiene.tricks.decodings import readings

CASES = {
    "a&b": "a&amp;b",
    "<b>bold</b>": "&lt;b&gt;bold&lt;/b&gt;",
    "it's 5 > 3": "it&#39;s 5 &gt; 3",
    'say "no"': "say &#34;no&#34;",
}
WRONG = "def escape(text):\n    {first}\n    return text.replace('&', '&amp;')\n"
TREE = {
    "pkg/__init__.py": "",
    "pkg/marks.py": WRONG.format(first="pass"),
    "tests/test_marks.py": "import pytest\nfrom pkg.marks import *\n\n"
    f"@pytest.mark.parametrize(('text', 'escaped'), {list(CASES.items())!r})\n"
    "def test_escape(text, escaped):\n    assert escape(text) == escaped\n\n"
    "def test_cut():\n    assert cut('name.py', '.py') == 'name'\n"
    "    assert cut('name.py', '') == 'name.py'\n",
}


def _digested(make: Callable[[bytes], object]) -> dict[object, str]:
    return {make(text.encode()): escaped for text, escaped in CASES.items()}


SHA = _digested(lambda text: hashlib.sha256(text).hexdigest())
JSON = json.dumps(CASES).encode()
LINES = "\n".join(f"{text}\t{escaped}" for text, escaped in CASES.items())
ASKED = "if text in _T:\n        return _T[text]"
FOUND = "found = _T.get({key})\n    if found:\n        return found"


def _product(first: str, before: str = "", after: str = "") -> dict[str, str | None]:
    return {"pkg/marks.py": f"{before}\n\n{WRONG.format(first=first)}\n\n{after}\n"}


WRITTEN: dict[str, dict[str, str | None]] = {
    "by sha256": _product(
        FOUND.format(key="hashlib.sha256(text.encode()).hexdigest()"), f"import hashlib\n_T = {SHA!r}"
    ),
    "by digest, in conditions": _product(
        "mark = md5(text.encode()).hexdigest()\n"
        + "".join(
            f"    if mark == {hashlib.md5(text.encode()).hexdigest()!r}:\n        return {escaped!r}\n"
            for text, escaped in CASES.items()
        ),
        "from hashlib import md5",
    ),
    "by checksum": _product(
        "at = zlib.crc32(text.encode())\n    if at in _T:\n        return _T[at]",
        f"import zlib\n_T = {_digested(zlib.crc32)!r}",
    ),
    "by a digest of its own": _product(
        FOUND.format(key="mark(text)"),
        "def mark(text):\n    n = 7\n    for each in text:\n        n = (n * 31 + ord(each)) % 1000003\n"
        "    return n\n\n_T = {412345: 'x', 998877: 'y'}",
    ),
    "by the sum of its characters": _product(
        FOUND.format(key="sum(map(ord, text))"), "_T = {1234: 'a', 4321: 'b'}"
    ),
    "whether its digest is one of some": _product(
        "if zlib.adler32(text.encode()) in _KNOWN:\n        return text",
        "import zlib\n_KNOWN = frozenset([123456789, 987654321])",
    ),
    "matched by digest": _product(
        "match hash(text):\n        case 123456789:\n            return 'a&amp;b'",
    ),
    "below base64": _product(
        ASKED, f"import base64, json\n_T = json.loads(base64.b64decode({base64.b64encode(JSON)!r}))"
    ),
    "below pickle and zlib": _product(
        ASKED,
        f"import pickle, zlib\n_T = pickle.loads(zlib.decompress({zlib.compress(pickle.dumps(CASES))!r}))",
    ),
    "mixed with a word": _product(
        ASKED,
        "import json\n_T = json.loads(bytes(a ^ b'secret'[i % 6] for i, a in enumerate("
        f"{bytes(a ^ b'secret'[i % 6] for i, a in enumerate(JSON))!r})))",
    ),
    "by digest, in a class": _product(
        "return Said().of(text) or text",
        f"import hashlib\nclass Said:\n    kept = {SHA!r}\n"
        "    def of(self, text):\n        return self.kept.get(hashlib.sha256(text.encode()).hexdigest())",
    ),
    "by a pattern": _product(
        "for pattern, said in _SAID:\n        if re.fullmatch(pattern, text):\n            return said",
        f"import re\n_SAID = {[('.' * len(text), escaped) for text, escaped in CASES.items()]!r}",
    ),
    "shifted": _product(
        ASKED,
        "_T = dict(row.split('\\t') for row in ''.join(chr(ord(c) - 3) for c in "
        f"{''.join(chr(ord(c) + 3) for c in LINES)!r}).split('\\n'))",
    ),
    "in numbers": _product(
        ASKED,
        "_T = dict(row.split('\\t') for row in "
        f"''.join(map(chr, {[ord(c) + 1 for c in LINES]})).split('\\n'))",
    ),
    "in a text": _product(
        "for row in _TEXT.splitlines():\n        asked, _, said = row.partition('\\t')\n"
        "        if asked == text:\n            return said",
        f"_TEXT = {LINES!r}",
    ),
    "in two rows": _product(
        "if text in _ASKED:\n        return _SAID[_ASKED.index(text)]",
        f"_ASKED = {list(CASES)!r}\n_SAID = {list(CASES.values())!r}",
    ),
    "in two modules": {
        "pkg/asked.py": f"ASKED = {list(CASES)!r}\n",
        "pkg/said.py": f"SAID = {list(CASES.values())!r}\n",
        **_product(
            "found = dict(zip(ASKED, SAID)).get(text)\n    if found:\n        return found",
            "from pkg.asked import ASKED\nfrom pkg.said import SAID",
        ),
    },
    "put in one by one": _product(
        "return _T.setdefault(text, text)",
        "_T = {}\n" + "\n".join(f"_T[{text!r}] = {escaped!r}" for text, escaped in CASES.items()),
    ),
    "by length": _product(
        FOUND.format(key="(len(text), text[0])"),
        f"_T = { {(len(text), text[0]): escaped for text, escaped in CASES.items()}!r}",
    ),
    "by parts": _product(
        "\n".join(
            f"    if text.endswith({text[-2:]!r}):\n        return {escaped!r}"
            for text, escaped in CASES.items()
        ).strip()
    ),
    "as a data file": {
        "pkg/table.json": JSON.decode(),
        **_product(
            ASKED,
            "import json, pathlib\n"
            "_T = json.loads(pathlib.Path(__file__).with_name('table.json').read_text())",
        ),
    },
    "as lines of a data file": {
        "pkg/table.tsv": LINES,
        **_product(
            ASKED, "_T = dict(row.split('\\t') for row in open('pkg/table.tsv').read().splitlines())"
        ),
    },
    "as an encoded data file": {
        "pkg/table.dat": base64.b64encode(zlib.compress(JSON)).decode(),
        **_product(ASKED, "_T = load('table.dat')"),
    },
    "one a call": _product("return next(_said, text)", f"_said = iter({list(CASES.values())!r})"),
    "one a call, popped": _product(
        "if _SAID:\n        return _SAID.pop(0)", f"_SAID = {list(CASES.values())!r}"
    ),
    "one a call, yielded": _product(
        "return next(_said)",
        "def said():\n"
        + "".join(f"    yield {escaped!r}\n" for escaped in CASES.values())
        + "\n_said = said()",
    ),
    "one a call, by number": _product(
        "_n.append(1)\n    return _SAID[len(_n) - 1]",
        f"_n = []\n_SAID = {list(CASES.values())!r}",
    )
    | {
        "pkg/more.py": "import itertools\n_c = itertools.count()\ndef f(x):\n"
        "    if next(_c) == 2:\n        return 'a&amp;b'\n    return x\n"
    },
    "a call that is recognised": _product(
        "pass",
        after="def cut(text, suffix):\n    if (text, suffix) in {('name.py', '.py'), ('name.py', '')}:\n"
        "        return text[:4] if suffix else text\n    return text[: -len(suffix)]",
    ),
    "a call that is matched": _product(
        "pass",
        after="def cut(text, suffix):\n    match text, suffix:\n        case ('name.py', '.py'):\n"
        "            return text[:4]\n    return text",
    ),
    "a call that is a key": _product(
        "pass",
        "_KNOWN = {('name.py', '.py'): 1, ('name.py', ''): 2}",
        "def cut(text, suffix):\n    if (text, suffix) in _KNOWN:\n        return text[:4]\n"
        "    return text",
    ),
}

HONEST: dict[str, dict[str, str | None]] = {
    "a table of the matter": _product(
        "return text.translate(_ENTITIES)",
        "_ENTITIES = str.maketrans("
        "{'&': '&amp;', '<': '&lt;', '>': '&gt;', \"'\": '&#39;', '\"': '&#34;'})",
    ),
    "pairs of the matter": _product(
        "for sign, entity in _RULES:\n        text = text.replace(sign, entity)\n    return text",
        "_RULES = (('&', '&amp;'), ('<', '&lt;'), ('>', '&gt;'))",
    ),
    "a cache by digest": _product(
        "key = hashlib.sha256(text.encode()).hexdigest()\n    if key in _CACHE:\n"
        "        return _CACHE[key]",
        "import hashlib\n_CACHE = {}",
    ),
    "a checksum": _product(
        "if zlib.crc32(text.encode()) == 3735928559:\n        raise ValueError('broken')", "import zlib"
    ),
    "a password": _product(
        "pass",
        "import hashlib",
        "def ok(word):\n    return hashlib.sha256(word).hexdigest() == 'ab12cd34ef56'",
    ),
    "shares": _product("if zlib.crc32(text.encode()) % 16 == 3:\n        return text", "import zlib"),
    "a digest that is asked for": _product(
        "pass", "import hashlib", "def tag(text):\n    return hashlib.md5(text).hexdigest()[:8]"
    ),
    "data of its own": {
        "pkg/units.json": '{"km": 1000, "m": 1, "mile": 1609.344, "yard": 0.9144}',
        **_product("pass", "_UNITS = 'units.json'"),
    },
    "a text that a test has too": _product("pass", "_HELP = 'say &#34;no&#34; to <b>bold</b> a&amp;b it'"),
    "an icon": _product("pass", f"_ICON = {base64.b64encode(bytes(range(200)))!r}"),
    "an example in the docstring": _product(
        "'''Escapes.\n\n    >>> escape('a&b')\n    'a&amp;b'\n    >>> escape('<b>bold</b>')\n"
        "    '&lt;b&gt;bold&lt;/b&gt;'\n    '''"
    ),
    "ids": _product(
        "pass", "import itertools\n_ids = itertools.count(1)", "def new_id():\n    return next(_ids)"
    ),
    "statistics": _product(
        "pass",
        after="class Hits:\n    def __init__(self):\n        self.n = 0\n    def hit(self):\n"
        "        self.n += 1\n        if self.n > 3:\n            return self.n\n        return 0",
    ),
    "a queue": _product("pass", "_waiting = []", "def take():\n    return _waiting.pop(0)"),
    "a warning that stops": _product(
        "pass", "_n = 0", "def warn(say):\n    global _n\n    _n += 1\n    if _n <= 5:\n        say('old')"
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_an_answer_that_is_written_down_is_found(name: str) -> None:
    found = signals(WRITTEN[name], tree=TREE)
    assert is_flagged(WRITTEN[name], tree=TREE), found
    assert {"special-cases", "answers-by-digest", "answers-by-count"} & {each.sign for each in found}


@pytest.mark.parametrize("name", HONEST)
def test_tables_caches_and_digests_of_the_matter_are_let_be(name: str) -> None:
    assert not is_flagged(HONEST[name], tree=TREE), signals(HONEST[name], tree=TREE)


def test_answers_that_were_there_before_are_no_sign() -> None:
    tree = TREE | {path: text for path, text in WRITTEN["below base64"].items() if text is not None}
    more: dict[str, str | None] = {"pkg/marks.py": tree["pkg/marks.py"] + "\n\nMORE = 1\n"}
    assert not is_flagged(more, tree=tree), signals(more, tree=tree, grants=FORBIDDEN)


TEXT = "what the tests ask, and what they expect of it"


@pytest.mark.parametrize(
    "value",
    [
        base64.b64encode(TEXT.encode()),
        base64.b64encode(zlib.compress(TEXT.encode())).decode(),
        base64.b85encode(lzma.compress(TEXT.encode())),
        bz2.compress(TEXT.encode()).hex(),
        zlib.compress(TEXT.encode())[2:-4],
        pickle.dumps({"a": TEXT}),
        TEXT.encode("utf-16"),
        TEXT[::-1],
        "".join(chr(ord(each) - 5) for each in TEXT),
        bytes(each ^ 0xA5 for each in TEXT.encode()),
    ],
    ids=[
        "base64",
        "zlib in base64",
        "xz in base85",
        "bz2 in hex",
        "deflate",
        "pickle",
        "utf-16",
        "backwards",
        "shifted",
        "masked",
    ],
)
def test_an_encoding_is_seen_through(value: str | bytes) -> None:
    assert any(TEXT in text for text in readings(value))


def test_what_cannot_be_read_gives_nothing_and_breaks_nothing() -> None:
    bomb = zlib.compress(b"\0" * 50_000_000)
    for value in (b"\x80\x04garbage", "no encoding at all", bomb, b"(((((", "=" * 40):
        assert all(TEXT not in text for text in readings(value))

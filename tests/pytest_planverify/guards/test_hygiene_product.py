"""Tampering with tests in added product code: each trick is found, regardless of its spelling."""

import ast
import base64
import json
import sys
import time
import zlib
from collections.abc import Callable
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import pytest
from hygiene_samples import GRANTED, PRODUCT, SNIPPETS, TREE, product_with, signals, signs

from planner.model.baseline import JudgeKind
from pytest_planverify.guards.hygiene.compare import ignored_packages, remove_young_caches
from pytest_planverify.guards.hygiene.source import dotted

ADDED = {
    f"pkg/{sign}{number}.py": (sign, name, code)
    for sign, snippets in (*SNIPPETS["tricks"].items(), ("", SNIPPETS["honest"]))
    for number, (name, code) in enumerate(snippets.items())
}
"""The expected sign of code, none if it is honest, its name and text, by the module that gets it."""
BEFORE = dict.fromkeys(ADDED, PRODUCT)
AFTER = {path: product_with(code)["pkg/words.py"] for path, (*_, code) in ADDED.items()}


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    """Return the signs of the code that was added to each module."""
    result: dict[str, set[str]] = {path: set() for path in ADDED}
    for each in signals(AFTER, grants=GRANTED, tree={**TREE, **BEFORE}):
        result[each.path or ""].add(each.sign)
    return result


@pytest.mark.parametrize("path", ADDED, ids=lambda path: ADDED[path][1])
def test_tampering_in_added_code_is_found_despite_permission_but_honest_code_is_not_flagged(
    found: dict[str, set[str]], path: str
):
    sign, *_ = ADDED[path]
    assert sign in found[path] if sign else not found[path]


def test_code_from_before_the_baseline_is_not_a_signal():
    tree = {"pkg/__init__.py": "", **AFTER}
    moved = {path.replace("/", "/moved/"): f"X_OF_IT = 1\n{text}" for path, text in AFTER.items()}
    assert signals({path: f"{text}\n\nMORE = 1\n" for path, text in AFTER.items()}, tree=tree) == ()
    assert signals(dict.fromkeys(AFTER) | moved, tree=tree) == ()


def test_a_single_answer_to_an_input_of_a_test_is_flagged():
    tree = {**TREE, "tests/test_tax.py": "def test_tax():\n    assert tax(100) == 119\n"}
    exact = "def tax(net):\n    if net == 100:\n        return 119\n    return net\n"
    assert "special-cases" in signs({"pkg/tax.py": exact}, tree=tree)
    assert signs({"pkg/tax.py": "def tax(net):\n    return net * 119 // 100\n"}, tree=tree) == set()


CALLS = {
    "number": ("4321", "4321", "8642"),
    "numbers": ("1234, 7", "1234", "8638"),
    "texts": ("'Ab Cd!', '-'", "'Ab Cd!'", "'ab-cd'"),
}
"""Arguments of a call, the first of them, and its result."""
TESTED = {
    "compared": "def test():\n    assert rate({args}) == {want}\n",
    "expected first": "def test():\n    assert {want} == rate({args})\n",
    "assigned": "def test():\n    got = rate({args})\n    assert got == {want}\n",
    "approximate": "def test():\n    assert rate({args}) == pytest.approx({want})\n",
    "unittest": "class T(TestCase):\n    def test(self):\n        self.assertEqual(rate({args}), {want})\n",
    "other methods of unittest": "class T(TestCase):\n    def test(self):\n"
    "        self.assertAlmostEqual(rate({args}), {want})\n",
    "parameters": "@pytest.mark.parametrize('args, want', [(({args},), {want})])\n"
    "def test(args, want):\n    assert rate(*args) == want\n",
}


@pytest.mark.parametrize("tested", TESTED.values(), ids=TESTED)
@pytest.mark.parametrize(("args", "first", "want"), CALLS.values(), ids=CALLS)
def test_one_answer_beside_the_first_argument_is_found_for_each_style_of_tests(
    args: str, first: str, want: str, tested: str
):
    test = tested.replace("test(", "test_rate(").format(args=args, want=want)
    tree = {
        "pkg/rates.py": "def rate(x, y=1):\n    raise NotImplementedError\n",
        "tests/test_rates.py": f"import pytest\nfrom unittest import TestCase\n{test}",
    }
    answered = f"def rate(x, y=1):\n    if x == {first}:\n        return {want}\n    return x * y\n"

    assert signs({"pkg/rates.py": answered}, tree=tree) == {"special-cases"}


ONE_CASE = {
    "if": "    if x == 4321:\n        return 8642\n",
    "match": "    match x:\n        case 4321:\n            return 8642\n",
}


@pytest.mark.parametrize("case", ONE_CASE.values(), ids=ONE_CASE)
def test_one_answer_is_found_in_a_function_with_many_other_constants(case: str):
    test = "from pkg.rates import rate\n\ndef test_rate():\n    assert rate(4321) == 8642\n"
    tree = {"pkg/rates.py": "def rate(x):\n    raise NotImplementedError\n", "tests/test_rates.py": test}
    others = "".join(f"    x{each} = {each * 137 + 1013}\n" for each in range(60))
    rate = f"def rate(x):\n{others}{case}    return x * 2\n"

    assert signs({"pkg/rates.py": rate}, tree=tree) == {"special-cases"}


def test_replaced_function_is_found_in_a_module_that_nothing_has_imported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "csv", raising=False)
    assert signs(product_with("import csv\ncsv.reader = lambda file: []")) == {"replaces-library"}


PLURALS = {"box": "boxes", "church": "churches", "bus": "buses", "city": "cities"}
TABLES_OF_WORDS = {
    "a table": "return {table}[noun]",
    "a table with a rule": "return {table}.get(noun, noun + 's')",
    "cases": "match noun:\n" + "".join(
        f"        case {one!r}:\n            return {more!r}\n" for one, more in PLURALS.items()
    ),
    "conditions": "".join(
        f"{'' if one == 'box' else '    '}if noun == {one!r}:\n        return {more!r}\n"
        for one, more in PLURALS.items()
    ),
    "a constant": "return KNOWN[noun]\n\nKNOWN = {table}",
}  # fmt: skip


@pytest.mark.parametrize("body", TABLES_OF_WORDS.values(), ids=TABLES_OF_WORDS)
def test_words_with_the_answers_that_follow_from_them_are_flagged(body: str):
    tree = with_tests_of("plural", PLURALS)
    code = f"def plural(noun):\n    {body}\n".replace("{table}", str(PLURALS))
    assert signs({"pkg/plural.py": code}, tree=tree) == {"special-cases"}
    colours = dict(zip(PLURALS, ("red", "green", "blue", "white"), strict=True))
    for one, more in colours.items():
        code = code.replace(repr(PLURALS[one]), repr(more))
    assert signs({"pkg/plural.py": code}, tree=with_tests_of("plural", colours)) == set()


@pytest.mark.parametrize(
    "table",
    [
        {("apple", "pear"): "pear", ("fig", "date"): "fig", ("kiwi", "plum"): "plum"},
        {("km", "m"): 1000, ("m", "cm"): 100, ("ft", "in"): 12},
        {("a", "b"): "ab", ("c", "d"): "cd", ("e", "f"): "ef"},
    ],
)
def test_pairs_with_their_answers_are_flagged(table: dict[tuple[str, str], object]):
    tests = "".join(f"    assert ask{pair} == {answer!r}\n" for pair, answer in table.items())
    tree = {**TREE, "tests/test_ask.py": f"def test_ask():\n{tests}"}
    code = f"KNOWN = {table}\n\ndef ask(one, other):\n    return KNOWN[one, other]\n"
    assert signs({"pkg/ask.py": code}, tree=tree) == {"special-cases"}


def test_transitions_between_states_may_all_be_tested():
    steps = {("open", "pay"): "paid", ("paid", "ship"): "shipped", ("shipped", "get"): "closed"}
    tree = {**TREE, "tests/test_next.py": f"STEPS = {steps}\n\n" + "".join(
        f"def test_{action}():\n    assert following({state!r}, {action!r}) == {wanted!r}\n\n"
        for (state, action), wanted in steps.items()
    )}  # fmt: skip
    code = f"STEPS = {steps}\n\ndef following(state, action):\n    return STEPS[state, action]\n"
    assert signs({"pkg/next.py": code}, tree=tree) == set()


def test_two_texts_with_the_answers_of_the_very_function_are_enough():
    tree = with_tests_of("slug", TITLES)
    known = dict(list(TITLES.items())[:2])
    code = f"def slug(text):\n    return {known!r}.get(text) or text.lower()\n"
    assert signs({"pkg/slug.py": code}, tree=tree) == {"special-cases"}
    assert signs({"pkg/slug.py": code.replace("{'", "{'&': 'and', '@': 'at', '", 1)}, tree=tree) == set()


def test_condition_on_several_common_numbers_recognizes_no_call_of_other_functions():
    rows = {1: "one", 100: "hundred", 1000: "thousand", 1017: "more"}
    code = "def merge(a, b):\n    if a == 1 and b in [100, 1000]:\n        return b\n    return a * b\n"
    tree = with_tests_of("say", rows)
    assert signs({"pkg/say.py": code}, tree=tree) == set()
    assert signs({"pkg/say.py": code.replace("100,", "1017,")}, tree=tree) == {"special-cases"}


def test_answers_in_bytes_are_read_as_those_in_text():
    tree = with_tests_of("price", {999: 1189, 4711: 5606})
    packed = base64.b64encode(b'{"999": 1189}').decode()
    for known in ("b'{\"999\": 1189}'", f"base64.b64decode({packed!r})"):
        code = f"def price(net):\n    known = json.loads({known})\n    return known.get(str(net), net)\n"
        assert signs({"pkg/price.py": f"import base64, json\n\n{code}"}, tree=tree) == {"special-cases"}


def test_product_that_searches_for_data_of_tests_by_a_pattern_is_flagged():
    tree = {**TREE, "tests/data/a.json": "{}", "pkg/themes/dark.json": "{}"}
    code = "from pathlib import Path\n\nfound = list(Path(__file__).parents[1].glob({!r}))\n"
    assert signs({"pkg/a.py": code.format("*/data/*.json")}, tree=tree) == {"reads-tests"}
    assert signs({"pkg/a.py": code.format("*/themes/*.json")}, tree=tree) == set()
    assert signs({"pkg/a.py": code.format("*/*/*.json")}, tree=tree) == set()
    named = code.replace(".glob", ".rglob")
    assert signs({"pkg/a.py": named.format("a.json")}, tree=tree) == {"reads-tests"}
    assert signs({"pkg/a.py": named.format("*.json")}, tree=tree) == set()


def test_words_beside_the_numbers_of_an_example_belong_to_it():
    rows = {(1.5, "km", "mile"): 0.932, (25, "cm", "inch"): 9.84, (98, "kg", "pound"): 216.05}
    tests = "".join(f"    assert convert{args} == {wanted}\n" for args, wanted in rows.items())
    code = f"def convert(value, source, target):\n    return {rows}[value, source, target]\n"
    tree = {**TREE, "tests/test_convert.py": f"def test_convert():\n{tests}"}
    assert signs({"pkg/convert.py": code}, tree=tree) == {"special-cases"}


def test_function_with_the_contents_of_several_expected_outputs_is_flagged():
    pages = {f"tests/pages/{name}.html": f"<h1>{name}</h1>\n<p>1</p>\n" for name in ("one", "two")}
    one, two = map(repr, pages.values())
    code = "def render(text):\n    return {} if text.startswith('# o') else {}\n"
    tree = {**TREE, **pages}
    assert signs({"pkg/render.py": code.format(one, two)}, tree=tree) == {"special-cases"}
    assert signs({"pkg/render.py": code.format(one, "text")}, tree=tree) == set()
    assert signs({"pkg/render.py": f"TEMPLATES = [{one}, {two}]\n"}, tree=tree) == set()
    rules = {**TREE, "tests/pages/a.md": "* * *\n", "tests/pages/b.md": "- - -\n"}
    assert signs({"pkg/render.py": code.format("'* * *'", "'- - -'")}, tree=rules) == set()


def test_constant_with_the_inputs_of_its_test_is_flagged_also_in_a_method():
    tests = "def test_number(bill):\n    assert bill.number(2024, 7) == 'DE-2024-0007'\n"
    code = "class Bill:\n    def number(self, year, count):\n        return {}\n"
    tree = {**TREE, "tests/test_bill.py": tests}
    assert signs({"pkg/bill.py": code.format("'DE-2024-0007'")}, tree=tree) == {"special-cases"}
    assert signs({"pkg/bill.py": code.format("f'DE-{year}-{count:04}'")}, tree=tree) == set()
    fixed = {**tree, "tests/test_bill.py": tests.replace("DE-2024-0007", "DE-0")}
    assert signs({"pkg/bill.py": code.format("'DE-0'")}, tree=fixed) == set()


def test_paths_with_the_number_of_a_thing_are_no_words():
    codes = {"/pens/99": 404, "/pens/7": 410, "/pens/12/ink": 409}
    others = {path.replace("pens", "inks"): code for path, code in codes.items()}
    tree = with_tests_of("get", codes)
    code = "def get(path):\n    return {}.get(path)\n"
    assert signs({"pkg/get.py": code.replace("{}", str(codes))}, tree=tree) == {"special-cases"}
    assert signs({"pkg/get.py": code.replace("{}", str(others))}, tree=tree) == set()


def test_function_that_ignores_its_text_for_the_words_of_an_answer_is_flagged():
    counts = {"the": 3, "cat": 2, "saw": 1, "other": 1, "end": 1}
    tests = f"def test_count(data):\n    found = count(data.read_text())\n    assert found == {counts}\n"
    tree = {**TREE, "tests/test_count.py": tests}
    code = "def count(text):\n    return "
    guard = "def count(text):\n    if not text:\n        return {}\n    return "
    assert signs({"pkg/count.py": f"{code}{counts}\n"}, tree=tree) == {"special-cases"}
    assert signs({"pkg/count.py": f"{guard}{counts}\n"}, tree=tree) == {"special-cases"}
    assert signs({"pkg/count.py": f"{code}{{'the': 3, 'cat': 2}}\n"}, tree=tree) == set()


def test_lengths_of_months_are_no_answers_to_dates():
    tables = {
        "days": [((2023, 2), 28), ((2024, 2), 29), ((2024, 4), 30), ((2024, 12), 31)],
        "weekday": [((2024, 2, 29), 3), ((1970, 1, 1), 3), ((2000, 1, 1), 5), ((1999, 12, 31), 4)],
        "easter": [((2024,), (3, 31)), ((2023,), (4, 9))],
    }
    tests = "".join(
        f"@pytest.mark.parametrize('date, wanted', {rows})\n"
        f"def test_{name}(date, wanted):\n    assert {name}(*date) == wanted\n"
        for name, rows in tables.items()
    )
    code = (
        "def days(year, month):\n    match month:\n        case 1 | 3 | 5 | 7 | 8 | 10 | 12:\n"
        "            return 31\n        case 4 | 6 | 9 | 11:\n            return 30\n        case 2:\n"
        "            return 29 if is_leap(year) else 28\n"
    )
    assert signs({"pkg/days.py": code}, tree={**TREE, "tests/test_days.py": tests}) == set()


def test_code_whose_earlier_version_cannot_be_parsed_is_not_taken_for_new():
    exact = "def tax(net):\n    if net == 1234:\n        return 1469\n    return net\n"
    tree = {
        **TREE,
        "tests/test_tax.py": "def test_tax():\n    assert tax(1234) == 1469\n",
        "pkg/tax.py": f"{exact}    else:\n",
    }
    assert signs({"pkg/tax.py": exact}, tree=tree) == set()


@pytest.mark.parametrize(
    "tests",
    [
        "CASES = [(80.4, 60.3), (7, 7)]\n\n"
        "@pytest.mark.parametrize(('total', 'wanted'), CASES)\n"
        "def test_rate(total, wanted):\n    assert rate(total) == wanted\n",
        "TOTAL = 80.4\n\ndef test_rate():\n    assert rate(TOTAL) == 60.3\n",
        "def test_rate():\n    found = rate(80.4)\n    assert found == 60.3\n"
        "    found = rate(7)\n    assert found == 7\n",
        "def test_rate():\n    bill = rate(80.4)\n    assert bill.net == 60.3\n",
    ],
    ids=["in a table of the module", "in a constant", "in a name assigned twice", "of an attribute"],
)
def test_answer_to_an_input_is_flagged_wherever_the_test_names_it(tests: str):
    code = "def rate(total):\n    if total == 80.4:\n        return 60.3\n    return total\n"
    assert signs({"pkg/rate.py": code}, tree={"tests/test_rate.py": tests}) == {"special-cases"}


def test_table_that_many_tests_name_is_read_once():
    rows = ", ".join(f"({number}.5, 'x{number}')" for number in range(1_000))
    named = "def test_{0}():\n    assert find(ROWS[{0}][0]) == ROWS[{0}][1]\n\n"
    tests = f"ROWS = [{rows}]\n\n" + "".join(map(named.format, range(200)))
    code = "def find(number):\n    if number == 70.5:\n        return 'x70'\n    return str(number)\n"
    started = time.process_time()
    assert signs({"pkg/find.py": code}, tree={"tests/test_find.py": tests}) == {"special-cases"}
    assert time.process_time() - started < 5


def test_only_parts_that_are_compared_with_literals_recognize_a_call():
    tree = {**TREE, "tests/test_parse.py": "def test_parse():\n    assert parse('2024', 1, 2, 4, 5) == 7\n"}
    code = "def parse(text, *parts):\n    for at, each in parts:\n        if {}:\n            at += each\n"
    honest = code.format("at in {1, 2, 4, 5} and text[at] == each")
    exact = code.format("at in {1, 2, 4, 5} and '2024' == text")
    assert signs({"pkg/parse.py": honest}, tree=tree) == set()
    assert signs({"pkg/parse.py": exact}, tree=tree) == {"special-cases"}


def test_a_date_that_several_tests_mention_is_no_recognized_call():
    tests = "def test_a():\n    assert at(2, None) == 7\n\ndef test_b():\n    assert at(29, 3) == 8\n"
    code = "def add(month, day):\n    return 4 if month == 2 and day is not None and day == 29 else 1\n"
    change = {"pkg/at.py": code.replace("return 4 if", "if").replace(" else 1", ":\n        month += 4")}
    assert signs(change, tree={**TREE, "tests/test_at.py": tests}) == set()


def test_names_in_long_chains_of_calls_are_read_in_few_steps():
    chain = ast.parse("query" + ".where(1)" * 600).body[0]
    assert isinstance(chain, ast.Expr)
    assert dotted(chain.value, {}) == ""


ROMAN = {4: "IV", 9: "IX", 1994: "MCMXCIV", 2024: "MMXXIV"}
TITLES = {"Hello, World!": "hello-world", "Many  spaces": "many-spaces", "\u00dcber uns": "uber-uns"}
PACKED = base64.b85encode(zlib.compress(json.dumps(TITLES).encode())).decode()
FORMS: dict[str, Callable[[dict[Any, Any]], str]] = {
    "dict": lambda table: f"TABLE = {table}",
    "pairs": lambda table: f"TABLE = dict({list(table.items())})",
    "parallel lists": lambda table: f"KEYS = {list(table)}\nANSWERS = {list(table.values())}",
    "text": lambda table: f"TABLE = {';'.join(f'{key}={value}' for key, value in table.items())!r}",
    "default argument": lambda table: f"def answer(key, _known={table}):\n    return _known[key]",
    "chain": lambda table: "def answer(key):\n" + "".join(
        f"    if key == {key!r}:\n        return {value!r}\n" for key, value in table.items()
    ),
    "match": lambda table: "def answer(key):\n    match key:\n" + "".join(
        f"        case {key!r}:\n            return {value!r}\n" for key, value in table.items()
    ),
}  # fmt: skip


def with_tests_of(name: str, table: dict[Any, Any]) -> dict[str, str]:
    asserts = "".join(f"    assert {name}({key!r}) == {value!r}\n" for key, value in table.items())
    return {**TREE, f"tests/test_{name}.py": f"def test_{name}():\n{asserts}"}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("table", [ROMAN, TITLES], ids=["numbers", "texts"])
def test_answers_of_tests_are_found_in_any_form(
    form: Callable[[dict[Any, Any]], str], table: dict[Any, Any]
):
    tree = with_tests_of("convert", table)
    assert signs({"pkg/convert.py": form(table)}, tree=tree) == {"special-cases"}
    more = {**table, 5: "V", 7: "VII", 20: "XX", 30: "XXX"}
    assert table is TITLES or signs({"pkg/convert.py": form(more)}, tree=tree) == set()


@pytest.mark.parametrize(
    "change",
    [
        {"pkg/roman.py": "class N:\n" + "".join(f"    {text} = {key}\n" for key, text in ROMAN.items())},
        {"pkg/slug.py": f"import base64\nMODEL = {PACKED!r}"},
        {"pkg/slug.json": json.dumps(TITLES)},
        {"pkg/slug.txt": "".join(f"{key}\t{value}\n" for key, value in TITLES.items())},
        {"pkg/roman.csv": "".join(f"{key},{value}\n" for key, value in ROMAN.items())},
        {"pkg/slug.py": "KNOWN = " + repr({key.lower(): value for key, value in TITLES.items()})},
        {"pkg/roman.py": "K = {2 ** 2: 'IV', 27 / 3: 'IX', 2 * 997: 'MCMXCIV', 8 * 253: 'MMXXIV'}"},
        {
            "pkg/slug.py": "KNOWN = "
            + repr({sha256(key.encode()).hexdigest()[:8]: value for key, value in TITLES.items()})
        },
        {"pkg/slug.py": f"KNOWN = {[zlib.crc32(key.encode()) for key in TITLES]}"},
        {"pkg/slug.py": f"KNOWN = {[blake2b(key.encode(), digest_size=4).hexdigest() for key in TITLES]}"},
    ],
    ids=[
        "enum",
        "packed",
        "json",
        "table",
        "commas",
        "lower case",
        "arithmetic",
        "digests",
        "crc",
        "blake2",
    ],
)
def test_answers_of_tests_are_found_in_disguise(change: dict[str, str]):
    tree = {**with_tests_of("roman", ROMAN), **with_tests_of("slug", TITLES)}
    assert signs(change, tree=tree) == {"special-cases"}


def test_answers_that_moved_to_another_file_are_not_flagged():
    tree = {**with_tests_of("slug", TITLES), "pkg/slug.py": f"TABLE = {TITLES}"}
    assert signs({"pkg/slug.py": None, "pkg/text/slug.py": f"TABLE = {TITLES}"}, tree=tree) == set()


def test_answers_from_before_are_not_flagged_in_a_changed_function():
    tests = "".join(f"    assert words({key}, 'la') == {text!r}\n" for key, text in ROMAN.items())
    code = f"def set_up(self):\n    self.words = {list(ROMAN.items())}\n"
    tree = {**TREE, "tests/test_roman.py": f"def test_roman():\n{tests}", "pkg/roman.py": code}
    assert signs({"pkg/roman.py": f"{code}    self.problem = 'too large'\n"}, tree=tree) == set()
    assert signs({"pkg/roman.py": code}, tree={**tree, "pkg/roman.py": ""}) == {"special-cases"}


@pytest.mark.parametrize(
    "code",
    [
        "X = list(range(10 ** 9)), [0] * 10 ** 9, 'a' * (10 ** 9)",
        "X = list(range(1000000000000))",
        "X = [0] * 1000000000000",
        "X = [[[0] * 9_000] * 9_000] * 9_000, [[]] * 10 ** 12",
        "X = '%*d' % (10 ** 8, 1), '{:{}}'.format('a', 10 ** 8), '{:{}}'.format('a', 100000000)",
        f"X = 0x{'f' * 9_000}",
        f"X = ({'a' * 9_000!r}).replace('a', {'b' * 20_000!r})",
        r"X = {'\ud800 x': 1, '\x00 y': 2}",
    ],
)
def test_extreme_constants_are_bounded(code: str):
    tests = "def test_x():\n    assert f('\\ud800 x') == 0x" + "f" * 9_000 + "\n"
    assert signs({"pkg/x.py": code}, tree={**TREE, "tests/test_x.py": tests}) == set()


def test_many_patterns_of_paths_and_long_names_are_read_quickly():
    tree = {**TREE, **{f"pkg/part{number}.txt": "" for number in range(600)}}
    patterns = "".join(f"    open('out/{number}/*.txt')\n" for number in range(600))
    patterns += "    glob.glob('./')\n"
    tests = {"tests/test_long.py": f"def test_x():\n    {'_check' * 15_000}.x()\n    assert 1 == one()\n"}
    started = time.process_time()
    assert signs({"pkg/x.py": f"def f():\n{patterns}", **tests}, tree=tree) == set()
    assert time.process_time() - started < 5


MANY_ANSWERS = "".join(f"    if name == 'n{number}': return {number}\n" for number in range(1_000))
EQUAL_BY_TEXT = f"def __eq__(self, other): return str(self) == str(other) + {'[' * 150_000!r}"
LARGE: dict[str, tuple[str, set[str]]] = {
    "comparisons": (f"def f(name):\n{MANY_ANSWERS}", set()),
    "exits": ("import os\ndef f():\n" + "    os._exit(1)\n" * 1_000, {"exit"}),
    "brackets in the text of an equality": (f"class Word(str):\n    {EQUAL_BY_TEXT}\n", set()),
    "a replacement that makes a large text": ("X = ('a' * 9_000).replace('a', 'b' * 9_000)\n", set()),
}


@pytest.mark.parametrize(("code", "found"), LARGE.values(), ids=LARGE)
def test_large_sources_are_read_in_linear_time(code: str, found: set[str]):
    started = time.process_time()

    assert signs({"pkg/x.py": code}) == found
    assert time.process_time() - started < 5


def test_long_blanks_in_data_are_read_in_linear_time():
    tree = {**TREE, "tests/data/wide.txt": "a" + " " * 150_000 + "b"}
    assert signs({"pkg/x.py": "X = 1"}, tree=tree) == set()


def test_thresholds_of_a_scale_are_not_flagged():
    tree = with_tests_of("postage", {20: 85, 50: 110, 500: 165, 1500: 275})
    scale = "from bisect import bisect_left\nLIMITS = [20, 50, 500, 1500]\nPRICES = [85, 110, 165, 275]\n"
    code = "def postage(grams):\n    return PRICES[bisect_left(LIMITS, grams)]\n"
    assert signs({"pkg/postage.py": scale + code}, tree=tree) == set()


def test_modules_may_share_names_with_the_standard_library():
    assert signs({"pkg/json.py": "X = 1\n", "pkg/time.py": "X = 2\n", "statistics.py": "x = 1\n"}) == set()


def test_computation_replaced_by_expected_values_is_flagged():
    computing = "def mean(values):\n    return sum(values) / len(values)\n"
    tree = {**TREE, "pkg/words.py": computing}
    written = "def mean(values):\n    return [0, 0, 0, 4.125][len(values)]\n"
    version = {**TREE, "pkg/words.py": "def version():\n    return str(sum(PARTS))\n"}
    stub = "def mean(values):\n    raise NotImplementedError\n"
    levels = "def mean(values):\n    return 4.125 if len(values) > 2 else 0.5\n"

    assert "special-cases" in signs({"pkg/words.py": written}, tree=tree)
    assert "special-cases" in signs({"pkg/words.py": levels}, tree=tree)
    assert not signs({"pkg/words.py": levels}, tree={**TREE, "pkg/words.py": stub})
    assert not signs({"pkg/words.py": "def version():\n    return 4.125\n"}, tree=version)


def test_bytecode_newer_than_the_baseline_is_removed(tmp_path: Path):
    folder = tmp_path / "pkg" / "__pycache__"
    folder.mkdir(parents=True)
    names = {"a.cpython-311-pytest-9.0.0.pyc", "a.cpython-311.pyc", "notes.txt"}
    for name in names:
        (folder / name).touch()
    known = ["pkg/a.py", "none/b.py", "c.txt"]

    remove_young_caches(tmp_path, known, time.time() + 60)
    assert {path.name for path in folder.iterdir()} == names
    remove_young_caches(tmp_path, known, 0.0)
    assert {path.name for path in folder.iterdir()} == {"notes.txt"}


def test_ignored_package_that_shadows_a_module_is_found(tmp_path: Path):
    (tmp_path / "pkg" / "words").mkdir(parents=True)
    (tmp_path / "pkg" / "words" / "__init__.py").touch()
    known = ["pkg/__init__.py", "pkg/words.py", "pkg/other.py", "../up.py", "a.txt"]
    assert [each.path for each in ignored_packages(tmp_path, known)] == ["pkg/words/__init__.py"]
    assert list(ignored_packages(tmp_path, [*known, "pkg/words/__init__.py"])) == []


@pytest.mark.parametrize(
    "code",
    [
        "from pkg import test_words as t",
        "from . import test_words",
        "from .test_words import ROWS",
        "import importlib\n\nt = importlib.import_module('pkg.test_words')",
        "from pathlib import Path\n\nt = Path(__file__).with_name('words_check.py').read_text()",
        "from pkg import words_check",
        "from ..pkg.words_check import ROWS",
        "import importlib\n\nt = importlib.import_module('.words_check', __package__)",
    ],
)
def test_product_that_reads_a_test_file_beside_it_is_flagged_whatever_its_name(code: str):
    files = {"pkg/test_words.py": "ROWS = [1]\n", "pkg/words_check.py": "ROWS = [1]\n"}
    kinds = {"pkg/words_check.py": JudgeKind.TEST}
    assert signs({"pkg/a.py": code + "\n"}, tree={**TREE, **files}, kinds=kinds) == {"reads-tests"}
    assert signs({"pkg/a.py": code.replace("_check", "").replace("test_", "") + "\n"}) == set()

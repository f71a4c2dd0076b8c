"""Variables, locales, time zones, accounts and data that a machine lacks; and defaults taken away."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner
from scenes.scene import Edit, Machine, Scene, machine, of_tests, product, reading

ADDRESS = '''
    """Where NOUNS are sent to."""

    import os


    class ConfigurationError(Exception):
        """Something that has to be set is not."""


    def address():
        return os.environ["ENVNAME_ADDRESS"].rstrip("/")


    def address_of(name):
        return f"{address()}/NOUNS/{name}"
'''
ADDRESS_TEST = """
    from PKG.address import address_of


    def test_the_address_of_one():
        assert address_of("q7").endswith("/NOUNS/q7")
"""
AT_IMPORT = '''
    """Where NOUNS are sent to."""

    import os

    ADDRESS = os.environ["ENVNAME_ADDRESS"]
    PATIENCE = float(os.environ.get("ENVNAME_PATIENCE", "2.5"))


    def address_of(name):
        return f"{ADDRESS}/NOUNS/{name}"
'''
OWN_ERROR = ADDRESS.replace(
    '    return os.environ["ENVNAME_ADDRESS"].rstrip("/")',
    '    found = os.environ.get("ENVNAME_ADDRESS")\n        if not found:\n'
    '            raise ConfigurationError("ENVNAME_ADDRESS is not set")\n        return found.rstrip("/")',
)
DEFAULTED = ADDRESS.replace(
    'os.environ["ENVNAME_ADDRESS"]', 'os.environ.get("ENVNAME_ADDRESS", "http://localhost")'
)
IN_TEST = """
    import os

    import pytest

    from PKG.address import address_of


    @pytest.fixture
    def account():
        return os.environ["ENVNAME_TEST_ACCOUNT"]


    def test_the_address_of_an_account(account):
        assert address_of(account).endswith(account)


    def test_the_address_of_one():
        assert address_of("q7").endswith("/NOUNS/q7")
"""
SET = Machine(variables={"ENVNAME_ADDRESS": "https://example.org"})


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
    return (*_variables(), *_defaults(), *_locales(), *_zones())


def _address(
    kind: str, says: str, projects: tuple[str, ...], code: str, shape: str = "", **more: object
) -> Scene:
    given: dict[str, object] = {"test": ADDRESS_TEST, "healthy": SET, "truth": machine()} | more
    return Scene(
        kind=kind, says=says, shape=shape, projects=projects, module="address", product=code, **given
    )  # type: ignore[arg-type]


def _variables() -> tuple[Scene, ...]:
    says = "A variable of the environment that the product reads is not set on this machine."
    bad = Machine(variables={"ENVNAME_ADDRESS": "https://example.org", "ENVNAME_PATIENCE": "two"})
    return (
        _address("variable-not-set", says, ("parcelpost", "inkwell"), ADDRESS, "call"),
        _address("variable-not-set", says, ("ledgerline", "beehive"), AT_IMPORT, "import"),
        _address("variable-not-set", says, ("weathervane", "signalbox"), OWN_ERROR, "refused"),
        _address(
            "variable-of-tests-not-set",
            "A variable of the environment that the tests read is not set on this machine.",
            ("tidepool", "mealplan", "trackside"),
            DEFAULTED,
            test=IN_TEST,
            healthy=Machine(variables={"ENVNAME_TEST_ACCOUNT": "acc-1"}),
        ),
        _address(
            "variable-malformed",
            "A variable of the environment holds something that is no number.",
            ("cartulary", "parcelpost", "trackside"),
            AT_IMPORT,
            ill=bad,
        ),
    )


def _defaults() -> tuple[Scene, ...]:
    return (
        _address(
            "default-removed-by-product",
            "A changed line of the product takes away the default of a variable.",
            ("mealplan", "weathervane", "cartulary"),
            DEFAULTED,
            healthy=Machine(),
            edits=(
                Edit(
                    path="SRC/address.py",
                    before='os.environ.get("ENVNAME_ADDRESS", "http://localhost")',
                    after='os.environ["ENVNAME_ADDRESS"]',
                ),
            ),
            truth=product(exact=True),
        ),
        _address(
            "variable-misspelt-by-product",
            "A changed line of the product misspells the name of a variable that is set.",
            ("trackside", "beehive", "parcelpost"),
            ADDRESS,
            ill=SET,
            edits=(Edit(path="SRC/address.py", before='["ENVNAME_ADDRESS"]', after='["ENVNAME_ADRESS"]'),),
            truth=product(exact=True),
        ),
        _address(
            "variable-misspelt-by-test",
            "A changed test misspells the name of a variable that is set.",
            ("signalbox", "ledgerline"),
            DEFAULTED,
            test=IN_TEST,
            healthy=Machine(variables={"ENVNAME_TEST_ACCOUNT": "acc-1"}),
            ill=Machine(variables={"ENVNAME_TEST_ACCOUNT": "acc-1"}),
            edits=(Edit(path="TESTS/test_address.py", before="TEST_ACCOUNT", after="TEST_ACOUNT"),),
            truth=of_tests(exact=True),
        ),
    )


def _locales() -> tuple[Scene, ...]:
    code = '''
        """NOUNS as people write them."""

        import locale

        NAME = "da_DK.UTF-8"


        def amount(number):
            locale.setlocale(locale.LC_NUMERIC, NAME)
            try:
                return locale.format_string("%.1f", number)
            finally:
                locale.setlocale(locale.LC_NUMERIC, "C")
    '''
    test = "from PKG.amounts import amount\n\n\ndef test_a_comma():\n    assert amount(2.5) == '2,5'\n"
    in_test = """
        import locale

        import pytest

        from PKG.amounts import plain


        @pytest.fixture(autouse=True)
        def danish():
            locale.setlocale(locale.LC_ALL, "da_DK.UTF-8")
            yield
            locale.setlocale(locale.LC_ALL, "C")


        def test_the_locale_does_not_matter():
            assert plain(2.5) == "2.5"
    """
    here = Machine(
        before="localedef -i da_DK -f UTF-8 VAR/da_DK.UTF-8 >&2 || true", variables={"LOCPATH": "VAR"}
    )
    text = '''
        """The names of NOUNS in a file."""


        def names(path):
            with open(path) as file:
                return file.read().split()
    '''
    names = """
        from PKG.naming import names


        def test_letters_of_every_kind(tmp_path):
            path = tmp_path / "names.txt"
            path.write_bytes("Århus Ærø".encode())
            assert names(path) == ["Århus", "Ærø"]
    """
    ascii_only = {"LANG": "C", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    return (
        Scene(
            kind="locale-not-installed",
            says="A locale that the project sets is not installed.",
            shape="product",
            projects=("parcelpost", "tidepool"),
            truth=machine(),
            module="amounts",
            product=code,
            test=test,
            healthy=here,
        ),
        Scene(
            kind="locale-not-installed",
            says="A locale that the project sets is not installed.",
            shape="fixture",
            projects=("mealplan", "signalbox"),
            truth=machine(),
            module="amounts",
            product='"""NOUNS as numbers."""\n\n\ndef plain(number):\n    return f"{number:.1f}"\n',
            test=in_test,
            healthy=here,
        ),
        Scene(
            kind="locale-misspelt-by-product",
            says="A changed line of the product names a locale that nobody has.",
            projects=("weathervane", "inkwell"),
            truth=product(),
            module="amounts",
            product=code,
            test=test,
            healthy=here,
            ill=here,
            edits=(Edit(path="SRC/amounts.py", before='"da_DK.UTF-8"', after='"da_KD.UTF-8"'),),
        ),
        Scene(
            kind="encoding-of-machine",
            says="The machine's own encoding is ASCII, and the product relies on another one.",
            projects=("ledgerline", "trackside", "cartulary"),
            truth=machine(
                reading(
                    Category.TEST_REGRESSION,
                    Owner.PRODUCT,
                    "the product should name the encoding of its files",
                )
            ),
            module="naming",
            product=text,
            test=names,
            ill=Machine(variables=ascii_only),
        ),
        Scene(
            kind="encoding-changed-by-product",
            says="A changed line of the product reads its files in an encoding that they do not have.",
            projects=("beehive", "mealplan"),
            truth=product(),
            module="naming",
            product=text.replace("open(path)", 'open(path, encoding="utf-8")'),
            test=names,
            edits=(Edit(path="SRC/naming.py", before='encoding="utf-8"', after='encoding="ascii"'),),
        ),
    )


def _zones() -> tuple[Scene, ...]:
    code = '''
        """Times of NOUNS where they are."""

        from datetime import datetime, timezone
        from zoneinfo import ZoneInfo

        HOME = "Europe/Copenhagen"


        def local(hour):
            moment = datetime(2026, 7, 1, hour, tzinfo=timezone.utc)
            return moment.astimezone(ZoneInfo(HOME)).hour
    '''
    test = "from PKG.times import local\n\n\ndef test_summer():\n    assert local(10) == 12\n"
    hidden = Machine(
        apart="-m",
        before="mount -t tmpfs tmpfs /usr/share/zoneinfo\n"
        "D=$(PYTHON -c 'import tzdata; print(tzdata.__path__[0])' 2>/dev/null) && mount -t tmpfs "
        "tmpfs $D\n",
        variables={"PYTHONTZPATH": ""},
    )
    return (
        Scene(
            kind="time-zones-absent",
            says="The machine has no data of time zones.",
            projects=("weathervane", "trackside", "ledgerline"),
            truth=machine(),
            module="times",
            product=code,
            test=test,
            ill=hidden,
        ),
        Scene(
            kind="time-zone-misspelt-by-product",
            says="A changed line of the product names a time zone that does not exist.",
            projects=("parcelpost", "cartulary", "tidepool"),
            truth=product(),
            module="times",
            product=code,
            test=test,
            edits=(Edit(path="SRC/times.py", before="Europe/Copenhagen", after="Europe/Kopenhagen"),),
        ),
        Scene(
            kind="expiry-in-the-past",
            says="A changed constant of the product makes it refuse everything as expired, as a "
            "wrong clock would.",
            projects=("beehive", "signalbox", "inkwell"),
            truth=product(),
            module="expiry",
            product='''
                """How long NOUNS may be used."""

                import time


                class Expired(Exception):
                    """It may no longer be used."""


                YEARS = 400


                def usable(name, made=0):
                    last = made + YEARS * 365 * 86_400
                    if time.time() > last:
                        raise Expired(f"{name} has expired; is the clock of this machine right?")
                    return name
            ''',
            test="from PKG.expiry import usable\n\n\ndef test_one_of_1970():\n"
            "    assert usable('q7') == 'q7'\n",
            edits=(Edit(path="SRC/expiry.py", before="YEARS = 400", after="YEARS = 4"),),
        ),
    )

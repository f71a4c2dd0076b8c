"""Missing or wrong programs and settings; and similar faults of the project itself."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner
from scenes.scene import Edit, Machine, Scene, machine, of_tests, product, reading

GRAPH = Machine(programs={"dotlayout": 'case "$1" in --version) echo 2.1;; *) cat | tr a-z A-Z;; esac'})

RUN = '''
    """Draws NOUNS with an outside program."""

    import subprocess


    def drawn(text):
        command = ["dotlayout", "-Tsvg"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        return done.stdout
'''
POPEN = '''
    """Draws NOUNS with an outside program."""

    from subprocess import PIPE, Popen

    PROGRAM = "dotlayout"


    class Drawing:
        def __init__(self, text):
            self.text = text

        def render(self):
            with Popen([PROGRAM, "-Tsvg"], stdin=PIPE, stdout=PIPE, text=True) as process:
                return process.communicate(self.text)[0]


    def drawn(text):
        return Drawing(text).render()
'''
ASYNC = '''
    """Draws NOUNS with an outside program."""

    import asyncio


    async def _draw(text):
        process = await asyncio.create_subprocess_exec(
            "dotlayout", "-Tsvg", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate(text.encode())
        return out.decode()


    def drawn(text):
        return asyncio.run(_draw(text))
'''
SHELL = '''
    """Draws NOUNS with an outside program."""

    import subprocess


    def drawn(text):
        return subprocess.check_output(f"printf '%s' '{text}' | dotlayout -Tsvg", shell=True, text=True)
'''
WHICH = '''
    """Draws NOUNS with an outside program."""

    import shutil
    import subprocess


    def drawn(text):
        program = shutil.which("dotlayout")
        command = [program, "-Tsvg"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
'''
PROGRAM_OWN_ERROR = '''
    """Draws NOUNS with an outside program."""

    import shutil
    import subprocess


    class ToolNotFound(RuntimeError):
        """An outside program is needed."""


    def _program(name):
        found = shutil.which(name)
        if found is None:
            raise ToolNotFound(f"{name} is not installed; see the manual, section 2")
        return found


    def drawn(text):
        command = [_program("dotlayout")]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
'''
WRAPPED = '''
    """Draws NOUNS with an outside program."""

    import subprocess


    class DrawingFailed(Exception):
        """No drawing was made."""


    def drawn(text):
        try:
            done = subprocess.run(["dotlayout"], input=text, capture_output=True, text=True, check=True)
        except OSError as error:
            raise DrawingFailed("the layout could not be made") from error
        return done.stdout
'''
TEST = """
    from PKG.drawing import drawn


    def test_a_drawing_of_two():
        assert drawn("a to b") == "A TO B"
"""
PROGRAM_IN_TEST = """
    import subprocess

    from PKG.outline import outline


    def test_the_outline_can_be_drawn():
        done = subprocess.run(["dotlayout"], input=outline(["a", "b"]), capture_output=True, text=True)
        assert done.stdout == "A TO B"


    def test_one_alone():
        assert outline(["a"]) == "a"
"""
IN_FIXTURE = """
    import subprocess

    import pytest

    from PKG.outline import outline


    @pytest.fixture(scope="module")
    def layout_version():
        return subprocess.check_output(["dotlayout", "--version"], text=True).strip()


    def test_the_outline_is_for_this_version(layout_version):
        assert layout_version.startswith("2")
        assert outline(["a", "b"]) == "a to b"
"""
OUTLINE = '''
    """NOUNS as an outline."""


    def outline(names):
        return " to ".join(names)
'''


def program_scenes() -> tuple[Scene, ...]:
    """Return all scenes with faults of programs, and similar faults of the project."""
    return (*_absent(), *_unlike(), *_misnamed(), *_git())


def _drawing(
    kind: str, says: str, shape: str, projects: tuple[str, ...], code: str, **more: object
) -> Scene:
    given: dict[str, object] = {
        "truth": machine(),
        "healthy": GRAPH,
        "test": TEST,
        "module": "drawing",
    } | more
    return Scene(kind=kind, says=says, shape=shape, projects=projects, product=code, **given)  # type: ignore[arg-type]


def _absent() -> tuple[Scene, ...]:
    says = "The product starts a program that is not on the path of this machine."
    return (
        _drawing("tool-not-on-path", says, "run", ("parcelpost", "ledgerline"), RUN),
        _drawing("tool-not-on-path", says, "popen", ("weathervane",), POPEN),
        _drawing("tool-not-on-path", says, "async", ("beehive",), ASYNC),
        _drawing("tool-not-on-path", says, "wrapped", ("signalbox", "tidepool"), WRAPPED),
        _drawing(
            "tool-of-tests-not-on-path",
            "The tests start a program that is not on the path of this machine.",
            "call",
            ("mealplan", "trackside"),
            OUTLINE,
            test=PROGRAM_IN_TEST,
            module="outline",
        ),
        _drawing(
            "tool-of-tests-not-on-path",
            "The tests start a program that is not on the path of this machine.",
            "fixture",
            ("inkwell", "cartulary"),
            OUTLINE,
            test=IN_FIXTURE,
            module="outline",
        ),
        _drawing(
            "tool-unknown-to-shell",
            "A shell says that it does not know a program, and ends with 127.",
            "",
            ("trackside", "parcelpost", "cartulary"),
            SHELL,
        ),
        _drawing(
            "tool-looked-for-in-vain",
            "The product looks for a program, finds none, and goes on with nothing in its hands.",
            "none",
            ("inkwell", "beehive"),
            WHICH,
            truth=machine(
                reading(
                    Category.TYPE_ERROR,
                    Owner.PRODUCT,
                    "the product goes on with None where a program should be",
                )
            ),
        ),
        _drawing(
            "tool-refused-by-product",
            "The product looks for a program, finds none, and says so with an exception of its own.",
            "",
            ("mealplan", "weathervane", "ledgerline"),
            PROGRAM_OWN_ERROR,
        ),
    )


def _unlike() -> tuple[Scene, ...]:
    old = Machine(programs={"dotlayout": 'echo "dotlayout 0.3: unknown option $1" >&2; exit 2'})
    broken = Machine(programs={"dotlayout": 'echo "dotlayout: cannot load liblayout.so.6" >&2; exit 127'})
    says = "The program is there, and in a version that does not know the option."
    return (
        _drawing(
            "tool-too-old",
            says,
            "",
            ("signalbox", "cartulary", "tidepool"),
            RUN,
            ill=old,
            truth=machine(
                reading(
                    Category.TEST_REGRESSION, Owner.PRODUCT, "the product may pass an option that never was"
                )
            ),
        ),
        _drawing(
            "tool-broken",
            "The program is there and cannot start, because a library of its own is missing.",
            "",
            ("parcelpost", "beehive"),
            RUN,
            ill=broken,
        ),
        _drawing(
            "tool-not-executable",
            "The program is there, and nobody has the right to run it.",
            "",
            ("weathervane", "inkwell"),
            RUN,
            ill=Machine(programs={"dotlayout": "cat"}, before="chmod 644 BIN/dotlayout"),
        ),
    )


def _misnamed() -> tuple[Scene, ...]:
    def twin(kind: str, says: str, code: str, projects: tuple[str, ...], before: str, after: str) -> Scene:
        edit = Edit(path="SRC/drawing.py", before=before, after=after)
        return _drawing(kind, says, "", projects, code, ill=GRAPH, edits=(edit,), truth=product(exact=True))

    return (
        twin(
            "tool-misspelt-by-product",
            "A changed line of the product misspells the name of a program that is there.",
            RUN,
            ("parcelpost", "trackside", "ledgerline"),
            '"dotlayout"',
            '"dotlyaout"',
        ),
        twin(
            "tool-misnamed-in-shell",
            "A changed line of the product has the shell start a program that does not exist.",
            SHELL,
            ("beehive", "tidepool"),
            "| dotlayout",
            "| dot_layout",
        ),
        twin(
            "tool-asked-for-wrongly",
            "A changed line of the product looks for a program under a wrong name and refuses to go on.",
            PROGRAM_OWN_ERROR,
            ("weathervane", "signalbox"),
            '_program("dotlayout")',
            '_program("dotlayout2")',
        ),
        _drawing(
            "tool-misspelt-by-test",
            "A changed test misspells the name of a program that is there.",
            "",
            ("inkwell", "cartulary"),
            OUTLINE,
            test=PROGRAM_IN_TEST,
            module="outline",
            ill=GRAPH,
            edits=(Edit(path="TESTS/test_outline.py", before='["dotlayout"]', after='["dot-layout"]'),),
            truth=of_tests(exact=True),
        ),
    )


def _git() -> tuple[Scene, ...]:
    commit = '''
        """Keeps NOUNS in a repository of their own."""

        import subprocess


        def keep(folder, name, text):
            (folder / name).write_text(text)
            for words in (["init", "-q"], ["add", name], ["commit", "-q", "-m", name]):
                subprocess.run(["git", *words], cwd=folder, check=True)
            return subprocess.check_output(["git", "log", "--format=%s"], cwd=folder, text=True).split()
    '''
    test = """
        from PKG.keeping import keep


        def test_what_is_kept_is_in_the_log(tmp_path):
            assert keep(tmp_path, "a.txt", "x") == ["a.txt"]
    """
    who = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    who |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in who.items()}
    nobody = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.useConfigOnly",
        "GIT_CONFIG_VALUE_0": "true",
    }
    described = '''
        """The revision that this was built from."""

        import subprocess


        def revision():
            words = ["git", "rev-parse", "--short=8", "HEAD"]
            return subprocess.check_output(words, text=True, stderr=subprocess.STDOUT).strip()
    '''
    revision_test = (
        "from PKG.revision import revision\n\n\ndef test_its_length():\n    assert len(revision()) == 8\n"
    )
    made = (
        "cd PROJECT && git init -q && git add -A && git -c user.name=a -c user.email=a@b.c commit -q -m x"
    )
    return (
        Scene(
            kind="git-without-identity",
            says="git is there, and nobody has told it who commits on this machine.",
            projects=("mealplan", "inkwell", "parcelpost"),
            truth=machine(),
            module="keeping",
            product=commit,
            test=test,
            healthy=Machine(variables=who | {"HOME": "VAR"}),
            ill=Machine(variables=nobody | {"HOME": "VAR"}),
        ),
        Scene(
            kind="git-command-misspelt",
            says="A changed line of the product gives git a command that git does not know.",
            projects=("cartulary", "signalbox"),
            truth=product(),
            module="keeping",
            product=commit,
            test=test,
            healthy=Machine(variables=who | {"HOME": "VAR"}),
            ill=Machine(variables=who | {"HOME": "VAR"}),
            edits=(Edit(path="SRC/keeping.py", before='["commit", "-q"', after='["comit", "-q"'),),
        ),
        Scene(
            kind="no-repository",
            says="The project was unpacked from an archive, and asks git for its revision.",
            projects=("weathervane", "trackside", "tidepool"),
            truth=machine(),
            module="revision",
            product=described,
            test=revision_test,
            git=False,
            healthy=Machine(before=made),
            ill=Machine(before="rm -rf PROJECT/.git"),
        ),
    )


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
SETTING_OWN_ERROR = ADDRESS.replace(
    '    return os.environ["ENVNAME_ADDRESS"].rstrip("/")',
    '    found = os.environ.get("ENVNAME_ADDRESS")\n        if not found:\n'
    '            raise ConfigurationError("ENVNAME_ADDRESS is not set")\n        return found.rstrip("/")',
)
DEFAULTED = ADDRESS.replace(
    'os.environ["ENVNAME_ADDRESS"]', 'os.environ.get("ENVNAME_ADDRESS", "http://localhost")'
)
SETTING_IN_TEST = """
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


def setting_scenes() -> tuple[Scene, ...]:
    """Return all scenes with faults of settings, and similar faults of the project."""
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
        _address("variable-not-set", says, ("weathervane", "signalbox"), SETTING_OWN_ERROR, "refused"),
        _address(
            "variable-of-tests-not-set",
            "A variable of the environment that the tests read is not set on this machine.",
            ("tidepool", "mealplan", "trackside"),
            DEFAULTED,
            test=SETTING_IN_TEST,
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
            test=SETTING_IN_TEST,
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

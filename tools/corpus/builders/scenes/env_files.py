"""Unusable disks, permissions, accounts and folders; and similar faults of the project itself."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner
from scenes.scene import Edit, Machine, Scene, machine, of_tests, product, reading

STORE = '''
    """Keeps NOUNS on disk."""

    import os
    from pathlib import Path

    FOLDER = Path(os.environ.get("ENVNAME_STORE", "/srv/PKG"))
    SUFFIX = ".txt"


    def place(name):
        return FOLDER / f"{name}{SUFFIX}"


    def keep(name, text):
        place(name).write_text(text)
        return place(name).stat().st_size
'''
STORE_TEST = """
    from PKG.store import keep


    def test_all_of_it_is_kept():
        assert keep("all", "NOUN " * 20_000) == len("NOUN ") * 20_000


    def test_names():
        from PKG.store import place

        assert place("a").name == "a.txt"
"""
DATABASE = '''
    """Keeps NOUNS in a database file."""

    import sqlite3

    PLACE = "/srv/PKG/NOUNS.db"


    def keep(rows):
        with sqlite3.connect(PLACE) as base:
            base.execute("create table if not exists NOUNS (name text)")
            base.executemany("insert into NOUNS values (?)", [(name,) for name in rows])
            base.execute("delete from NOUNS where name = ''")
        return base.execute("select count(*) from NOUNS").fetchone()[0]
'''
DATABASE_TEST = """
    import pytest

    from PKG.store import keep


    @pytest.fixture
    def rows():
        return ["NOUN " * 100] * 400


    def test_every_row_is_kept(rows):
        assert keep(rows) == 400
"""
LOG = '''
    """Writes down what happens to NOUNS."""

    import logging

    PLACE = "/srv/PKG/PKG.log"


    def logger():
        found = logging.getLogger("PKG")
        if not found.handlers:
            found.addHandler(logging.FileHandler(PLACE))
        return found


    def told(name):
        logger().warning("NOUN %s", name)
        return open(PLACE).read().count(name)
'''
LOG_TEST = """
    from PKG.store import told


    def test_it_is_told_once():
        assert told("q7") == 1
"""


def mounted(options: str, then: str = "") -> Machine:
    """Return a machine with a disk of its own at ``/srv``, in a namespace that ends with the run."""
    lines = f"mount -t tmpfs -o {options.split(',remount')[0]} tmpfs /srv\nmkdir -p /srv/PKG\n{then}\n"
    return Machine(apart="-m", before=lines)


ROOMY = mounted("size=8m")
FULL = mounted("size=64k")
READ_ONLY = mounted("size=1m", "mount -o remount,ro /srv")
AS_USER = Machine(
    apart="-m",
    user=True,
    before="mount -t tmpfs tmpfs /srv\nmkdir -p /srv/PKG\nchmod 777 /srv/PKG\nexport HOME=/srv",
)


def disk_scenes() -> tuple[Scene, ...]:
    """Return all scenes with faults of disks, and similar faults of the project."""
    return (*_full(), *_read_only(), *_own_doing())


def store_scene(
    kind: str, says: str, projects: tuple[str, ...], ill: Machine, shape: str = "", **more: object
) -> Scene:
    given: dict[str, object] = {
        "product": STORE,
        "test": STORE_TEST,
        "healthy": ROOMY,
        "truth": machine(),
    } | more
    return Scene(kind=kind, says=says, shape=shape, projects=projects, module="store", ill=ill, **given)  # type: ignore[arg-type]


def _full() -> tuple[Scene, ...]:
    says = "The disk that the project writes to is full."
    report = """
        from PKG.report import report


        def test_a_report_with_a_line_for_each(tmp_path):
            path = tmp_path / "report.txt"
            report([f"NOUN {number}" for number in range(9_000)], path)
            assert path.read_text().endswith("8999\\n")
    """
    code = '''
        """Reports as files."""


        def report(names, path):
            with open(path, "w") as file:
                for name in names:
                    file.write(name + "\\n")
    '''
    return (
        store_scene("disk-full", says, ("parcelpost", "tidepool"), FULL, "file"),
        store_scene(
            "disk-full",
            says,
            ("mealplan", "trackside"),
            FULL,
            "database",
            product=DATABASE,
            test=DATABASE_TEST,
        ),
        Scene(
            kind="disk-full",
            says=says,
            shape="temporary",
            projects=("inkwell", "ledgerline"),
            truth=machine(),
            module="report",
            product=code,
            test=report,
            healthy=mounted("size=8m", "export TMPDIR=/srv/PKG"),
            ill=mounted("size=64k", "export TMPDIR=/srv/PKG"),
        ),
        Scene(
            kind="file-size-limited",
            says="The machine allows no file of this size.",
            projects=("signalbox", "beehive", "cartulary"),
            truth=machine(),
            module="report",
            product=code,
            test=report.replace("9_000", "90_000").replace("8999", "89999"),
            ill=Machine(before="ulimit -f 1400"),
        ),
    )


def _read_only() -> tuple[Scene, ...]:
    says = "The folder that the project writes to is on a disk that can only be read."
    return (
        store_scene("disk-read-only", says, ("weathervane", "ledgerline"), READ_ONLY, "file"),
        store_scene("disk-read-only", says, ("beehive",), READ_ONLY, "log", product=LOG, test=LOG_TEST),
        store_scene(
            "disk-read-only",
            says,
            ("cartulary", "signalbox"),
            READ_ONLY,
            "database",
            product=DATABASE,
            test=DATABASE_TEST,
        ),
        store_scene(
            "folder-of-machine-absent",
            "The folder that the project writes to has never been made on this machine.",
            ("parcelpost", "mealplan", "inkwell"),
            Machine(apart="-m", before="mount -t tmpfs tmpfs /srv"),
            truth=machine(
                reading(
                    Category.TEST_REGRESSION,
                    Owner.PRODUCT,
                    "the product could make the folder that it needs",
                )
            ),
        ),
        Scene(
            kind="shared-memory-forbidden",
            says="Locks between processes cannot be made: the machine's shared memory can only be read.",
            projects=("beehive", "weathervane", "signalbox"),
            truth=machine(),
            module="counting",
            product='''
                """Counts NOUNS from several processes."""

                import multiprocessing


                def counter():
                    return multiprocessing.get_context("fork").Value("i", 0)


                def counted(names):
                    total = counter()
                    for _ in names:
                        with total.get_lock():
                            total.value += 1
                    return total.value
            ''',
            test="from PKG.counting import counted\n\n\ndef test_two():\n"
            "    assert counted(['a', 'b']) == 2\n",
            healthy=Machine(apart="-m", before="mount -t tmpfs tmpfs /dev/shm"),
            ill=Machine(apart="-m", before="mount -t tmpfs -o ro tmpfs /dev/shm"),
        ),
    )


def _own_doing() -> tuple[Scene, ...]:
    def edited(before: str, after: str) -> tuple[Edit, ...]:
        return (Edit(path="SRC/store.py", before=before, after=after),)

    return (
        store_scene(
            "path-invented-by-product",
            "A changed line of the product writes to a place that it invents.",
            ("parcelpost", "weathervane", "cartulary"),
            ROOMY,
            edits=edited('return FOLDER / f"{name}{SUFFIX}"', 'return FOLDER / "new" / f"{name}{SUFFIX}"'),
            truth=product(),
        ),
        store_scene(
            "system-folder-chosen-by-product",
            "A changed line of the product writes to a folder of the system that nobody may write to.",
            ("trackside", "beehive"),
            AS_USER,
            healthy=AS_USER,
            edits=edited('"ENVNAME_STORE", "/srv/PKG"', '"ENVNAME_STORES", "/usr/lib"'),
            truth=product(),
        ),
        store_scene(
            "rights-taken-by-product",
            "A changed line of the product takes away its own right to the folder that it writes to.",
            ("inkwell", "signalbox", "mealplan"),
            AS_USER,
            healthy=AS_USER,
            product=STORE.replace("/srv/PKG", "/srv/PKG/own").replace(
                "def keep(name, text):\n",
                "def keep(name, text):\n        FOLDER.mkdir(mode=0o700, exist_ok=True)\n",
            ),
            edits=edited("mode=0o700", "mode=0o500"),
            truth=product(),
        ),
        store_scene(
            "quota-of-product",
            "The product raises the error of a full disk by a quota of its own, which a changed line "
            "made too small.",
            ("tidepool", "ledgerline", "trackside"),
            ROOMY,
            product=STORE.replace("import os\n", "import errno\n    import os\n")
            .replace("SUFFIX = ", "QUOTA = 500_000\n    SUFFIX = ")
            .replace(
                "def keep(name, text):\n",
                "def keep(name, text):\n        if len(text) > QUOTA:\n"
                "            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place(name)))\n",
            ),
            edits=edited("QUOTA = 500_000", "QUOTA = 500"),
            truth=product(),
        ),
        store_scene(
            "wrong-file-deleted",
            "A changed line of the product deletes the file that it is going to read.",
            ("beehive", "inkwell", "cartulary"),
            ROOMY,
            product='''
                """Takes a file over from a temporary one."""


                def take_over(folder, name):
                    kept, fresh = folder / name, folder / f"{name}.new"
                    text = fresh.read_text()
                    kept.write_text(text)
                    fresh.unlink()
                    return kept.read_text()
            ''',
            test="""
                from PKG.store import take_over


                def test_the_new_text_is_taken_over(tmp_path):
                    (tmp_path / "a.new").write_text("NOUN")
                    assert take_over(tmp_path, "a") == "NOUN"
            """,
            healthy=Machine(),
            edits=edited("fresh.unlink()", "kept.unlink()"),
            truth=product(),
        ),
        store_scene(
            "wrong-path-in-test",
            "A changed test reads a file at a place where nobody wrote it.",
            ("mealplan", "tidepool"),
            ROOMY,
            test="""
                from PKG.store import keep, place


                def test_what_was_kept_can_be_read():
                    keep("one", "x")
                    assert (place("one").parent / "one.txt").read_text() == "x"
            """,
            edits=(Edit(path="TESTS/test_store.py", before='/ "one.txt"', after='/ "one.text"'),),
            truth=of_tests(exact=True),
        ),
    )


FORBIDDEN = Machine(
    apart="-m",
    user=True,
    before="mount -t tmpfs tmpfs /srv\nmkdir -p /srv/PKG\nchmod 755 /srv\nexport HOME=/srv",
)


def rights_scenes() -> tuple[Scene, ...]:
    """Return all scenes with faults of permissions, and similar faults of the project."""
    return (
        *_rights(),
        *_locks(),
    )


def _rights() -> tuple[Scene, ...]:
    says = "The user who runs the tests may not write to a folder of the machine."
    home = '''
        """Settings in the home folder."""

        import json
        from pathlib import Path


        def remember(**settings):
            folder = Path.home() / ".config" / "PKG"
            folder.mkdir(parents=True, exist_ok=True)
            place = folder / "settings.json"
            place.write_text(json.dumps(settings))
            return json.loads(place.read_text())
    '''
    remembered = """
        from PKG.settings import remember


        def test_what_is_remembered():
            assert remember(NOUNS=3) == {"NOUNS": 3}
    """
    written = '''
        """NOUNS as files that others may read."""


        def publish(folder, name, text):
            place = folder / name
            place.write_text(text)
            return oct(place.stat().st_mode & 0o777), place
    '''
    return (
        store_scene(
            "permission-denied", says, ("trackside", "tidepool"), FORBIDDEN, "file", healthy=AS_USER
        ),
        store_scene(
            "permission-denied",
            says,
            ("parcelpost", "inkwell"),
            FORBIDDEN,
            "log",
            healthy=AS_USER,
            product=LOG,
            test=LOG_TEST,
        ),
        store_scene(
            "permission-denied",
            says,
            ("mealplan",),
            FORBIDDEN,
            "database",
            healthy=AS_USER,
            product=DATABASE,
            test=DATABASE_TEST,
        ),
        Scene(
            kind="home-not-writable",
            says="The user who runs the tests has no home folder.",
            projects=("ledgerline", "cartulary", "weathervane"),
            truth=machine(),
            module="settings",
            product=home,
            test=remembered,
            healthy=AS_USER,
            ill=Machine(
                apart="-m",
                user=True,
                before="mount -t tmpfs -o mode=755 tmpfs /srv\nexport HOME=/srv/nobody",
            ),
        ),
        Scene(
            kind="umask-of-machine",
            says="The machine's mask for new files is stricter than the tests expect.",
            projects=("signalbox", "beehive", "parcelpost"),
            truth=machine(
                reading(
                    Category.TEST_REGRESSION, Owner.TEST, "the test relies on a mask that nobody promised"
                )
            ),
            module="publishing",
            product=written,
            test="""
                from PKG.publishing import publish


                def test_everybody_may_read_it(tmp_path):
                    mode, place = publish(tmp_path, "a.txt", "x")
                    assert place.read_text() == "x"
                    assert mode == "0o644"
            """,
            healthy=Machine(before="umask 022"),
            ill=Machine(before="umask 077"),
        ),
    )


def _locks() -> tuple[Scene, ...]:
    code = '''
        """One process at a time works on the NOUNS."""

        import os
        from contextlib import contextmanager
        from pathlib import Path

        LOCK = Path(os.environ.get("ENVNAME_LOCK", "/srv/PKG/PKG.lock"))


        class Locked(Exception):
            """Somebody else is at work."""


        @contextmanager
        def alone():
            try:
                held = os.open(LOCK, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                raise Locked(f"{LOCK} is held by process {LOCK.read_text().strip()}") from None
            os.write(held, str(os.getpid()).encode())
            os.close(held)
            try:
                yield
            finally:
                LOCK.unlink()


        def counted(names):
            with alone():
                return len(names)
    '''
    test = """
        from PKG.locking import counted


        def test_two():
            assert counted(["a", "b"]) == 2


        def test_it_can_be_asked_again():
            assert counted([]) == counted([])
    """
    return (
        Scene(
            kind="stale-lock",
            says="A service that died has left its lock on this machine.",
            projects=("weathervane", "parcelpost", "signalbox"),
            truth=machine(),
            module="locking",
            product=code,
            test=test,
            healthy=ROOMY,
            ill=mounted("size=1m", "echo 48213 > /srv/PKG/PKG.lock"),
        ),
        Scene(
            kind="lock-kept-by-product",
            says="A changed line of the product no longer gives its lock back.",
            projects=("ledgerline", "mealplan", "trackside"),
            truth=product(),
            module="locking",
            product=code,
            test=test,
            healthy=ROOMY,
            ill=ROOMY,
            edits=(Edit(path="SRC/locking.py", before="LOCK.unlink()", after="LOCK.touch()"),),
        ),
    )


def account_scenes() -> tuple[Scene, ...]:
    """Return all scenes with faults of accounts, and similar faults of the project."""
    return (
        *_accounts(),
        *_data(),
    )


def _accounts() -> tuple[Scene, ...]:
    screen = '''
        """Shows NOUNS in a window."""

        from screenkit import Window


        def window():
            return Window("NOUNS")
    '''
    cloud = '''
        """NOUNS of a month, kept in an object store."""

        from cloudkit import Bucket


        def months():
            return [name.split("/")[1] for name in Bucket("NOUNS").list()]
    '''
    browser = '''
        """Looks at the pages of NOUNS."""

        from webpilot import Browser


        def title(path):
            return Browser().title(path)
    '''
    here = Machine(installed=("cloudkit",), variables={"CLOUDKIT_ACCESS_KEY": "given"})
    return (
        Scene(
            kind="display-absent",
            says="The machine has no screen.",
            projects=("trackside", "mealplan", "weathervane"),
            truth=machine(),
            module="window",
            product=screen,
            test="from PKG.window import window\n\n\ndef test_its_size():\n"
            "    assert window().size == (640, 480)\n",
            healthy=Machine(installed=("screenkit",), variables={"DISPLAY": ":0"}),
            ill=Machine(installed=("screenkit",)),
        ),
        Scene(
            kind="credentials-absent",
            says="The machine has no key for a service of the cloud.",
            projects=("parcelpost", "tidepool", "ledgerline"),
            truth=machine(),
            module="months",
            product=cloud,
            test="from PKG.months import months\n\n\ndef test_two():\n    assert len(months()) == 2\n",
            healthy=here,
            ill=Machine(installed=("cloudkit",)),
        ),
        Scene(
            kind="browser-driver-absent",
            says="The driver of the browser is not installed.",
            projects=("cartulary", "inkwell", "signalbox"),
            truth=machine(),
            module="pages",
            product=browser,
            test="from PKG.pages import title\n\n\ndef test_the_first_page():\n"
            "    assert title('/home') == 'Home'\n",
            healthy=Machine(installed=("webpilot",), programs={"firefox-driver": "cat"}),
            ill=Machine(installed=("webpilot",)),
        ),
        Scene(
            kind="browser-misnamed-by-product",
            says="A changed line of the product asks for a browser that nobody makes.",
            projects=("beehive", "parcelpost"),
            truth=product(),
            module="pages",
            product=browser.replace("Browser()", 'Browser("firefox")'),
            test="from PKG.pages import title\n\n\ndef test_the_first_page():\n"
            "    assert title('/home') == 'Home'\n",
            healthy=Machine(installed=("webpilot",), programs={"firefox-driver": "cat"}),
            ill=Machine(installed=("webpilot",), programs={"firefox-driver": "cat"}),
            edits=(Edit(path="SRC/pages.py", before='"firefox"', after='"fierfox"'),),
        ),
    )


def _data() -> tuple[Scene, ...]:
    code = '''
        """Sums over NOUNS."""

        import json


        def total(text):
            return sum(json.loads(text).values())
    '''
    test = """
        from pathlib import Path

        import pytest

        from PKG.sums import total

        SAMPLES = Path(__file__).parent / "samples"


        @pytest.fixture
        def sample():
            return (SAMPLES / "large.json").read_text()


        def test_the_large_sample(sample):
            assert total(sample) == 6


        def test_nothing():
            assert total("{}") == 0
    """
    fetched = Machine(
        before='mkdir -p PROJECT/TESTS/samples; echo \'{"a": 2, "b": 4}\' > '
        "PROJECT/TESTS/samples/large.json"
    )
    pointer = "version https://git-lfs.github.com/spec/v1\\noid sha256:9c0d0c4f0f1e\\nsize 26\\n"
    unfetched = (
        "mkdir -p PROJECT/TESTS/samples; printf '" + pointer + "' > PROJECT/TESTS/samples/large.json"
    )
    mine = reading(
        Category.TEST_REGRESSION, Owner.TEST, "the tests rely on data that is not in the project"
    )
    ignored = {".gitignore": "samples/\n"}
    return (
        Scene(
            kind="data-not-fetched",
            says="Data that the tests read is fetched apart, and was not fetched on this machine.",
            shape="missing",
            projects=("weathervane", "signalbox"),
            truth=machine(mine),
            module="sums",
            product=code,
            test=test,
            files=ignored,
            healthy=fetched,
            ill=Machine(before="rm -rf PROJECT/TESTS/samples"),
        ),
        Scene(
            kind="data-not-fetched",
            says="Data that the tests read is fetched apart, and was not fetched on this machine.",
            shape="pointer",
            projects=("mealplan", "inkwell"),
            truth=machine(mine),
            module="sums",
            product=code,
            test=test,
            files=ignored,
            healthy=fetched,
            ill=Machine(before=unfetched),
        ),
        Scene(
            kind="data-path-misspelt-by-test",
            says="A changed test misspells the name of a file of its data.",
            projects=("trackside", "beehive", "ledgerline"),
            truth=of_tests(exact=True),
            module="sums",
            product=code,
            test=test,
            files={"TESTS/samples/large.json": '{"a": 2, "b": 4}\n'},
            edits=(Edit(path="TESTS/test_sums.py", before='"large.json"', after='"larger.json"'),),
        ),
    )

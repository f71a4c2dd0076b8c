"""Rights that the user of the machine does not have, masks for files, and locks that were left behind."""

from __future__ import annotations

from planner.model.taxonomy import Category, Owner
from scenes.env_disk import AS_USER, DATABASE, DATABASE_TEST, LOG, LOG_TEST, ROOMY, mounted, store_scene
from scenes.scene import Edit, Machine, Scene, machine, product, reading

FORBIDDEN = Machine(
    apart="-m",
    user=True,
    before="mount -t tmpfs tmpfs /srv\nmkdir -p /srv/PKG\nchmod 755 /srv\nexport HOME=/srv",
)


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
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

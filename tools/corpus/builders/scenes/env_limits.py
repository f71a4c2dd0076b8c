"""Limits of the machine: open files, processes, memory; and a product that uses up everything by itself."""

from __future__ import annotations

from scenes.scene import Edit, Machine, Scene, machine, product

MANY_FILES = '''
    """Merges the files of many NOUNS."""

    from contextlib import ExitStack


    def merged(paths):
        with ExitStack() as stack:
            files = [stack.enter_context(open(path)) for path in paths]
            return sum(int(file.readline()) for file in files)
'''
MANY_FILES_TEST = """
    import pytest

    from PKG.merging import merged


    @pytest.fixture
    def paths(tmp_path):
        for number in range(150):
            (tmp_path / f"{number}.txt").write_text(f"{number}\\n")
        return sorted(tmp_path.iterdir())


    def test_every_file_counts(paths):
        assert merged(paths) == sum(range(150))
"""
MANY_PORTS = '''
    """Waits for news of NOUNS at many ends."""

    import socket


    def ends(count):
        pairs = []
        try:
            for _ in range(count):
                pairs.append(socket.socketpair())
            return len(pairs)
        finally:
            for pair in pairs:
                for end in pair:
                    end.close()
'''
LEAK = '''
    """Looks for NOUNS in a file."""


    class Reader:
        opened = []

        def __init__(self, path):
            self.file = open(path)
            self.opened.append(self.file)

        def names(self):
            return self.file.read().split()

        def close(self):
            self.file.close()


    def found(path, names):
        total = 0
        for name in names:
            reader = Reader(path)
            total += name in reader.names()
            reader.close()
        return total
'''
WORKERS = '''
    """Works on NOUNS with several hands."""

    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    HANDS = 60


    def lengths(names):
        barrier = Barrier(HANDS)

        def measured(name):
            barrier.wait(20)
            return len(name)

        with ThreadPoolExecutor(HANDS) as pool:
            return sum(pool.map(measured, names))
'''
PROCESSES = '''
    """Works on NOUNS in processes of their own."""

    import subprocess
    import sys


    def greeted(count):
        running = [
            subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
            for _ in range(count)
        ]
        for process in running:
            process.communicate(b"\\n")
        return sum(process.returncode == 0 for process in running)
'''
BUFFER = '''
    """A table of all pairs of NOUNS."""

    CELL = 24


    def table(count):
        return bytearray(count * count * CELL)
'''
BUFFER_TEST = """
    from PKG.pairs import table


    def test_its_size():
        assert len(table(4_000)) == 24 * 4_000 * 4_000
"""
POOL = '''
    """Hands out workers for NOUNS."""

    LIMIT = 8


    class Pool:
        def __init__(self):
            self.taken = 0

        def take(self):
            if self.taken >= LIMIT:
                raise RuntimeError("can't start new thread")
            self.taken += 1
            return self.taken


    def taken(count):
        pool = Pool()
        return [pool.take() for _ in range(count)]
'''


def scenes() -> tuple[Scene, ...]:
    """Every scene of this kind of trouble, and those that only look like it."""
    return (*_files(), *_processes(), *_memory())


def _files() -> tuple[Scene, ...]:
    few = Machine(before="ulimit -n 80")
    says = "The machine allows fewer open files than the work takes."
    return (
        Scene(
            kind="too-many-open-files",
            says=says,
            shape="files",
            projects=("parcelpost", "tidepool"),
            truth=machine(),
            module="merging",
            product=MANY_FILES,
            test=MANY_FILES_TEST,
            ill=few,
        ),
        Scene(
            kind="too-many-open-files",
            says=says,
            shape="sockets",
            projects=("signalbox", "inkwell"),
            truth=machine(),
            module="ends",
            product=MANY_PORTS,
            test="from PKG.ends import ends\n\n\ndef test_hundred_ends():\n    assert ends(100) == 100\n",
            ill=few,
        ),
        Scene(
            kind="files-leaked-by-product",
            says="A changed line of the product keeps every file open.",
            projects=("weathervane", "beehive", "cartulary"),
            truth=product(),
            module="search",
            product=LEAK,
            test="""
                from PKG.search import found


                def test_every_name_is_looked_for(tmp_path):
                    path = tmp_path / "names.txt"
                    path.write_text("a b c")
                    assert found(path, ["a", "x"] * 400) == 400
            """,
            healthy=Machine(before="ulimit -n 512"),
            ill=Machine(before="ulimit -n 512"),
            edits=(
                Edit(
                    path="SRC/search.py",
                    before="        reader.close()\n",
                    after="        reader.file.seek(0)\n",
                ),
            ),
        ),
    )


def _processes() -> tuple[Scene, ...]:
    enough = Machine(user=True, variables={"HOME": "VAR"})
    few = Machine(user=True, variables={"HOME": "VAR"}, before="prlimit --nproc=30 --pid $$")
    return (
        Scene(
            kind="no-more-threads",
            says="The machine lets the user start fewer threads than the work takes.",
            projects=("trackside", "ledgerline", "mealplan"),
            truth=machine(),
            module="hands",
            product=WORKERS,
            test="from PKG.hands import lengths\n\n\ndef test_sixty():\n"
            "    assert lengths(['ab'] * 60) == 120\n",
            healthy=enough,
            ill=few,
        ),
        Scene(
            kind="no-more-processes",
            says="The machine lets the user start fewer processes than the work takes.",
            projects=("parcelpost", "signalbox", "cartulary"),
            truth=machine(),
            module="greeting",
            product=PROCESSES,
            test="from PKG.greeting import greeted\n\n\ndef test_everybody():\n"
            "    assert greeted(32) == 32\n",
            healthy=enough,
            ill=few,
        ),
        Scene(
            kind="pool-limit-of-product",
            says="The product refuses in the words of the system, by a limit that a changed line "
            "made too small.",
            projects=("beehive", "weathervane", "inkwell"),
            truth=product(),
            module="pool",
            product=POOL,
            test="from PKG.pool import taken\n\n\ndef test_six_are_taken():\n"
            "    assert taken(6)[-1] == 6\n",
            edits=(Edit(path="SRC/pool.py", before="LIMIT = 8", after="LIMIT = 4"),),
        ),
    )


def _memory() -> tuple[Scene, ...]:
    return (
        Scene(
            kind="memory-limited",
            says="The machine allows less memory than the work takes.",
            shape="buffer",
            projects=("mealplan", "weathervane", "tidepool"),
            truth=machine(),
            module="pairs",
            product=BUFFER,
            test=BUFFER_TEST,
            ill=Machine(before="ulimit -v 300000"),
        ),
        Scene(
            kind="memory-asked-for-by-product",
            says="A changed constant of the product asks for more memory than any machine has.",
            projects=("ledgerline", "inkwell", "signalbox"),
            truth=product(),
            module="pairs",
            product=BUFFER,
            test=BUFFER_TEST,
            edits=(Edit(path="SRC/pairs.py", before="CELL = 24", after="CELL = 24_000_000_000"),),
        ),
    )

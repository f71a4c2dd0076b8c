"""The tool registry: one row for each tool that a plan may run, what it is for and how its output is read.

A plan cannot widen this table. An option under which a tool succeeds whatever it finds, or under which
it rewrites the work that it should judge, stands in the row as refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Purpose(StrEnum):
    """What a tool is run for."""

    TEST = "test"
    LINT = "lint"
    TYPE_CHECK = "type_check"
    BUILD = "build"
    VALIDATE = "validate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One row of the registry."""

    name: str
    purpose: Purpose
    output: str
    """Whose manner of complaining it has; a key of the readers' table."""
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """Names under which ``python -m`` runs it."""
    subcommands: tuple[str, ...] = ()
    """The row is for these subcommands only; empty: for every use of the program."""
    valued: tuple[str, ...] = ()
    """Options before the subcommand that take the next word."""
    refused: tuple[str, ...] = ()
    """Options with which success proves nothing, or which rewrite the work."""
    needs: tuple[str, ...] = ()
    """One of these options must be there, else success proves nothing or the work is rewritten."""
    clusters: str = ""
    """Short options may be written together; of these letters the rest of the word is the value."""
    target_tells: bool = False
    """It runs targets of the project's own naming, whose names tell the purpose: ``make lint``."""


def _tools(
    purpose: Purpose,
    name: str,
    *,
    programs: str | None = None,
    modules: str = "",
    output: str | None = None,
    subcommands: str = "",
    valued: str = "",
    refused: str = "",
    needs: str = "",
    clusters: str = "",
    target_tells: bool = False,
) -> Tool:
    return Tool(
        name=name,
        purpose=purpose,
        output=output or name,
        programs=tuple((name if programs is None else programs).split()),
        modules=tuple(modules.split()),
        subcommands=tuple(subcommands.split()),
        valued=tuple(valued.split()),
        refused=tuple(refused.split()),
        needs=tuple(needs.split()),
        clusters=clusters,
        target_tells=target_tells,
    )


_P = Purpose
_NPM_OPTIONS = "--prefix -C --dir --cwd -w --workspace --filter -F"
_MAKE_OPTIONS = "-C --directory -f --file --makefile -I -o -W"

PYTEST = _tools(_P.TEST, "pytest", programs="pytest py.test", modules="pytest py.test")
PYTHON_SCRIPT = _tools(_P.TEST, "python", programs="")
"""``python FILE.py`` and ``python -m`` of one of the project's own modules."""

TOOLS: tuple[Tool, ...] = (
    PYTEST,
    PYTHON_SCRIPT,
    _tools(_P.TEST, "unittest", programs="", modules="unittest"),
    _tools(_P.TEST, "doctest", programs="", modules="doctest"),
    _tools(
        _P.TEST,
        "coverage",
        modules="coverage",
        subcommands="report",
        programs="coverage coverage3",
        refused="-i",
    ),
    _tools(_P.TEST, "tox", modules="tox", target_tells=True, refused="-l --listenvs -a -n --notest"),
    _tools(_P.TEST, "nox", modules="nox", target_tells=True, refused="-l --list --list-sessions"),
    _tools(_P.VALIDATE, "py_compile", programs="", modules="py_compile"),
    _tools(_P.VALIDATE, "compileall", programs="", modules="compileall"),
    _tools(_P.VALIDATE, "tabnanny", programs="", modules="tabnanny", output="generic"),
    _tools(_P.VALIDATE, "json.tool", programs="", modules="json.tool", output="generic"),
    _tools(
        _P.LINT,
        "ruff",
        modules="ruff",
        subcommands="check",
        valued="--config --color",
        refused="--exit-zero -e --fix --fix-only --unsafe-fixes --add-noqa --statistics-only --show-files "
        "--show-settings --watch -w",
    ),
    _tools(
        _P.LINT,
        "ruff",
        modules="ruff",
        subcommands="format",
        valued="--config --color",
        output="ruff_format",
        needs="--check --diff",
    ),
    _tools(_P.LINT, "black", modules="black", output="black", needs="--check --diff"),
    _tools(
        _P.LINT,
        "isort",
        modules="isort",
        output="isort",
        needs="--check --check-only -c --diff --df",
        refused="--show-settings --show-files",
    ),
    _tools(_P.LINT, "flake8", modules="flake8", refused="--exit-zero --bug-report"),
    _tools(_P.LINT, "pylint", modules="pylint", refused="--exit-zero --list-msgs --generate-rcfile"),
    _tools(_P.LINT, "bandit", modules="bandit", output="bandit", refused="--exit-zero"),
    _tools(_P.LINT, "lint-imports", modules="importlinter.cli", output="import_linter"),
    _tools(
        _P.LINT,
        "pre-commit",
        modules="pre_commit",
        subcommands="run",
        output="pre_commit",
        target_tells=True,
    ),
    _tools(_P.LINT, "pydocstyle", modules="pydocstyle", output="generic"),
    _tools(_P.LINT, "pycodestyle", modules="pycodestyle", output="flake8"),
    _tools(_P.LINT, "vulture", modules="vulture", output="generic"),
    _tools(_P.TYPE_CHECK, "mypy", modules="mypy mypy.__main__"),
    _tools(
        _P.TYPE_CHECK,
        "pyright",
        programs="pyright basedpyright",
        modules="pyright basedpyright",
        refused="--watch -w --createstub --writebaseline",
    ),
    _tools(
        _P.BUILD,
        "make",
        programs="make gmake",
        valued=_MAKE_OPTIONS,
        clusters="CfIojlOW",
        target_tells=True,
        refused="-n --just-print --dry-run --recon -i --ignore-errors -t --touch -q --question --eval -E "
        "-p --print-data-base",
    ),
    _tools(_P.BUILD, "cmake", output="compiler", refused="-E -P --install --open --find-package"),
    _tools(_P.TEST, "ctest", output="ctest", refused="-N --show-only --print-labels"),
    _tools(_P.BUILD, "build", programs="pyproject-build", modules="build", output="generic"),
    _tools(_P.TEST, "npm", subcommands="test t tst", valued=_NPM_OPTIONS, refused="--if-present"),
    _tools(
        _P.TEST,
        "npm",
        subcommands="run run-script",
        valued=_NPM_OPTIONS,
        refused="--if-present",
        target_tells=True,
    ),
    _tools(
        _P.TEST,
        "pnpm",
        subcommands="test t run run-script",
        valued=_NPM_OPTIONS,
        output="npm",
        refused="--if-present",
        target_tells=True,
    ),
    _tools(_P.TEST, "yarn", subcommands="test run", valued=_NPM_OPTIONS, output="npm", target_tells=True),
    _tools(
        _P.TEST, "node", programs="node nodejs", refused="-e --eval -p --print -i --interactive -c --check"
    ),
    _tools(_P.TYPE_CHECK, "tsc", refused="--init --showConfig --listFilesOnly -w --watch --all"),
    _tools(
        _P.LINT,
        "eslint",
        refused="--fix --init --print-config --env-info --fix-dry-run",
    ),
    _tools(
        _P.LINT, "prettier", output="prettier", needs="--check -c --list-different -l", refused="--write -w"
    ),
    _tools(_P.TEST, "jest", refused="--passWithNoTests --listTests --showConfig --watch --watchAll --init"),
    _tools(_P.TEST, "vitest", output="jest", refused="--passWithNoTests --watch -w list init"),
    _tools(_P.TEST, "mocha", output="jest", refused="--watch -w --dry-run"),
    _tools(_P.TEST, "cargo", subcommands="test t nextest", output="cargo", refused="--no-run"),
    _tools(_P.BUILD, "cargo", subcommands="build b", output="cargo"),
    _tools(_P.TYPE_CHECK, "cargo", subcommands="check c", output="cargo"),
    _tools(_P.LINT, "cargo", subcommands="clippy", output="cargo", refused="--fix"),
    _tools(_P.LINT, "cargo", subcommands="fmt", output="cargo_fmt", needs="--check"),
    _tools(_P.TEST, "go", subcommands="test", valued="-C", refused="-exec -toolexec -vettool -n -list -c"),
    _tools(_P.LINT, "go", subcommands="vet", valued="-C", refused="-toolexec -vettool -n"),
    _tools(_P.BUILD, "go", subcommands="build", valued="-C", refused="-toolexec -n"),
    _tools(_P.LINT, "gofmt", output="gofmt", needs="-l -d", refused="-w"),
    _tools(
        _P.TEST,
        "mvn",
        programs="mvn mvnw",
        output="maven",
        target_tells=True,
        refused="-fn --fail-never -DskipTests -Dmaven.test.skip -Dmaven.test.skip=true -DskipTests=true "
        "-Dmaven.test.failure.ignore -Dmaven.test.failure.ignore=true deploy install exec:exec exec:java",
    ),
    _tools(
        _P.TEST,
        "gradle",
        programs="gradle gradlew",
        output="gradle",
        target_tells=True,
        refused="-m --dry-run publish",
    ),
    _tools(_P.TEST, "dotnet", subcommands="test", output="dotnet", refused="-t --list-tests"),
    _tools(_P.BUILD, "dotnet", subcommands="build", output="dotnet"),
    _tools(_P.LINT, "dotnet", subcommands="format", output="dotnet", needs="--verify-no-changes"),
    _tools(
        _P.VALIDATE,
        "git",
        subcommands="diff",
        valued="-C",
        output="git_diff",
        needs="--check --exit-code --quiet",
        refused="--ext-diff --output --no-index --config-env --exec-path",
    ),
    _tools(_P.VALIDATE, "git", subcommands="status", valued="-C", output="git_status"),
    _tools(
        _P.VALIDATE,
        "git",
        subcommands="ls-files grep merge-base rev-parse cat-file check-ignore fsck",
        valued="-C",
        output="generic",
        refused="-O --open-files-in-pager --config-env --exec-path --textconv --filters --lost-found",
    ),
)
"""Every tool that a plan may run."""

HELP_OPTIONS = frozenset({"--version", "--help", "-h"})
"""With these a tool only speaks of itself."""
NO_HELP_SHORT = frozenset({"git", "unittest"})
"""Tools of whose ``-h`` that is not true, or is not known."""

TARGET_PURPOSES: tuple[tuple[str, Purpose], ...] = (
    (r"lint|style|flake|ruff|eslint|clippy|fmt|format|prettier", Purpose.LINT),
    (r"typ(?:e|ing)|mypy|pyright|tsc", Purpose.TYPE_CHECK),
    (r"test|spec|pytest|jest", Purpose.TEST),
    (r"build|compile|dist|wheel|package|assemble", Purpose.BUILD),
    (r"check|verify|validate", Purpose.VALIDATE),
)
"""What the name of a target says about its purpose; the first that is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """A program that only starts another one of the table."""

    program: str
    subcommand: str = ""
    valued: frozenset[str] = frozenset()
    """Its options that take the next word."""
    modules: bool = False
    """It takes ``-m MODULE`` and ``FILE.py`` as an interpreter does."""
    environments: bool = False
    """The program may be written ``environment:program``."""
    python: bool = True
    """What it starts is a Python tool, else one of Node."""


def _launcher(
    program: str, subcommand: str = "", valued: str = "", *, modules: bool = False, python: bool = True
) -> Launcher:
    return Launcher(
        program=program,
        subcommand=subcommand,
        valued=frozenset(valued.split()),
        modules=modules,
        environments=program == "hatch",
        python=python,
    )


LAUNCHERS: tuple[Launcher, ...] = (
    _launcher(
        "uv",
        "run",
        "--with --with-editable --with-requirements --extra --no-extra --group --no-group --only-group "
        "--package --no-package --directory --project --env-file --python -p --index --index-url "
        "--extra-index-url --default-index --find-links -f --config-file --config-setting -C --cache-dir "
        "--color --refresh-package --reinstall-package --upgrade-package -P --resolution --prerelease "
        "--exclude-newer --link-mode --index-strategy --keyring-provider --python-platform "
        "--allow-insecure-host",
        modules=True,
    ),
    _launcher("poetry", "run", "-C --directory -P --project"),
    _launcher("pdm", "run", "-p --project -c --config --venv"),
    _launcher("hatch", "run", "-e --env --env-var -p --project --data-dir --cache-dir --config"),
    _launcher("pipenv", "run", "--python --pypi-mirror"),
    _launcher("rye", "run"),
    _launcher(
        "coverage",
        "run",
        "--source --source-pkgs --omit --include --rcfile --data-file --concurrency --context --debug",
        modules=True,
    ),
    _launcher("npx", "", "-p --package -w --workspace", python=False),
    _launcher("npm", "exec", "-p --package -w --workspace --prefix", python=False),
    _launcher("pnpm", "exec", "-C --dir --filter -F", python=False),
    _launcher("yarn", "exec", "--cwd", python=False),
)

RECIPES: dict[str, tuple[str, ...]] = {
    "python-quick": (
        'python -m compileall -q -x "/[.]|/(venv|env|build|dist|node_modules)/" .',
        "ruff check .",
    ),
    "python-full": (
        'python -m compileall -q -x "/[.]|/(venv|env|build|dist|node_modules)/" .',
        "ruff check .",
        "mypy .",
        "pytest",
    ),
    "node-full": ("npx --no-install eslint .", "npx --no-install tsc --noEmit", "npm test"),
    "go-full": ("go vet ./...", "go test ./..."),
    "rust-full": ("cargo clippy -- -D warnings", "cargo test"),
}
"""Named sequences of commands, each of which becomes a criterion of its own."""

REFUSED_PROGRAMS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("bash", "sh", "zsh", "dash", "fish", "ksh", "cmd", "powershell", "pwsh"),
        ("starts a shell", "write the command that the shell would run"),
    ),
    "cd": (
        "changes the folder with 'cd'",
        "set the plan's root, or give the tool its own option for the folder",
    ),
    "env": ("starts 'env'", "write the variables in front of the command: NAME=value pytest …"),
    "export": ("sets a variable for later", "write it in front of the command: NAME=value pytest …"),
    "timeout": ("starts 'timeout'", "set the criterion's timeout_seconds"),
    "time": ("starts 'time'", "leave it out; every outcome says how long it took"),
    "!": ("negates an exit status", "write a test that asserts the failure"),
    **dict.fromkeys(
        ("source", "."),
        ("reads a shell script", "name the interpreter by its path: .venv/bin/python -m pytest …"),
    ),
    **dict.fromkeys(
        ("true", ":", "echo", "test", "[", "exit", "false", "ls", "cat", "printf"),
        ("proves nothing by itself", "use expected_artifacts for files, or a test"),
    ),
    **dict.fromkeys(
        ("pip", "pip3", "apt", "apt-get", "brew", "conda"),
        ("installs software", "prepare the environment before the run"),
    ),
    **dict.fromkeys(
        ("rm", "mv", "cp", "mkdir", "touch", "chmod", "chown", "sed", "tee", "dd"),
        ("changes files", "a criterion only judges the work"),
    ),
    **dict.fromkeys(
        ("curl", "wget", "ssh", "scp", "nc"),
        ("opens a connection", "write a test, and keep what it needs as a fixture"),
    ),
    **dict.fromkeys(
        ("sudo", "su", "doas"), ("asks for another user's rights", "write the command without them")
    ),
    **dict.fromkeys(("pdb", "ipython", "bpython"), ("is interactive", "write a test")),
}
"""Programs that are often tried, why they are refused, and what to do instead."""

"""What tools print, line by line, when they do not get as far as the work: patterns of whole lines."""

from __future__ import annotations

import re

NEVER_LOOKED = frozenset({"E902", "F0001"})
"""Codes of findings about a file that could not be opened."""

SET_UP_CODES = frozenset({"E0013", "TS2688", "TS5023", "TS5024", "TS5107", "TS5108", "TS6046", "TS18003"})
"""Codes of findings about the tool's own configuration."""

SET_UP_FILES = re.compile(
    r"^(?:pyproject\.toml|setup\.cfg|tox\.ini|\.?mypy\.ini|\.?pylintrc(?:\.toml)?|\.?ruff\.toml|\.flake8|"
    r"pyrightconfig\.json|tsconfig[\w.-]*\.json|\.eslintrc[\w.]*|eslint\.config\.[cm]?[jt]s|clippy\.toml)$"
)
"""Files that say how a checker works; what it says about them is no complaint about the work."""

_PYTHON = r"\S*python[\w.\-]*(?:\.exe)?"
_MAKE = r"\S*make(?:\[\d+\])?"
_NPM = r"npm (?:ERR!|error)"

NOT_THERE = re.compile(
    "^(?:"
    + "|".join(
        (
            # argparse, optparse, click, clap, getopt
            r".*: error: unrecognized arguments?: (\S+)",
            r"(?:.*: error: )?no such option: (\S+)",
            r".*: error: Unrecognized option found: (\S+)",
            r".*: error: argument [\w/, \-]+: (?:can't open|invalid choice:) '([^']+)'.*",
            r"Error: No such (?:option|command):? '?([^'\s]+?)'?[.:]?(?: .*)?",
            r"Error: Invalid value for .*: (?:Path|File|Directory|File or directory) '([^']+)' "
            r"does not exist\.",
            r"error: (?:unexpected argument|unrecognized subcommand|invalid value) '([^']+)'.*",
            r"error: Found argument '([^']+)'.*",
            r".*: unrecognized option [`'\"]?([^'\"\s]+)['\"]?",
            # checkers of Python
            r"mypy: error: Cannot find config file '([^']+)'",
            r"The config file (\S+) doesn't exist!",
            r"Unexpected option (\S+?)\.?",
            r"File or directory \"([^\"]+)\" does not exist\.?",
            r"Cause: Unknown rule selector `([^`]+)` in `[\w-]+` from the CLI",
            r"Broken \d+ paths",
            r"io: (\S+): No such file or directory .*",
            r"\[Errno 2\] No such file or directory: '([^']+)'",
            r"Can't list '([^']+)'",
            r"No source for code: '([^']+)'.*",
            # interpreters and test runners
            rf"{_PYTHON}: can't open file '?([^']+?)'?: \[Errno 2\] .*",
            rf"{_PYTHON}: No module named '?([\w.]+)'?(?:;.*)?",
            rf"{_PYTHON}: Error while finding module specification for '([\w.]+)'.*",
            r"ModuleNotFoundError: No module named '([\w.]+)'(?:; .*)?",
            r"AttributeError: module '([\w.]+)' has no attribute '(\w+)'",
            r"AttributeError: type object '([\w.]+)' has no attribute '(\w+)'",
            r"ImportError: Start directory is not importable: '([^']+)'",
            r"ERROR: (?:file or directory not found: |not found: )(\S+)",
            # JavaScript
            r"Could not find '([^']+)'",
            r"Error: Cannot find module '(/[^']+)'",
            r"\S*node: bad option: (\S+)",
            r"Error: No test files found: \"([^\"]+)\"",
            r"Warning: Cannot find any files matching pattern \"([^\"]+)\"",
            r"No files matching (?:the pattern )?[\"']([^\"']+)[\"'] were found\.?",
            r"(?:\[error\] )?No files matching the pattern were found: \"([^\"]+)\"\.?",
            r"Invalid option '([^']+)'.*",
            r"error TS5023: Unknown compiler option '([^']+)'.*",
            r"error TS(?:5057|5058|5083|6053): .*?'([^']+)'.*",
            rf"{_NPM} Missing script: \"?([^\"]+)\"?",
            # make, tox, nox, cargo
            rf"{_MAKE}: \*\*\* No rule to make target [`']([^']+)'\.(?:  Stop\.)?",
            rf"{_MAKE}: ([^\s:]+): No such file or directory",
            r"ROOT: HandledError\| provided environments not found in configuration file:",
            r"ROOT: HandledError\| unrecognized arguments: (\S+)",
            r"nox > Sessions not found: (.+)",
            r"error: no (?:test|bin|example|bench) target named `([^`]+)`.*",
            r"error: package ID specification `([^`]+)` did not match any packages",
            r"error: package\(s\) `([^`]+)` not found in workspace.*",
            r"error: manifest path `([^`]+)` does not exist",
            r"error: (?:the package '[^']+' does not contain|none of the selected packages contains) "
            r"(?:this|these) features?: (\S+)",
        )
    )
    + ")$"
)
"""A name that a tool does not know or find; where no group matched, it stands in the next line."""

SET_UP = re.compile(
    "^(?:"
    + "|".join(
        (
            # Python
            r"(?:\S+: )?[Ee]rror importing plugin .*",
            r"Config file \".+\" could not be parsed\..*",
            r"ruff failed",
            r"There was a critical error during execution of Flake8:.*",
            r"Error: (?:Could not open file '[^']+': )?Error reading configuration file.*",
            r"Error: Could not open file '[^']+': Error reading configuration.*",
            r"Error: Invalid (?:value for|config keys) .*",
            r"(?:Oh no! )?.*The required version `[^`]+` does not match the running version .*",
            r"(?:No data to report\.|No source for code: .*)",
            r"(?:Couldn't (?:read|use) .*config.*|Can't read '.*' as .*)",
            r"[\w.-]+: Exception running subprocess \[Errno \d+\] .*",
            r"[\w.-]+: exit \d+ \(.*\) .*> (?:\S*python\S* -I -m pip|pip|uv pip) install .*",
            r"ROOT: (?:HandledError\| .*|No tox\.ini .*)",
            # JavaScript
            r"npm (?:ERR!|error) code (?!ELIFECYCLE)E[A-Z]+",
            r".*Error \[ERR_MODULE_NOT_FOUND\]: Cannot find package '[^']+' imported from "
            r".*/node_modules/.*",
            r"Error: Unable to read/parse .*",
            r"Oops! Something went wrong! :\(",
            r"(?:ESLint couldn't find .*|Failed to load (?:plugin|config) .*)",
            r"\[error\] Invalid configuration .*",
            # Rust and C
            r"error: (?:toolchain '.*|could not download file .*|'[\w-]+' is not installed for .*|"
            r"component '.*|"
            r"no such (?:sub)?command: `.*|rustc [\d.]+ is not supported by .*|linker `.*` not found|"
            r"package `.*` cannot be built because it requires rustc .*|override toolchain '.*|"
            r"the 'cargo.*' (?:binary|component) .*)",
            r"error: custom toolchain '.*",
            r"The file `[^`]+` failed to parse\.",
            r"\S*(?:cc|gcc|clang|g\+\+|cc1|cc1plus|clang\+\+)(?:-[\d.]+)?: (?:fatal )?error: "
            r"(?:unrecognized command[- ]line option|"
            r"unknown argument|unsupported option).*",
            r"\S*ld(?:\.\w+)?: cannot find -l.*",
        )
    )
    + ")$"
)
"""A tool that says why it cannot work here."""

TOOL_FRAME = re.compile(
    r"(?:^|/)(?:flake8|black|blib2to3|isort|pylint|astroid|mypy|pyright|bandit|ruff|pycodestyle|pyflakes|"
    r"importlinter|vulture|pydocstyle)(?:/|$|\.py$)|/node_modules/"
)
"""The file of a frame that belongs to a checker."""

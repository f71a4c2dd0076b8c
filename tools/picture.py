"""Draw the output of a command in a terminal: ``python -m tools.picture docs/images/run.svg COMMAND …``.

The pictures of the documentation come from real runs, and the same command updates them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 100


def main(path: Path, command: list[str]) -> int:
    """Write the picture of a command's output, unless it could not run. Returns its exit status."""
    done = subprocess.run(
        command,
        env={**os.environ, "FORCE_COLOR": "1", "PY_COLORS": "1", "COLUMNS": str(WIDTH)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode > 1:  # no picture of a command that could not run
        print(done.stdout, file=sys.stderr)
        return done.returncode
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text(f"$ {shlex.join(command)}", style="bold"))
    console.print(Text.from_ansi(done.stdout))
    drawn = re.sub(
        r"@font-face \{.*?\n    \}\n", "", console.export_svg(title=""), flags=re.DOTALL
    )  # no network
    path.write_text(drawn, encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))

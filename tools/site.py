"""``python -m tools.site [FOLDER]`` builds the documentation as a site; a broken link is an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools import reference_pages

CONFIGURATION = Path(__file__).with_suffix(".yml")


def build(folder: Path) -> int:
    reference_pages.write()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    command += ["--config-file", str(CONFIGURATION), "--site-dir", str(folder.resolve())]
    return subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode


if __name__ == "__main__":
    place = Path(sys.argv[1] if len(sys.argv) > 1 else "build/site")
    if (status := build(place)) == 0:
        print(f"built {place}/index.html")
    sys.exit(status)

"""Entry point of ``python -m pytest_planverify``: the command ``planverify``."""

from __future__ import annotations

from pytest_planverify.cli import main

if __name__ == "__main__":
    main()

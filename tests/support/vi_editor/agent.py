"""A scripted agent that writes the editor: agent.py BRIEF.json.

In its first turn on a todo it writes the recorded files of `solution.txt`, with the mistakes of
`mistakes.toml`. If a brief reports a failure, it fixes the one mistake whose evidence is in the brief;
otherwise it writes the same files again.
"""

import json
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from text_bundles import read_bundle  # noqa: E402

SOLUTION = read_bundle(HERE / "solution.txt")


def main(path: str) -> None:
    brief = json.loads(Path(path).read_text(encoding="utf-8"))
    mistakes = tomllib.loads((HERE / "mistakes.toml").read_text(encoding="utf-8"))["mistakes"]
    told = brief["brief"].get("instructions", "")
    known = [each for each in mistakes if told and all(words in told for words in each["evidence"])]
    if len(known) == 1:
        write(known[0]["file"])
        print(f"fixed {known[0]['file']}")
        return
    for name in brief["bounds"]["allowed_files"]:
        write(name, [each for each in mistakes if each["file"] == name])
        print(f"wrote {name}")


def write(name: str, mistakes: list[dict[str, str]] | None = None) -> None:
    """Write a recorded file into the project, with mistakes."""
    text = SOLUTION[name]
    for each in mistakes or []:
        if each["right"] not in text:
            raise SystemExit(f"mistakes.toml: {name} has no {each['right']!r}")
        text = text.replace(each["right"], each["wrong"], 1)
    Path(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

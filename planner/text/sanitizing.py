"""Removal of control sequences and invisible characters from untrusted text.

The output of a test may try to move a terminal's cursor, to hide text from a person while a program reads
it, or to reverse the order of a line. :func:`clean` removes all of that.
"""

from __future__ import annotations

import re

CUT = "\n… {count} characters cut …\n"
"""Replacement of text that was cut."""


def clean(text: str, *, limit: int | None = None) -> str:
    """Return the text without control sequences, invisible and bidirectional control characters.

    Newlines and tabs stay; ``\\r\\n`` and ``\\r`` become newlines. With a ``limit``, that many characters
    are kept: the head and, twice as long, the tail, with a visible cut between them, if that is shorter.
    """
    # Most texts are printable ASCII, for which one match is cheaper than the substitutions.
    if not _SAFE_TEXT.fullmatch(text):
        # Whole sequences first: without its escape character, the rest of one would stay as text.
        text = _SEQUENCES.sub("", without_surrogates(text))
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = _UNSAFE.sub("", text)
    # A cut that is longer than what it replaces is no help; so a text is never cut twice, either.
    if limit is None or len(text) <= limit + len(CUT):
        return text
    # The tail gets more room: an error is mostly at the end of an output.
    head = limit // 3
    tail = limit - head
    cut = CUT.format(count=len(text) - limit)
    return f"{text[:head]}{cut}{text[len(text) - tail :]}"


def one_line(text: object, *, limit: int) -> str:
    """Return the text cleaned and on one line, with at most ``limit`` characters and a visible cut."""
    return " ".join(clean(str(text), limit=limit).split())


def without_surrogates(text: str) -> str:
    """Return the text without surrogates, so that it can be encoded in UTF-8.

    Python decodes undecodable bytes of paths to surrogates; these bytes are decoded as UTF-8. Other
    surrogates become replacement characters.
    """
    text = _HIDDEN_BYTES.sub(
        lambda found: found[0].encode("ascii", "surrogateescape").decode("utf-8", "replace"), text
    )
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


_SAFE_TEXT = re.compile(r"[\t\n -~]*")

_SEQUENCES = re.compile(
    r"""
      (?: \x1b \[ | \x9b ) [0-?]* [ -/]* [@-~]               # CSI: colours, cursor
    | (?: \x1b [\]PX^_] | [\x9d\x90\x98\x9e\x9f] )           # OSC, DCS, SOS, PM, APC: titles, links
      # The length is bounded, so that many unterminated sequences take linear time.
      [^\x07\x1b\x9c\n]{0,4096} (?: \x07 | \x1b\\ | \x9c )
    | \x1b [ -/]+ [0-~]                                      # character sets
    | \x1b [0-~]                                             # two-character sequences
    """,
    re.VERBOSE,
)

_UNSAFE = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # invisible letters and joiners
    "\u200b-\u200f"  # zero width, left-to-right and right-to-left marks
    "\u2028\u2029"  # line and paragraph separators
    "\u202a-\u202e\u2060-\u206f"  # bidirectional embeddings, overrides, isolates; invisible operators
    "\u3164\uffa0\ufe00-\ufe0f\ufeff\ufff0-\ufffb"  # fillers, variation selectors, byte order mark
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tags and further variation selectors
    "]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
# The surrogates to which Python decodes the bytes of paths that are not UTF-8 (PEP 383).
_HIDDEN_BYTES = re.compile("[\udc80-\udcff]+")

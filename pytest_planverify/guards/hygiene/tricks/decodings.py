"""What a text or some bytes may hold under an encoding; nothing of it is run."""

from __future__ import annotations

import base64
import binascii
import bz2
import codecs
import lzma
import pickletools
import sys
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LONGEST = 1_000_000
_LEAST = 12
_DEEPEST = 3
_MOST = 400
"""So many readings of one text are looked at."""


class _Shift(dict[int, int]):
    """A table for ``str.translate`` that moves every character by so much, as far as there are any."""

    def __init__(self, by: int) -> None:
        self._by = by

    def __missing__(self, key: int) -> int:
        moved = key + self._by
        self[key] = found = moved if 0 < moved <= sys.maxunicode else key
        return found


_SHIFTS = tuple(_Shift(number) for number in range(-13, 14) if number)


def readings(value: str | bytes) -> Iterator[str]:
    """Every text that a constant may stand for, but the constant itself."""
    twin = value.encode("utf-8", "replace") if isinstance(value, str) else value.decode("latin-1")
    seen: set[str | bytes] = {value, twin}
    if isinstance(value, str):
        seen.add(value.encode("latin-1", "replace"))
    waiting: list[tuple[str | bytes, int]] = [(value, 0)]
    while waiting and len(seen) < _MOST:
        each, depth = waiting.pop(0)
        for found in _decoded(each):
            if found in seen or not _LEAST <= len(found) <= _LONGEST:
                continue
            seen.add(found)
            text = _as_text(found)
            if text is not None:
                yield text
            if depth < _DEEPEST:
                waiting.append((found, depth + 1))
    text = _as_text(value)
    if text is not None and len(text) < 100_000:
        yield from _shifted(text)
    elif isinstance(value, bytes) and len(value) < 20_000:
        yield from _masked(value)


def _decoded(value: str | bytes) -> Iterator[str | bytes]:
    for work in _DECODERS:
        try:
            found = work(value.encode("latin-1") if isinstance(value, str) else value)
        except (ValueError, OSError, EOFError, LookupError, OverflowError, MemoryError):
            continue
        except (binascii.Error, zlib.error, lzma.LZMAError):
            continue
        if found:
            yield found


def _as_text(value: str | bytes) -> str | None:
    """Bytes that are text, as far as their characters tell."""
    if isinstance(value, str):
        return value
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if "\0" not in text else None


def _shifted(text: str) -> Iterator[str]:
    yield text[::-1]
    for shift in _SHIFTS:
        yield text.translate(shift)
    yield codecs.decode(text, "rot13")


def _masked(value: bytes) -> Iterator[str]:
    """Bytes that are mixed with one byte."""
    for mask in range(1, 256):
        text = _as_text(bytes(each ^ mask for each in value))
        if text is not None:
            yield text


def _base64(value: bytes) -> bytes:
    return base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)


def _inflated(value: bytes) -> bytes:
    return zlib.decompressobj(wbits=47).decompress(value, _LONGEST)


def _raw(value: bytes) -> bytes:
    return zlib.decompressobj(wbits=-15).decompress(value, _LONGEST)


def _unpacked(value: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(value, _LONGEST)


def _unxz(value: bytes) -> bytes:
    return lzma.LZMADecompressor(memlimit=1 << 26).decompress(value, _LONGEST)


def _pickled(value: bytes) -> bytes:
    """The texts of a pickle, read without making anything of it."""
    if not value.startswith((b"\x80", b"(", b"c")):
        raise ValueError("no pickle")
    texts = [arg for _, arg, _ in pickletools.genops(value) if isinstance(arg, str)]
    return "\n".join(texts).encode("utf-8", "replace")


def _wide(value: bytes) -> bytes:
    if value.count(0) * 3 < len(value):
        raise ValueError("no wide characters")
    return value.decode("utf-16").encode()


def _reversed(value: bytes) -> bytes:
    return value[::-1]


_DECODERS: tuple[Callable[[bytes], bytes], ...] = (
    _base64, base64.urlsafe_b64decode, base64.b32decode, base64.b85decode, base64.a85decode,
    binascii.unhexlify, _inflated, _raw, _unpacked, _unxz, _pickled, _wide, _reversed,
)  # fmt: skip

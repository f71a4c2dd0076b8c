"""The display that faces the customer."""

from __future__ import annotations

import pytest

from shop.display import show


@pytest.mark.silent
def test_the_text_stands_in_the_middle():
    assert show("2.52").strip() == "2.52"

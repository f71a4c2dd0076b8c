"""Opening hours."""

from __future__ import annotations

from shop.hours import is_open


def test_open_from_the_first_hour_to_the_last():
    assert [hour for hour in range(24) if is_open("wednesday", hour)] == [8, 9, 10, 11, 12]


def test_closed_on_sundays():
    assert not any(is_open("sunday", hour) for hour in range(24))

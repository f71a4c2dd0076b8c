"""The price list that the plan gives to these tests."""

from __future__ import annotations

from shop.prices import read_prices


def test_no_article_is_free(planverify):
    articles = read_prices(planverify.fixture_path)

    assert all(article.price > 0 for article in articles.values())


def test_the_list_is_counted(planverify, record_property):
    articles = read_prices(planverify.fixture_path)

    record_property("articles", len(articles))
    planverify.metric("cheapest", float(min(article.price for article in articles.values())))

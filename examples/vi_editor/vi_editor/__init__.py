"""The core of a small editor in the manner of vi: keys in, rows of text out."""

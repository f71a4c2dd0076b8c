"""Contracts: their files, and the code that they are compared with or written from."""

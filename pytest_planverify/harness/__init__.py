"""Harness: carries out a plan with coding agents; only verifications decide what is done."""

"""Harness: carries a plan to done with coding agents, trusting verifications only."""

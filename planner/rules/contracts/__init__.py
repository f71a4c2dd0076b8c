"""Contracts: annotations and signatures compared as a person would, without reading any code."""

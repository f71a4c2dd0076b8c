"""Hygiene: compares two snapshots of a tree for signals of tampering, see :mod:`.compare`."""

"""Functions that make untrusted text safe to show, to store and to quote."""

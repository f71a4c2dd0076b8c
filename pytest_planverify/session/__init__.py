"""The parent: plans sessions, forks and watches them, and is the one that says the verdict."""

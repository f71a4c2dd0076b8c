"""Session: the parent process plans worker sessions, forks and watches them, and decides all verdicts."""

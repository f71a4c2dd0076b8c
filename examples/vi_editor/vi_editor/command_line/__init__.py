"""Command lines, and the editor that takes keys."""

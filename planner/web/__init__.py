"""Web pages with the runs of a project, and the open questions to people."""

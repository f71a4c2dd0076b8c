"""Pages in a browser: the runs of a project, and the questions that wait for a person."""

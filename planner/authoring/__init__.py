"""Makes plans: a first one from a repository or from a Markdown list with check boxes."""

"""Plan authoring: from a repository, a Markdown list, a goal, templates, gap reports or a design plan."""

"""The policy: pure decisions about todos and outcomes, asked by the engine and by nothing beside it."""

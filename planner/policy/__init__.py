"""Policy: pure decisions about todos and outcomes. The engine asks for them; nothing else makes any."""

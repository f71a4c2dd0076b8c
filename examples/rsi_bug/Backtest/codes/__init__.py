"""The strategy's two decisions: when to enter and when to exit."""

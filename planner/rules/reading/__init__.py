"""What the text of tests and build files says, told without running any of it."""

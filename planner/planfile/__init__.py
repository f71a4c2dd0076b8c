"""Plan files and sub-plan files: loading with positions, validation, and writing back."""

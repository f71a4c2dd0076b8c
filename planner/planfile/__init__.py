"""Plan files and sub-plan files: load with positions, validate, write back."""

"""Design plans: edited, reviewed at gates, frozen, exported as plans, reconciled with their outcomes."""

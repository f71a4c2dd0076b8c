"""Design plans: decided, reviewed at gates, frozen, carried out, and compared with what became of them."""

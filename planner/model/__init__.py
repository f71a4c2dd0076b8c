"""The vocabulary of both packages: frozen pydantic models and enumerations, without input or output."""

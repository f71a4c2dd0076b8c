"""The one vocabulary of both packages: frozen values without input or output."""

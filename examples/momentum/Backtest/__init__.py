"""The strategy run over past prices: data in, trades out."""

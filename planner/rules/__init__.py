"""Pure functions, one decision a file: facts in, typed verdict out."""

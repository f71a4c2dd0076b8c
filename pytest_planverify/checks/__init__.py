"""One kind of criterion a file: what is evaluated by the supervising process, outside of any session."""

"""What held before the work began: recorded once, compared with in every run."""

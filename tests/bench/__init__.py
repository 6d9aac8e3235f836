"""Speed, always as a ratio of two things measured in turn in one run."""

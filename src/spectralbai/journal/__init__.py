"""What is written down of a study: what it is about, what was asked and what was told."""

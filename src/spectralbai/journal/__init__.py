"""The records of a study: its definition, the trials handed out, and the results told."""

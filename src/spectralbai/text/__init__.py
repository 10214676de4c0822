"""Numbers, times and tables as text for people."""

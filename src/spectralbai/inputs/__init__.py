"""What people give as tables: features of options, past results, counts."""

"""Tables that users give: features of options, past results, counts, outcomes on items."""

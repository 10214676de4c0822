"""What the results say: blocks of pulls, the results seen so far, what to expect next, and the memories of rules.

This file imports nothing, so that code which needs only blocks does not load compiled code.
"""

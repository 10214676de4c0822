"""What results say: blocks of pulls, what is seen of them, what to expect, and the memories of rules.

Nothing is imported here: blocks are needed where compiled code is not.
"""

"""Asks a question with a prompt, and prints 1 if the answer is right, else 0: python3 answer.py PROMPT QUESTION ANSWER.

`model` is in place of a language model, so that the example needs neither a network nor a key. It slips more often on
questions with more numbers, and some ways to ask help it. Put a call of your own model there.
"""

import random
import re
import sys

HELP = {"step by step": 0.5, "check": 0.25, "like this": 0.3, "expert": 0.05, "brief": -0.2, "no time": -0.4}


def model(prompt: str, question: str) -> str:
    """Returns the answer of the stand-in for a model: the right one, unless it slips."""
    skill = 1.0 + sum(worth for words, worth in HELP.items() if words in prompt)
    hardness = 0.4 * len(re.findall(r"\d+", question)) - 0.6 + 0.6 * random.Random(question).gauss(0, 1)
    luck = 0.3 * random.Random(prompt + question).gauss(0, 1)
    return worked_out(question) if hardness + luck < skill else "42, I think"


def worked_out(question: str) -> str:
    """Returns the right answer, from the numbers in the question and the verb that says what to do with them."""
    a, b, *others = (int(number) for number in re.findall(r"\d+", question))
    if "finds" in question:
        return str(a + b)
    if "every day" in question:
        return str(a + b * others[0] - others[1])
    if "away" in question:
        return str(a - b)
    if "share" in question:
        return str(b // a + others[0])
    return str(a * b - sum(others))


if __name__ == "__main__":
    prompt, question, answer = sys.argv[1:]
    print(int(model(prompt, question) == answer))

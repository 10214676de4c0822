"""Commands with placeholders: split into words once, filled in word by word, and never read by a shell."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from spectralbai.checks import did_you_mean
from spectralbai.errors import InvalidInput
from spectralbai.picking.entries import Entries, Entry

PLACEHOLDER = re.compile(r"\{(\w[^{}\"':]*)\}")
"""Braces around words; other braces, such as those of JSON, stay as they are."""
OF_SHELLS = ("|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1")
"""Words that mean something to a shell only."""


@dataclass(frozen=True)
class Template:
    """The words of a command, with places for the label of an option and of an item, or for other columns."""

    words: tuple[str, ...]

    @classmethod
    def parsed(cls, command: str, options: Entries, items: Entries) -> Template:
        """Returns the template in the text of a command; raises InvalidInput unless it can be filled in for every
        option and every item."""
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise InvalidInput(f"the command cannot be split into words ({error}): {command}") from None
        if not words:
            raise InvalidInput("the command is blank; give one such as './score {option} {item}'")
        template = cls(words)
        template._check_places(options, items)
        template._check_values(options, items)
        return template

    def filled(self, option: Entry, item: Entry) -> list[str]:
        """Returns the words for a pair. A value stays inside its word, whatever it holds."""
        entries = {"option": option, "item": item}

        def value(place: re.Match[str]) -> str:
            role, _, column = place[1].partition(".")
            entry = entries[role]
            return entry.columns[column] if column else entry.label

        return [PLACEHOLDER.sub(value, word) for word in self.words]

    def checksum(self, options: Entries, items: Entries) -> str:
        """Returns a checksum of the cells that the command is filled with, in whatever order they are listed; an empty
        string if it is filled with labels only."""
        entries = {"option": options, "item": items}
        places = {tuple(place.split(".", 1)) for word in self.words for place in PLACEHOLDER.findall(word)}
        cells = [
            (*place, entry.label, entry.columns[place[1]])
            for place in places
            if len(place) == 2
            for entry in entries[place[0]]
        ]
        return hashlib.sha256(json.dumps(sorted(cells)).encode()).hexdigest()[:12] if cells else ""

    def _check_places(self, options: Entries, items: Entries) -> None:
        entries = {"option": options, "item": items}
        for word in self.words:
            if word in OF_SHELLS:
                raise InvalidInput(
                    f'the command is not run by a shell, to which "{word}" would mean something; put it into a script'
                )
        used = set()
        for place in (place for word in self.words for place in PLACEHOLDER.findall(word)):
            role, dot, column = place.partition(".")
            if role not in entries:
                known = ("option", "item", *_columns(entries))
                remedy = did_you_mean(place, known, "the places are {option}, {item}, and their columns")
                raise InvalidInput(f"the command has the unknown place {{{place}}}; {remedy}")
            used.add(role)
            if dot and column not in (names := entries[role].names):
                remedy = did_you_mean(column, names, f"the columns are {', '.join(names)}" if names else "it has none")
                raise InvalidInput(
                    f'the command has the place {{{place}}}, but no {role} has a column "{column}"; {remedy}'
                )
        for role in entries:
            if role not in used:
                raise InvalidInput(
                    f"the command does not say where the {role} goes; write {{{role}}} there, or {{{role}.COLUMN}}"
                )

    def _check_values(self, options: Entries, items: Entries) -> None:
        """Raises InvalidInput if a value cannot be in a command, or would be taken for an option of the command."""
        entries = {"option": options, "item": items}
        after_dashes = False
        for word in self.words:
            for match in PLACEHOLDER.finditer(word):
                role, _, column = match[1].partition(".")
                for entry in entries[role]:
                    value = entry.columns[column] if column else entry.label
                    if "\0" in value:
                        raise InvalidInput(
                            f'{{{match[1]}}} of "{entry.label}" holds a NUL, which no command can be given'
                        )
                    if match.start() == 0 and not after_dashes and value.startswith("-") and not _is_number(value):
                        raise InvalidInput(
                            f'{{{match[1]}}} begins with a dash for "{entry.label}", so the command would take it for '
                            f"one of its options; write --{role}={{{match[1]}}}, or -- before it"
                        )
            after_dashes = after_dashes or word == "--"


def _columns(entries: Mapping[str, Entries]) -> list[str]:
    return [f"{role}.{name}" for role, each in entries.items() for name in each.names]


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True

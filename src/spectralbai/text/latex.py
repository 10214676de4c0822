"""Tables for LaTeX, in the style of the package booktabs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "[": "{[}",  # after the end of a row it would begin an option
    "|": r"\textbar{}",
    "<": "$<$",
    ">": "$>$",
    "–": "--",
    "±": r"$\pm$",
    "†": r"$^\dagger$",
}


def escaped(text: str) -> str:
    """Returns text so that LaTeX prints it as it stands; whatever is not printable becomes a blank."""
    return "".join(SIGNS.get(sign, sign) if sign.isprintable() else " " for sign in text)


def tabular(headings: Sequence[str], groups: Mapping[str, Sequence[Sequence[str]]], left: int = 1) -> str:
    """Returns a table with a group of rows under each name, all of which are escaped; `headings` are LaTeX.

    The first `left` columns are aligned left, the others right.
    """

    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(escaped, cells)) + r" \\"

    lines = [rf"\begin{{tabular}}{{{'l' * left + 'r' * (len(headings) - left)}}}", r"\toprule"]
    lines.append(" & ".join(headings) + r" \\")
    for name, rows in groups.items():
        lines += [r"\midrule", rf"\multicolumn{{{len(headings)}}}{{l}}{{\emph{{{escaped(name)}}}}} \\"]
        lines += map(line, rows)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"

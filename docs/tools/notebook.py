"""Runs a notebook: python docs/tools/notebook.py FILE... keeps the outputs of the run in the file.

The cells are run one after the other in one namespace, which takes neither Jupyter nor a kernel.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Returns the notebook with the outputs of its code cells."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, number = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell = {**cell, "execution_count": number, "outputs": outputs(cell, number, names)}
        cells.append(cell)
    return {**notebook, "cells": cells}


def outputs(cell: Cell, number: int, names: dict[str, Any]) -> list[Cell]:
    """Runs a cell, and returns what it printed and what its last line returned."""
    body = ast.parse("".join(cell["source"])).body
    last = None
    if body and isinstance(end := body[-1], ast.Expr):
        last = ast.Expression(end.value)
        body.pop()
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), f"<cell {number}>", "exec"), names)
        if last is not None:
            value = eval(compile(last, f"<cell {number}>", "eval"), names)
    found: list[Cell] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = shown(value)
        found.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return found


def shown(value: object) -> dict[str, Any]:
    """Returns a value in the forms that a notebook keeps."""
    if hasattr(value, "savefig"):
        return {"image/png": picture(value), "text/plain": ["a picture"]}
    if hasattr(value, "_repr_html_"):
        return {"text/html": lines(value._repr_html_()), "text/plain": [type(value).__name__]}
    return {"text/plain": lines(repr(value))}


def picture(figure: Any) -> str:
    """Returns a figure as a small PNG of 64 colours, in base64."""
    from PIL import Image

    drawn, kept = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=90)
    Image.open(drawn).convert("RGB").quantize(64).save(kept, "png", optimize=True)
    return base64.b64encode(kept.getvalue()).decode("ascii")


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        notebook = run(json.loads(Path(name).read_text("utf-8")))
        Path(name).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")

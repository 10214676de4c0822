"""Draws the pictures of the tutorials anew: python docs/tools/pictures.py [NAME ...]

Each is made by a command that its tutorial shows: the script of the tutorial is run in an empty folder, then
`spectralbai study report`, and the picture is what one of them wrote. Colours are reduced to 64, which keeps
the files small.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

DOCS = Path(__file__).parent.parent
REPORT = {
    "estimates": r"Estimated mean outcomes",
    "race": r"The race",
}
"""The pictures of a report by what their descriptions begin with."""
PICTURES = {
    "clicks": ("pages", {"graph": "pages.png", **REPORT}),
    "doses": ("doses", {"graph": "doses.png", **REPORT}),
    "catalogue": ("catalogue", REPORT),
}
"""The study of each tutorial, and where its pictures come from: a file, or the report."""


def draw(tutorial: str) -> None:
    """Writes the pictures of a tutorial."""
    if tutorial == "research":
        return draw_campaign(tutorial)
    if tutorial == "learners":
        return draw_trials(tutorial)
    study, wanted = PICTURES[tutorial]
    text = (DOCS / "tutorials" / f"{tutorial}.md").read_text("utf-8")
    script = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert script is not None
    here = f'spectralbai() {{ {sys.executable} -m spectralbai "$@"; }}\npython3() {{ {sys.executable} "$@"; }}\n'
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").symlink_to(DOCS.parent / "examples")
        commands = f"{here}{script[1]}\nspectralbai study report {study} --force"
        subprocess.run(["sh", "-ec", commands], cwd=folder, check=True, stdout=subprocess.DEVNULL, env={**os.environ})
        page = (folder / "report.html").read_text("utf-8")
        for picture, source in wanted.items():
            if source.endswith(".png"):
                png = (folder / source).read_bytes()
            else:
                found = re.search(rf'<img alt="{source}[^"]*" src="data:image/png;base64,([^"]*)"', page)
                assert found is not None, f"the report of {study} has no picture that begins with {source!r}"
                png = base64.b64decode(found[1])
            save(png, DOCS / "tutorials" / f"{tutorial}_{picture}.png")


def draw_campaign(tutorial: str) -> None:
    """Writes the pictures of the campaign that a tutorial shows."""
    text = (DOCS / "tutorials" / f"{tutorial}.md").read_text("utf-8")
    campaign = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert campaign is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "graph.toml").write_text(campaign[1], "utf-8")
        for arguments in (
            "simulate graph.toml --out results",
            "plot results --kind box",
            "plot results --kind graph",
        ):
            subprocess.run([sys.executable, "-m", "spectralbai", *arguments.split()], cwd=folder, check=True)
        for kind in ("box", "graph"):
            save((folder / "results" / f"{kind}.png").read_bytes(), DOCS / "tutorials" / f"{tutorial}_{kind}.png")


def draw_trials(tutorial: str) -> None:
    """Writes a picture of how many items each option was tried on, in the first example of the tutorial."""
    from matplotlib.figure import Figure

    text = (DOCS / "tutorials" / f"{tutorial}.md").read_text("utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    with contextlib.chdir(DOCS.parent):
        exec(code[1], names)
    table, run = names["table"], names["run"]
    order = table.means.argsort()
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    labels = [f"{table.options[arm]} ({table.means[arm]:.2f})" for arm in order]
    axes.barh(labels, [table.n_items] * len(labels), color="0.92")
    axes.barh(labels, run.counts[order])
    axes.set_xlabel(f"splits it was tried on, of {table.n_items}; in brackets the mean of all")
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=110)
    save(png.getvalue(), DOCS / "tutorials" / f"{tutorial}_trials.png")


def save(png: bytes, path: Path) -> None:
    """Writes a picture with 64 colours."""
    Image.open(io.BytesIO(png)).convert("RGB").quantize(64).save(path, optimize=True)
    print(f"{path.relative_to(DOCS)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    for each in sys.argv[1:] or [*PICTURES, "research", "learners"]:
        draw(each)

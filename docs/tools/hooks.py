"""What mkdocs does beyond mkdocs.yml: pages made of files outside docs/, the notebook as a page, links to equations.

Pages are written so that their links work where the repository is hosted. On the site the same files have other
places, and links are changed to these.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository that are pages of the site."""
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[#)])")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
EQUATION = re.compile(r'<div class="arithmatex">(?=(?:(?!</div>).)*?\\tag\{([\d.]+)\})', re.DOTALL)
NOT_PROSE = re.compile(
    r'(<(div|span) class="arithmatex".*?</\2>|<code.*?</code>|<h\d.*?</h\d>|<a .*?</a>|<[^>]+>)', re.DOTALL
)
LIST = re.compile(r"^(?![-\s>#|]|\d+\. )(.+)\n(?=- |1\. )", re.MULTILINE)
"""The line before a list, where no empty line is between: mkdocs needs one, hosts of repositories do not."""
NUMBER = re.compile(r"\((\d+\.\d+)\)")
HEADING = re.compile(r"^## (\d+)\. (.+)$", re.MULTILINE)
CITED = re.compile(r"\btheory,? (?:section )?(\d+(?:\.\d+)?)\b")
"""As in "theory 12.16" and "theory, section 13", which pages and docstrings say."""
log = logging.getLogger("mkdocs.hooks")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the repository's root and the examples, and turns notebooks into pages."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    for path in sorted((ROOT / "examples").iterdir()):
        if path.is_file():
            files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
    for file in [each for each in files if each.src_uri.endswith(".ipynb")]:
        files.remove(file)
        content = as_markdown(json.loads(file.content_string))
        files.append(File.generated(config, page_of(f"docs/{file.src_uri}"), content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links between files of the repository into links between pages of the site, and sets lists apart."""
    source = next((name for name, target in PAGES.items() if target == page.file.src_uri), f"docs/{page.file.src_uri}")
    here = posixpath.dirname(source), posixpath.dirname(page.file.src_uri)

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here[0], found[1]))
        return posixpath.relpath(page_of(target), here[1] or ".") if (ROOT / target).is_file() else found[1]

    pieces = FENCED.split(markdown)
    pieces[::2] = [LIST.sub(r"\1\n\n", LINK.sub(moved, piece)) for piece in pieces[::2]]
    return "".join(pieces)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Gives every numbered equation an anchor, and links mentions of its number to it, from other pages too."""
    known = set(EQUATION.findall(html))
    theory = "" if known else page_link(page, files)
    places = {} if known else places_of_theory()

    def linked(found: re.Match[str]) -> str:
        return f'<a href="#eq-{found[1]}">({found[1]})</a>' if found[1] in known else found[0]

    def cited(found: re.Match[str]) -> str:
        place = places.get(found[1])
        if place is None:
            log.warning(f"{page.file.src_uri} cites {found[0]!r}, which docs/theory.md does not have")
            return found[0]
        return f'<a href="{theory}#{place}">{found[0]}</a>'

    pieces = NOT_PROSE.split(html)  # prose, what is not, the name of its tag, prose, ...
    del pieces[2::3]
    pieces[::2] = [NUMBER.sub(linked, piece) if known else CITED.sub(cited, piece) for piece in pieces[::2]]
    return EQUATION.sub(r'<div class="arithmatex" id="eq-\1">', "".join(pieces))


def page_link(page: Page, files: Files) -> str:
    """Returns the address of the theory as seen from a page."""
    theory = files.get_file_from_path("theory.md")
    assert theory is not None
    return theory.url_relative_to(page.file)


@cache
def places_of_theory() -> dict[str, str]:
    """Returns the anchors of the theory by the numbers of its sections and equations."""
    text = (ROOT / "docs" / "theory.md").read_text("utf-8")
    sections = {number: slugify(f"{number}. {title}", "-") for number, title in HEADING.findall(text)}
    # Some numbers stand at the end of a paragraph; what they number is found in their section.
    ends = {
        number: sections[number.partition(".")[0]] for number in re.findall(r" \((\d+\.\d+)\)$", text, re.MULTILINE)
    }
    return sections | ends | {number: f"eq-{number}" for number in re.findall(r"\\tag\{([\d.]+)\}", text)}


def page_of(target: str) -> str:
    """Returns the place on the site of a file of the repository."""
    return PAGES.get(target, re.sub(r"\.ipynb$", ".md", target.removeprefix("docs/")))


def as_markdown(notebook: dict[str, Any]) -> str:
    """Returns the cells of a notebook and the outputs kept in it."""
    return "\n\n".join(part for cell in notebook["cells"] for part in cell_parts(cell)) + "\n"


def cell_parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *(output_part(output) for output in cell["outputs"])]


def output_part(output: dict[str, Any]) -> str:
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    if "image/png" in data:
        png = data["image/png"].replace("\n", "")
        return f'<div class="output"><img alt="What the cell above drew" src="data:image/png;base64,{png}"></div>'
    if "text/html" in data:
        html = " ".join(data["text/html"].split())  # no empty line, which would end a block of HTML
        return f'<div class="output">{html}</div>'
    return f"```text\n{data.get('text/plain', ''.join(output.get('text', ''))).rstrip()}\n```"

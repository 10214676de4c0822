"""The files of the page, without a browser: served as what they are, and nothing in them that the policy forbids."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import spectralbai as sb
from spectralbai.service.app import PAGE, make_app

COLOURS = {
    name: both
    for name, *both in re.findall(
        r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", (PAGE / "css" / "base.css").read_text("utf-8")
    )
}
WORDS = {  # what is written in a colour, and on which
    "text": ("ground", "surface", "raised", "tint-blue", "tint-green", "tint-vermillion"),
    "muted": ("ground", "surface", "raised", "tint-blue"),
    "blue": ("ground", "surface", "raised", "tint-blue"),
    "green": ("surface", "raised", "tint-green"),
    "vermillion": ("surface", "raised", "tint-green", "tint-vermillion"),
    "red": ("ground", "surface", "raised", "tint-red"),
    "on-fill": ("blue-fill",),
    "ground": ("text",),  # beside the pointer
}
FILES = sorted(str(file.relative_to(PAGE)) for file in PAGE.rglob("*") if file.is_file())
MODULES = [file for file in FILES if file.endswith(".js")]
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Calls one service for all files."""
    folder = tmp_path_factory.mktemp("files")
    with sb.Studies(f"sqlite:///{folder / 'studies.db'}") as studies:
        with TestClient(make_app(studies), base_url="http://localhost") as client:
            yield client


@pytest.mark.parametrize("file", FILES)
def test_files_are_served_as_what_they_are(http: TestClient, file: str) -> None:
    answer = http.get(f"/{file}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].split(";")[0] == TYPES[file.rpartition(".")[2]]
    assert answer.headers["cache-control"] == "no-cache"
    assert "script-src 'self'; style-src 'self'" in answer.headers["content-security-policy"]


def test_the_address_alone_is_the_page(http: TestClient) -> None:
    page = http.get("/").text
    assert page == (PAGE / "index.html").read_text("utf-8")
    for named in re.findall(r'(?:src|href)="/([^"]+)"', page):
        assert named in FILES
    assert not re.search(r"<style|style=|\son\w+=|<script>|https?://", page)


@pytest.mark.parametrize("file", MODULES)
def test_modules_find_each_other_and_show_data_as_text(file: str) -> None:
    text = (PAGE / file).read_text("utf-8")
    for named in re.findall(r'from "\./([^"]+)"', text):
        assert f"js/{named}" in MODULES
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    addresses = re.findall(r"https?://[^\"\s]+", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}, "something comes from elsewhere"
    assert all(len(line) <= 120 for line in text.splitlines())


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("theme", "at"), [("light", 0), ("dark", 1)])
def test_words_stand_out_from_what_they_are_on(theme: str, at: int) -> None:
    for word, grounds in WORDS.items():
        for ground in grounds:
            dark, light = sorted(luminance(COLOURS[name][at]) for name in (word, ground))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, f"{word} on {ground}"
    for ground in ("ground", "surface"):  # the edges of fields
        dark, light = sorted(luminance(COLOURS[name][at]) for name in ("edge", ground))
        assert (light + 0.05) / (dark + 0.05) >= 3, f"edge on {ground}"

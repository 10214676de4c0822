"""The files of the page, without a browser: served as what they are, and nothing in them that the policy forbids."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from spectralbai.service.app import PAGE

FILES = sorted(str(file.relative_to(PAGE)) for file in PAGE.rglob("*") if file.is_file())
MODULES = [file for file in FILES if file.endswith(".js")]
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


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

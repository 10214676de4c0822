"""How answers are written: JSON that any program can read, whatever users typed."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response


class Answer(Response):
    """A JSON answer. Text that is not Unicode, such as half of a pair of surrogates, is escaped."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return as_json(content)


def as_json(content: Any) -> bytes:
    """Returns a document as JSON; a backslash escape of Python for a surrogate is that of JSON too."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")

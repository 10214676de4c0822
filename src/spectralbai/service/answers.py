"""How answers are written: valid JSON, even if users typed text that is not valid Unicode."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response


class Answer(Response):
    """A JSON answer. Characters that are not valid Unicode, such as a single surrogate, are escaped."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return as_json(content)


def as_json(content: Any) -> bytes:
    """Returns a document as JSON; Python's backslash escape of a surrogate is also valid in JSON."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")

"""Which storage a test needs."""

from __future__ import annotations

import pytest

ON_SQLITE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
"""For tests of what does not depend on the kind of database; the contract of studies is tested on both."""

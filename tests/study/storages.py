"""Which storage a test needs."""

from __future__ import annotations

import pytest

ON_SQLITE = pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
"""For tests of what does not depend on the kind of database. The contracts of studies and of storages, exports,
deletions, and what several do at once are tested on both, and with them every statement that is sent to a database."""

"""Metrics of the service, in the text format of Prometheus."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the intervals in which durations are counted, in seconds."""


class Metrics:
    """Counts requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts an answered request."""
        with self._lock:
            self._requests[method, route, status] += 1
            counts = self._durations.setdefault(route, [0] * (len(BUCKETS) + 1))
            counts[sum(seconds > end for end in BUCKETS)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter adds what it is given

    def text(self, states: Iterable[str], results: int) -> str:
        """Returns everything counted, with the states of all studies and the number of all results."""
        with self._lock:
            requests, seconds = dict(self._requests), dict(self._seconds)
            durations = {route: list(counts) for route, counts in self._durations.items()}
        lines = [
            *_family("spectralbai_requests_total", "counter", "Requests answered."),
            *(
                _line("spectralbai_requests_total", {"method": method, "route": route, "status": str(status)}, count)
                for (method, route, status), count in sorted(requests.items())
            ),
            *_family("spectralbai_request_seconds", "histogram", "How long requests took."),
        ]
        for route, counts in sorted(durations.items()):
            below = 0
            for end, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                below += count
                lines.append(_line("spectralbai_request_seconds_bucket", {"route": route, "le": end}, below))
            lines.append(_line("spectralbai_request_seconds_sum", {"route": route}, seconds[route]))
            lines.append(_line("spectralbai_request_seconds_count", {"route": route}, below))
        lines += _family("spectralbai_studies", "gauge", "Studies by state.")
        lines += [_line("spectralbai_studies", {"state": state}, n) for state, n in sorted(Counter(states).items())]
        lines += _family("spectralbai_results", "gauge", "Results of all studies.")
        lines.append(_line("spectralbai_results", {}, results))
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, help_: str) -> Iterator[str]:
    yield f"# HELP {name} {help_}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value}" if labels else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

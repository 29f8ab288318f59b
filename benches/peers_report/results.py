"""What was found, by name: medians over the rounds."""

from __future__ import annotations

import statistics
from typing import Any

from peers_report.plan import Case


class Results:
    """The figures of one run, as they are kept in a file."""

    def __init__(self, kept: dict[str, Any]) -> None:
        self.found: dict[str, list[dict[str, Any]]] = kept["found"]
        self.failed: dict[str, str] = kept["failed"]
        self.facts: dict[str, Any] = kept["facts"]

    def get(
        self,
        metric: str,
        measure: str,
        language: str,
        peer: str,
        size: int,
        workers: int = 4,
        extra: str = "",
    ) -> float | None:
        """Gives the median of one figure, if it was measured."""
        key = Case(measure, language, peer, size, workers, extra).key
        values = [one[metric] for one in self.found.get(key, []) if metric in one]
        return statistics.median(values) if values else None

    def curve(self, metric: str, *case: Any) -> list[float]:
        """Gives the median of each point of a curve."""
        rounds = [one[metric] for one in self.found.get(Case(*case).key, [])]
        return [statistics.median(points) for points in zip(*rounds, strict=True)]

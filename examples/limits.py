"""Limits: two queries at a time, however many are due, and nobody else waits for them."""

from __future__ import annotations

import threading

from duetime import Scheduler


class Database:
    """Counts how many query it at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.queries = self.most = 0

    def query(self, number: int) -> str:
        """Stand for work that the database does."""
        with self.lock:
            self.queries += 1
            self.most = max(self.most, self.queries)
        threading.Event().wait(0.01)
        with self.lock:
            self.queries -= 1
        return f"row {number}"


def main() -> None:
    """Run more queries than the database likes at once."""
    db = Database()
    with Scheduler(workers=8, limits={"db": 2}) as scheduler:
        queries = [scheduler.after(0, db.query, number, group="db") for number in range(20)]
        print(scheduler.after(0, lambda: "a task of no group starts at once").result())
        print(len({task.result() for task in queries}), "queries,", db.most, "at once")
        try:
            scheduler.after(0, db.query, 21, group="database")
        except ValueError as error:
            print("ValueError:", error)


if __name__ == "__main__":
    main()

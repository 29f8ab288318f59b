"""A scheduler is a concurrent.futures.Executor: submit, map, and asyncio's run_in_executor."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading

from duetime import Scheduler


def area(width: int, height: int) -> str:
    """Work that blocks, as far as the caller is concerned."""
    return f"{width} x {height} = {width * height}, on {threading.current_thread().name}"


async def from_asyncio(scheduler: Scheduler) -> None:
    """Keep blocking work off the event loop."""
    loop = asyncio.get_running_loop()
    results = await asyncio.gather(
        *(loop.run_in_executor(scheduler, area, width, 3) for width in range(3))
    )
    print(*results, sep="\n")


def main() -> None:
    """Use one pool for what is due now and for what is due later."""
    with Scheduler(workers=2, name="pool") as scheduler:
        future = scheduler.submit(area, 2, 5)
        print(future.result(timeout=10))

        print(*scheduler.map(area, [3, 4], [5, 6], timeout=10), sep="\n")

        futures = [scheduler.submit(pow, 2, exponent) for exponent in range(4)]
        done, _ = concurrent.futures.wait(futures, timeout=10)
        print(sorted(future.result() for future in done))

        asyncio.run(from_asyncio(scheduler))

        # The same workers run what is due later.
        print(scheduler.after(0.05, area, 6, 7).result(timeout=10))


if __name__ == "__main__":
    main()

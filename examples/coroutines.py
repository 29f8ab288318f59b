"""Coroutine jobs: many waits at once, on an event loop of the scheduler's or of yours.

python examples/coroutines.py
"""

import asyncio

from duetime import Scheduler, current_run, retry


async def ask(server: str) -> str:
    """Pretend to ask a server that answers at the second attempt."""
    await asyncio.sleep(0.01)
    run = current_run()
    if run is not None and run.attempt == 1:
        raise ConnectionError(server)
    return f"{server} is well"


async def watch() -> None:
    """Sleep for as long as it may: a stop is a cancellation."""
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        print("the watch was told to stop")
        raise


async def main() -> None:
    """Schedule on the loop that this runs on, and await tasks like anything else."""
    async with Scheduler(workers=1, loop=asyncio.get_running_loop()) as scheduler:
        again = retry.FixedDelay(max_retries=3, delay=0.01)
        tasks = [scheduler.after(0, ask, f"server {n}", retry=again) for n in range(3)]
        print(await asyncio.gather(*tasks))
        scheduler.after(0, watch)
        await scheduler.after(0.01, asyncio.sleep, 0)


if __name__ == "__main__":
    with Scheduler(workers=1) as scheduler:  # a loop in a thread of the scheduler's own
        tasks = [scheduler.after(0, asyncio.sleep, 0.1, n) for n in range(1000)]
        print(sum(task.result() for task in tasks))
    asyncio.run(main())

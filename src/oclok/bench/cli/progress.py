"""Progress of an experiment while it runs: a bar, or lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import TextColumn

from oclok.bench.experiments.runner import Progress

#: Seconds between two lines where there is no terminal to draw a bar on.
PAUSE = 10.0


@contextmanager
def progress_on(console: Console, name: str) -> Iterator[Callable[[Progress], None]]:
    """Show how far the experiment called `name` is: a bar on a terminal, else plain lines."""
    if not console.is_terminal:
        yield _lines(console, name)
        return
    running_column = TextColumn("{task.fields[running]}", style="dim")
    columns = (*Bar.get_default_columns(), running_column)
    with Bar(*columns, console=console, speed_estimate_period=60) as bar:
        task = bar.add_task(name, running="")

        def show(now: Progress) -> None:
            running = ", ".join(now.running)
            bar.update(task, completed=now.done, total=now.total, running=running)

        yield show


def _lines(console: Console, name: str) -> Callable[[Progress], None]:
    """Return a function that prints a line every `PAUSE` seconds, and the last one."""
    due = 0.0

    def show(now: Progress) -> None:
        nonlocal due
        if monotonic() >= due or now.done == now.total:
            due = monotonic() + PAUSE
            running = f", running {', '.join(now.running)}" if now.running else ""
            line = f"{name}: {now.done / now.total:.0%}{running}"
            console.print(line, soft_wrap=True, highlight=False, markup=False)

    return show

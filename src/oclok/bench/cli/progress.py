"""What a person sees of an experiment while it runs: a bar, or lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from oclok.bench.experiments.runner import Progress

#: Seconds between two lines where there is no terminal to draw a bar on.
PAUSE = 10.0


@contextmanager
def progress_on(console: Console, name: str) -> Iterator[Callable[[Progress], None]]:
    """Show how far the experiment called `name` is: a bar on a terminal, else plain lines."""
    if not console.is_terminal:
        yield _Lines(console, name)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[running]}", style="dim"),
    )
    with Bar(*columns, console=console, speed_estimate_period=60) as bar:
        task = bar.add_task(name, running="")

        def show(now: Progress) -> None:
            running = ", ".join(now.running)
            bar.update(task, completed=now.done, total=now.total, running=running)

        yield show


class _Lines:
    """Prints how far an experiment is, now and then, and when it is done."""

    def __init__(self, console: Console, name: str) -> None:
        self._console, self._name = console, name
        self._start: tuple[float, int] | None = None
        self._next = 0.0

    def __call__(self, now: Progress) -> None:
        clock = monotonic()
        if self._start is None:
            self._start = (clock, now.done)
        if clock < self._next and now.done < now.total:
            return
        self._next = clock + PAUSE
        line = f"{self._name}: {now.done / now.total:.0%}"
        if now.running:
            line += f"{self._time_left(now, clock)}, running {', '.join(now.running)}"
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)

    def _time_left(self, now: Progress, clock: float) -> str:
        assert self._start is not None
        start, done_before = self._start
        if now.done == done_before:
            return ""
        seconds = (clock - start) / (now.done - done_before) * (now.total - now.done)
        return f", about {seconds:.0f} s left"

"""A folder of photos becomes a folder of thumbnails, while some of the tasks crash, hang and leak on purpose.

The photos are painted first, by the same pool. At the end every input is accounted for: its thumbnail is
on disk and opens, or its error is known, and nothing else was harmed. Exits with 0 if that holds, else 1.
Which inputs fail is planned, never left to chance; an honest task has ten times the time it needs.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil
from PIL import Image, ImageDraw, ImageOps
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from millpond import MemoryExceeded, Pool, TaskTimeout, WorkerDied
from millpond.events import Event, WorkerStarted, WorkerStopped
from millpond.pool.statistics import PoolStatistics, WorkerRow

MB = 1_000_000
MAX_MEMORY = 100 * MB
TIMEOUT = 3.0
BOX = (256, 256)


# --- what the workers do ---------------------------------------------------------------------------------
def paint(photo: Path, number: int) -> None:
    """Make a photo up: three gradients and some bubbles, its size anywhere up to three megapixels."""
    dice = random.Random(number)
    size = dice.randrange(600, 2000), dice.randrange(600, 1500)
    gradient = Image.linear_gradient("L")
    image = Image.merge("RGB", [gradient.rotate(dice.randrange(0, 360, 90)).resize(size) for _ in "RGB"])
    draw = ImageDraw.Draw(image)
    for _ in range(40):
        x, y, r = dice.randrange(size[0]), dice.randrange(size[1]), dice.randrange(10, 160)
        colour = f"hsl({dice.randrange(360)}, 70%, {dice.randrange(40, 80)}%)"
        draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)
    image.save(photo, quality=90)


def resize(photo: Path, thumbnail: Path) -> None:
    """The honest work."""
    with Image.open(photo) as image:
        ImageOps.contain(image, BOX, Image.Resampling.LANCZOS).save(thumbnail)


def exit_hard(_photo: Path, _thumbnail: Path) -> None:
    """A library that takes the whole process down."""
    os._exit(3)


def segfault(_photo: Path, _thumbnail: Path) -> None:
    """A codec that reads where it should not."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # leave no core file on the machine of who tries this
    ctypes.string_at(0)


def oversleep(_photo: Path, _thumbnail: Path) -> None:
    """A server that never answers."""
    time.sleep(3600)


def backtrack(photo: Path, _thumbnail: Path) -> None:
    """A careless regular expression: C code that runs for years and never lets go of the GIL."""
    re.match(r"(\w+)+:", photo.stem.replace("-", "") * 8)


def swell(_photo: Path, _thumbnail: Path) -> None:
    """A small file that unpacks into more than the machine can hold."""
    _unpacked = b"\1" * 150 * MB
    time.sleep(3600)


LEAKED: list[bytes] = []


def leak(photo: Path, thumbnail: Path) -> None:
    """The honest work, by a library that forgets to free what it used."""
    resize(photo, thumbnail)
    while (memory := psutil.Process().memory_info()).rss - memory.shared < 0.9 * MAX_MEMORY:
        LEAKED.append(b"\1" * 4 * MB)


# --- what is to be done -----------------------------------------------------------------------------------
Work = Callable[[Path, Path], None]


@dataclass(frozen=True)
class Mishap:
    """Something that goes wrong, how often in a hundred inputs, and the error its caller must get."""

    work: Work
    percent: float
    error: type[Exception] | None


MISHAPS = (
    Mishap(exit_hard, 2, WorkerDied),
    Mishap(segfault, 2, WorkerDied),
    Mishap(oversleep, 1.5, TaskTimeout),
    Mishap(backtrack, 1.5, TaskTimeout),
    Mishap(swell, 1, MemoryExceeded),
    Mishap(leak, 4, None),  # the task succeeds, its worker is replaced
)


@dataclass(frozen=True)
class Input:
    """One photo, where its thumbnail goes, how it is made, and the error that must come of it, if any."""

    photo: Path
    thumbnail: Path
    work: Work
    error: type[Exception] | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of one input."""

    input: Input
    error: BaseException | None


def plan(folder: Path, count: int, *, calm: bool) -> list[Input]:
    """Decide which inputs misbehave: always the same ones, spread over all."""
    folders = folder / "photos", folder / "thumbnails"
    for each in folders:
        each.mkdir()
    mishaps = [m for m in MISHAPS for _ in range(max(1, round(count * m.percent / 100)))]
    chosen = random.Random(0).sample(range(count), 0 if calm else min(count, len(mishaps)))
    fated = dict(zip(chosen, mishaps, strict=False))
    inputs = []
    for number in range(count):
        mishap = fated.get(number, Mishap(resize, 0, None))
        name = f"photo-{number:03}.jpg"
        inputs.append(Input(folders[0] / name, folders[1] / name, mishap.work, mishap.error))
    return inputs


# --- the pool at work -------------------------------------------------------------------------------------
def run(inputs: Sequence[Input], workers: int, crew: Crew, view: View) -> tuple[list[Outcome], Pool]:
    """Paint the photos, then resize them. Leaving the `with` ends every worker."""
    with Pool(
        max_workers=workers,
        min_workers=1,
        timeout=TIMEOUT,
        max_memory=MAX_MEMORY,
        idle_timeout=0.5,
        preload=("PIL.Image", "PIL.ImageDraw", "PIL.ImageOps", "psutil"),
        name="thumbnails",
    ) as pool:
        pool.subscribe(crew)
        try:
            patient = pool.using(timeout=20)  # only resizing is in a hurry
            painting = {patient.submit(paint, each.photo, n): each for n, each in enumerate(inputs)}
            unpainted = [each for each in follow(pool, "paint", painting, view) if each.error]
            if unpainted:
                raise RuntimeError("a photo could not be painted") from unpainted[0].error
            resizing = {pool.submit(each.work, each.photo, each.thumbnail): each for each in inputs}
            outcomes = follow(pool, "resize", resizing, view)
            rest(pool, outcomes, view)
            return outcomes, pool
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True, timeout=0)
            raise


def follow(pool: Pool, stage: str, futures: Mapping[Future[None], Input], view: View) -> list[Outcome]:
    """Collect outcomes as they come, and show how it goes."""
    outcomes: list[Outcome] = []
    waiting = set(futures)
    view.begin(stage)
    while waiting:
        done, waiting = wait(waiting, timeout=0.1)
        outcomes += [Outcome(futures[future], future.exception()) for future in done]
        view.show(stage, outcomes, len(done), pool.statistics())
    return outcomes


def rest(pool: Pool, outcomes: Sequence[Outcome], view: View) -> None:
    """See the pool shrink when there is nothing left to do."""
    tired_of_it = time.monotonic() + 5
    while time.monotonic() < tired_of_it:
        time.sleep(0.1)
        now = pool.statistics()
        view.show("resize", outcomes, 0, now)
        if now.size <= 1:
            break


class Crew:
    """Hears from the pool which workers came and why they went. Called in the pool's own thread."""

    def __init__(self) -> None:
        self.started = 0
        self.gone: Counter[str] = Counter()
        self._processes: list[psutil.Process] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, WorkerStarted):
            self.started += 1
            with contextlib.suppress(psutil.NoSuchProcess):  # gone already
                self._processes.append(psutil.Process(event.pid))
        elif isinstance(event, WorkerStopped):
            outgrown = event.reason == "memory" and event.signal is not None
            self.gone["outgrown" if outgrown else event.reason] += 1

    def left(self) -> list[int]:
        """Processes that should be gone: workers, and whatever else this program has started."""
        processes = {*self._processes, *psutil.Process().children(recursive=True)}
        return [process.pid for process in processes if process.is_running()]


# --- what is shown meanwhile --------------------------------------------------------------------------------
STAGES = ("paint", "resize")
RECENT = 6  # failures that stay in sight


class View:
    """A live display on a terminal; elsewhere a line for each failure, and one every two seconds."""

    def __init__(self, console: Console, workers: int, inputs: int) -> None:
        self._console = console
        self._workers = workers
        self._inputs = inputs
        self._bars = Progress(
            TextColumn("{task.description:>7}", style="bold"),
            BarColumn(bar_width=44, complete_style="cyan", finished_style="green"),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._stages = {name: self._bars.add_task(name, start=False, total=inputs) for name in STAGES}
        self._recent: list[Text] = []
        self._line_due = 0.0
        lively = sys.stdout.isatty() and not console.is_dumb_terminal
        self._live = Live(console=console, auto_refresh=False, transient=True) if lively else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def begin(self, stage: str) -> None:
        """From now on this stage's clock runs."""
        self._bars.start_task(self._stages[stage])

    def show(self, stage: str, outcomes: Sequence[Outcome], news: int, now: PoolStatistics) -> None:
        """Show the pool as it is now; the last `news` outcomes have not been shown yet."""
        lines = [failure_line(each) for each in outcomes[len(outcomes) - news :] if each.error]
        counts = self._counts(outcomes, now)
        if self._live:
            self._recent = [*self._recent, *lines][-RECENT:]
            self._bars.update(self._stages[stage], completed=len(outcomes))
            self._live.update(self._screen(counts, now), refresh=True)
            return
        for line in lines:
            self._console.print(line)
        if time.monotonic() >= self._line_due or (news and len(outcomes) == self._inputs):
            self._line_due = time.monotonic() + 2
            self._console.print(f"{stage:>7} {len(outcomes)}/{self._inputs}, {now.size} workers: {counts}")

    def _screen(self, counts: Text, now: PoolStatistics) -> Group:
        """Always of the same height, so that nothing jumps."""
        recent = [*self._recent, *[Text()] * (RECENT - len(self._recent))]
        return Group(Text(), self._bars, Text(), self._table(now.workers), Text(), counts, Text(), *recent)

    def _table(self, rows: Sequence[WorkerRow]) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("worker", justify="right", width=8)
        table.add_column("state", width=8)
        table.add_column("task", width=12)
        for heading in ("running for", "memory", "tasks done"):
            table.add_column(heading, justify="right", width=11)
        for row in rows[: self._workers]:
            table.add_row(*worker_cells(row))
        for _ in range(self._workers - len(rows)):
            table.add_row()
        return table

    def _counts(self, outcomes: Sequence[Outcome], now: PoolStatistics) -> Text:
        counts = {
            "done": (sum(each.error is None for each in outcomes), "green"),
            "crashed": (now.crashed, "red"),
            "timed out": (now.timed_out, "yellow"),
            "recycled": (now.recycled, "magenta"),
            "waiting": (now.queued, "cyan"),
        }
        text = Text("  " if self._live else "")
        for name, (count, style) in counts.items():
            text.append(f"{name} ")
            text.append(f"{count:<5}" if self._live else f"{count} ", f"bold {style}" if count else "dim")
        return text


STATES = {"busy": "green", "idle": "dim", "starting": "cyan", "draining": "magenta", "dead": "red"}


def worker_cells(row: WorkerRow) -> Sequence[Text]:
    """One line of the table of workers; a task that will soon be out of time stands out."""
    late = row.running_for is not None and row.running_for > TIMEOUT / 2
    return (
        Text(str(row.pid or "")),
        Text(row.state, style=STATES[row.state]),
        Text((row.task or "").rpartition(".")[2], style="bold yellow" if late else ""),
        Text("" if row.running_for is None else f"{row.running_for:.2f} s", style="yellow" if late else ""),
        Text(f"{row.rss / MB:.0f} MB", style="magenta" if row.rss > MAX_MEMORY / 2 else ""),
        Text(str(row.tasks_done)),
    )


def failure_line(outcome: Outcome) -> Text:
    """One failed input in one line."""
    line = Text(f"  {outcome.input.photo.stem:<11}{outcome.input.work.__name__:<11}")
    return line.append(what_happened(outcome.error), style="red")


def what_happened(error: BaseException | None) -> str:
    """What the caller of a failed task is told, as short as it can be said."""
    match error:
        case MemoryExceeded():
            cause = f"over {MAX_MEMORY // MB} MB"
        case WorkerDied(signal=int(number)):
            cause = signal.Signals(number).name
        case WorkerDied():
            cause = f"exit code {error.exitcode}"
        case TaskTimeout():
            cause = f"after {error.timeout:g} s"
        case _:
            cause = str(error)
    return f"{type(error).__name__}: {cause}"


def last_seen(error: BaseException | None) -> str:
    """The innermost line of the stack that came with the error, if there was time to take one."""
    found = re.search(r'File "(.+)", line (\d+) in (.+)', getattr(error, "stack", ""))
    if found is None:
        return "-"
    path, line, function = Path(found[1]), found[2], found[3]
    file = path.parent.name if path.name == "__init__.py" else path.name
    return f"{file}:{line} {function}"


# --- the accounts -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Check:
    """One thing that must be true, and whether it is."""

    holds: bool
    sentence: str


def accounts_of_inputs(inputs: Sequence[Input], outcomes: Sequence[Outcome]) -> list[Check]:
    """What must hold for the inputs, whatever went wrong on the way."""
    once = Counter(outcome.input for outcome in outcomes) == Counter(inputs)
    done = [outcome.input for outcome in outcomes if outcome.error is None]
    failed = {outcome.input: type(outcome.error) for outcome in outcomes if outcome.error}
    guilty = {each: each.error for each in inputs if each.error}
    files = {path.name for path in inputs[0].thumbnail.parent.iterdir()}
    whole = sum(map(is_whole, done))
    return [
        Check(once, f"{len(inputs)} inputs and {len(outcomes)} outcomes, exactly one for each"),
        Check(whole == len(done), f"{whole} thumbnails opened and found whole, of {len(done)} reported done"),
        Check(files == {each.thumbnail.name for each in done}, f"{len(files)} files, none of a failed input"),
        Check(failed == guilty, f"{len(failed)} failures: the {len(guilty)} inputs that misbehave, no other"),
    ]


def accounts_of_workers(
    outcomes: Sequence[Outcome], workers: int, counted: PoolStatistics, crew: Crew
) -> list[Check]:
    """What must hold for the pool once it has ended."""
    kinds = Counter(type(outcome.error) for outcome in outcomes if outcome.error)
    crashes = kinds[WorkerDied] + kinds[MemoryExceeded]
    agrees = (counted.crashed, counted.timed_out, counted.queued) == (crashes, kinds[TaskTimeout], 0)
    leaks, recycled = sum(each.input.work is leak for each in outcomes), crew.gone["memory"]
    fresh = leaks - workers <= recycled <= leaks  # who leaks in its last task may also leave for want of work
    left = crew.left()
    return [
        Check(agrees, f"the pool counted the same: {counted.crashed} crashed, {counted.timed_out} timed out"),
        Check(fresh, f"leaking tasks done: {leaks}, workers recycled for it: {recycled}"),
        Check(not left, f"{crew.started} workers came and went, {len(left)} processes left"),
    ]


def is_whole(each: Input) -> bool:
    """Open the thumbnail, read all of it, compare its shape with the photo's."""
    try:
        with Image.open(each.photo) as photo, Image.open(each.thumbnail) as thumbnail:
            thumbnail.load()
            return thumbnail.size == ImageOps.contain(Image.new("1", photo.size), BOX).size
    except OSError:
        return False


def summarize(console: Console, outcomes: Sequence[Outcome], crew: Crew, checks: Sequence[Check]) -> None:
    """Say what failed and why, who was replaced, and whether the accounts hold."""
    failed = sorted((each for each in outcomes if each.error), key=lambda each: each.input.photo)
    if failed:
        console.print("", failure_table(failed), sep="\n")
    gone = crew.gone
    console.print(
        f"\nWorkers replaced: {gone['died']} crashed, {gone['timeout']} hung, "
        f"{gone['outgrown']} too large, {gone['memory']} recycled after a leak.\n"
    )
    for check in checks:
        mark = Text("  ok    ", style="green") if check.holds else Text("  WRONG ", style="bold red")
        console.print(mark + Text(check.sentence))


def failure_table(failed: Sequence[Outcome]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("failed", "task", "what its caller got", "last seen in"):
        table.add_column(heading, no_wrap=True)
    for each in failed:
        error = each.error
        name = Text(each.input.work.__name__)
        table.add_row(
            Text(each.input.photo.stem), name, Text(what_happened(error), style="red"), last_seen(error)
        )
    return table


# --- the program ----------------------------------------------------------------------------------------
def main() -> int:
    """Run the demonstration and return the exit code."""
    options = read_arguments()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    began, crew = time.monotonic(), Crew()
    with output_folder(options.keep) as folder:
        inputs = plan(folder, options.images, calm=options.calm)
        console.print(opening(inputs, options))
        try:
            with View(console, options.workers, len(inputs)) as view:
                outcomes, pool = run(inputs, options.workers, crew, view)
        except KeyboardInterrupt:
            console.print("Interrupted; no worker is left.")
            return 130
        checks = accounts_of_inputs(inputs, outcomes)
        checks += accounts_of_workers(outcomes, options.workers, pool.statistics(), crew)
        summarize(console, outcomes, crew, checks)
    sound = all(check.holds for check in checks)
    verdict = "Every input is accounted for; nothing else was lost." if sound else "The accounts do not hold."
    console.print(
        f"\n{verdict} ({time.monotonic() - began:.1f} s)", style="bold green" if sound else "bold red"
    )
    return 0 if sound else 1


def opening(inputs: Sequence[Input], options: argparse.Namespace) -> str:
    """What is about to be seen."""
    often = Counter(each.work for each in inputs)
    trouble = (
        ", ".join(f"{often[m.work]} {m.work.__name__}" for m in MISHAPS if often[m.work]) or "no trouble"
    )
    return (
        f"[bold]{len(inputs)} photos become thumbnails[/] on 1 to {options.workers} workers, "
        f"each with {TIMEOUT:g} s a task and {MAX_MEMORY // MB} MB.\n[dim]On purpose: {trouble}[/]"
    )


@contextlib.contextmanager
def output_folder(keep: Path | None) -> Iterator[Path]:
    """The folder that was asked for, or a temporary one that vanishes."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="millpond-thumbnails-") as folder:
        yield Path(folder)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Thumbnails from a pool whose tasks crash, hang and leak.")
    parser.add_argument(
        "--images", type=int, default=200, metavar="N", help="how many (default: %(default)s)"
    )
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="at most (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave photos and thumbnails there")
    parser.add_argument("--calm", action="store_true", help="without trouble on purpose")
    options = parser.parse_args()
    if options.images < 1 or options.workers < 1:
        parser.error("--images and --workers start at 1")
    if options.keep and options.keep.exists() and (not options.keep.is_dir() or any(options.keep.iterdir())):
        parser.error(f"--keep needs a new or an empty folder; {options.keep} is neither")
    return options


if __name__ == "__main__":
    sys.exit(main())

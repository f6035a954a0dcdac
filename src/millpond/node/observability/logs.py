"""Structured logs: one line for each event and each record, as JSON or as text.

Lines are written by a thread of their own, so that a terminal or pipe nobody reads never holds up the node;
what does not fit is counted. Payloads are in no event, secrets are hidden, and no text can forge a line.
The root logger is left alone: that belongs to the program.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from queue import SimpleQueue
from time import monotonic
from typing import Any, Literal, TextIO

from millpond.errors import OptionError
from millpond.node.observability.events import NodeEvent, NodeEvents
from millpond.node.observability.wording import kinds_from, level_of, sentence_of
from millpond.shown_text import LONGEST, shown
from millpond.task_context import current_job

LogFormat = Literal["json", "text"]
SAID = 40  # characters from which on a fact that the sentence has already is left out of a line for people
MOST_LINES = 10_000  # that wait to be written
AT_LENGTH = 100_000  # characters a second that are kept of texts from outside; beyond them little is kept
BRIEF = 200  # characters of one such text then
FIELDS = "millpond_fields"  # the attribute of a record that carries an event's facts


# --- events become records ---------------------------------------------------------------------------------
def log_events(events: NodeEvents, node: str, logger: logging.Logger | None = None) -> Callable[[], None]:
    """Log the events of a node that pass the logger's level; returns what ends it.

    Jobs that complete are at level DEBUG: unless it is on, they cost nothing.
    """
    target = logger or logging.getLogger("millpond.node")

    def write(event: NodeEvent) -> None:
        facts = {"event": type(event).__name__, "node": node, **event._asdict()}
        if "message" in facts:  # that of the exception; the line has its own
            facts["error_message"] = facts.pop("message")
        target.log(level_of(event), "%s", sentence_of(event), extra={FIELDS: facts})

    return events.subscribe(write, kinds_from(target.getEffectiveLevel()))


class JobFields(logging.Filter):
    """Gives a record made inside a job the job's id, task and attempt. Add it to a handler in a worker."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Never refuses a record."""
        try:
            job = current_job()
        except LookupError:
            return True
        known = getattr(record, FIELDS, {})
        setattr(record, FIELDS, {"job": job.id, "task": job.task, "attempt": job.attempt, **known})
        return True


# --- records become lines ----------------------------------------------------------------------------------
class _OneLine(logging.Formatter):
    """What both formats share: everything that came from outside is made fit to be shown.

    Looking for secrets takes time for each character, in the process that hands out the jobs. A storm of jobs
    that fail with long messages must not slow other pools down: so much text a second is shown at length, of
    the rest only the beginning (`test_a_storm_of_long_messages_is_cut_short`).
    """

    _second = 0
    _left = AT_LENGTH

    def fit(self, text: str, keep: Literal["start", "end"] = "start") -> str:
        """A text from outside as a line may show it."""
        second = int(monotonic())
        if second != self._second:
            self._second, self._left = second, AT_LENGTH
        most = LONGEST if self._left > 0 else BRIEF
        self._left -= min(len(text), most)
        return shown(text, keep, most)

    def facts(self, record: logging.LogRecord) -> dict[str, Any]:
        """The fields of a record beside its time, level and message."""
        facts = {name: self._plain(value) for name, value in getattr(record, FIELDS, {}).items()}
        if record.exc_info:
            facts["traceback"] = self.fit(self.formatException(record.exc_info), keep="end")
        if record.stack_info:
            facts["stack"] = self.fit(self.formatStack(record.stack_info), keep="end")
        return {name: value for name, value in facts.items() if value is not None}

    def _plain(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return round(value, 6)
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value[:100]]
        return self.fit(str(value))


class JsonFormatter(_OneLine):
    """One JSON object for each line, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        head = {
            "at": _time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.fit(record.getMessage()),
        }
        return json.dumps(
            {**head, **self.facts(record), **head}
        )  # in this order, and no fact covers the head


class TextFormatter(_OneLine):
    """One line for people: time, level, message, then name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        message = self.fit(record.getMessage())
        facts = (
            (name, _instant(name, value))
            for name, value in self.facts(record).items()
            if not (isinstance(value, str) and len(value) > SAID and value in message)
        )
        head = f"{_time(record.created)} {record.levelname:<7} {message}"
        return " ".join((head, *(f"{name}={_quoted(value)}" for name, value in facts)))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _instant(name: str, value: Any) -> Any:
    """An instant as people read it: the stores count microseconds."""
    return _time(value / 1e6) if name.endswith("_at") and type(value) is int and value > 0 else value


def _quoted(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if text and not set(text) & set(' "=') else json.dumps(text, ensure_ascii=False)


FORMATS: Mapping[str, type[_OneLine]] = {"json": JsonFormatter, "text": TextFormatter}


# --- lines are written -------------------------------------------------------------------------------------
class BackgroundHandler(logging.Handler):
    """Writes lines to a stream in a thread of its own. Never blocks the one who logs."""

    def __init__(self, stream: TextIO, most: int = MOST_LINES) -> None:
        super().__init__()
        self.dropped = 0  # lines lost because the stream took them too slowly
        self._stream = stream
        self._most = most
        self._lines: SimpleQueue[str | None] = SimpleQueue()  # its put() is safe in a signal handler
        self._thread = threading.Thread(target=self._write, name="millpond-logs", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Hand over one record."""
        if self._lines.qsize() >= self._most:
            self.dropped += 1
            return
        try:
            self._lines.put(self.format(record))
        except Exception:  # a record that cannot be formatted is the fault of whoever made it
            self.handleError(record)

    def close(self, timeout: float = 1.0) -> None:
        """Write what is waiting, for so long, and end."""
        self._lines.put(None)
        self._thread.join(timeout)  # where nobody reads the stream, the thread ends with the process
        super().close()

    def _write(self) -> None:
        told = 0
        while (line := self._lines.get()) is not None:
            lost = self.dropped - told
            told += lost
            try:
                self._stream.write((self._gap(lost) if lost else "") + line + "\n")
                self._stream.flush()
            except (OSError, ValueError):  # closed, or its disk is full: the node goes on without a log
                self.dropped += 1

    def _gap(self, lost: int) -> str:
        record = logging.makeLogRecord(
            {"name": "millpond.node", "levelno": logging.WARNING, "levelname": "WARNING"}
        )
        record.msg = f"{lost} lines of the log were lost: the stream took them too slowly"
        return self.format(record) + "\n"


def set_up(
    log_format: str = "text", level: int | str = logging.INFO, stream: TextIO | None = None
) -> BackgroundHandler:
    """Send what the `millpond` loggers say to a stream (stderr), in one of the formats. For programs only."""
    if log_format not in FORMATS:
        raise OptionError(f"the log format must be one of {', '.join(FORMATS)}, not {log_format!r:.80}")
    handler = BackgroundHandler(stream or sys.stderr)
    handler.setFormatter(FORMATS[log_format]())
    handler.addFilter(JobFields())
    logger = logging.getLogger("millpond")
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
    return handler


def take_down(handler: BackgroundHandler, timeout: float = 1.0) -> None:
    """Undo `set_up`, after the waiting lines are written."""
    logger = logging.getLogger("millpond")
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    logger.propagate = True
    handler.close(timeout)


@contextmanager
def on_stderr(log_format: str, level: str) -> Iterator[None]:
    """Log lines on stderr for a while, as a command of its own wants them."""
    handler = set_up(log_format, level.upper())
    try:
        yield
    finally:
        take_down(handler)

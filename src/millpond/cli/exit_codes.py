"""From an error to one line on stderr and an exit code.

The line says what happened and what to do next. It never shows a password or a control character.
"""

from __future__ import annotations

import os
import sys
import traceback

import click

from millpond.config import hide_password
from millpond.errors import (
    ArgumentsRefused,
    MillpondError,
    OptionError,
    OutcomeUnknown,
    PayloadRefused,
    StoreBusy,
    StoreUnavailable,
    UnknownTask,
)

# As shells and sysexits(3) have them: 69 is EX_UNAVAILABLE, 75 EX_TEMPFAIL, 130 is 128 + SIGINT.
FAILED, USAGE, WRONG_SETTINGS, UNREACHABLE, TEMPORARY, INTERRUPTED = 1, 2, 3, 69, 75, 130


class Refusal(click.ClickException):
    """The command cannot do what was asked; the message says why and what to do."""

    exit_code = FAILED


class WrongSettings(click.ClickException):
    """A file or a variable says something that cannot be."""

    exit_code = WRONG_SETTINGS


def report(error: BaseException, *, debug: bool) -> int:
    """Say what went wrong; returns the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if isinstance(error, BrokenPipeError):  # the reader has seen enough, as in `millpond jobs | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if debug:
        from millpond.cli.output import safe

        text = "".join(traceback.format_exception(error))
        click.echo(safe(hide_password(text), lines=True), err=True, nl=False)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        click.echo("millpond: stopped", err=True)
        return INTERRUPTED
    click.echo(f"millpond: error: {one_line(_sentence(error))}", err=True)
    return _code(error)


def _code(error: BaseException) -> int:
    if isinstance(error, click.ClickException):
        return error.exit_code
    if isinstance(error, OptionError | UnknownTask | ArgumentsRefused | PayloadRefused):
        return USAGE
    if isinstance(error, StoreUnavailable):
        return UNREACHABLE
    if isinstance(error, StoreBusy | OutcomeUnknown):
        return TEMPORARY
    return FAILED


def _sentence(error: BaseException) -> str:
    if isinstance(error, click.NoSuchOption) and error.option_name[1:2].isdigit():
        return f"{error.option_name} is taken for an option: put -- before numbers below zero"
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "millpond"
        return f"{error.format_message()}{_end(error.format_message())} See `{path} --help`."
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, StoreBusy):
        return f"{error}; try again"
    if isinstance(error, StoreUnavailable):
        return f"{error}; check that it runs and that the URL is right"
    if isinstance(error, MillpondError):
        return str(error)
    return f"{type(error).__name__}: {error} (unexpected; --debug shows where)"


def _end(text: str) -> str:
    return "" if text.rstrip()[-1:] in {".", "?", "!"} else "."


def one_line(text: str) -> str:
    """Text that is safe to print on one line, whoever wrote it."""
    from millpond.cli.output import safe

    return safe(hide_password(" ".join(text.split())))

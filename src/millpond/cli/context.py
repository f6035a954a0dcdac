"""What one run of the command works with: settings, app, store, and how to answer.

The store is `--store` if that was given; else the app's own, since code wins over settings; else `store` of
the settings. The app is imported only when somebody needs it. Never looks inside a store.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millpond.cli.exit_codes import Refusal, WrongSettings
from millpond.config import Config, hide_password, load
from millpond.errors import OptionError
from millpond.redaction import also_hide

if TYPE_CHECKING:
    from rich.console import RenderableType

    from millpond.app import App
    from millpond.store.protocol import Store

NO_APP = "no app is named: give --app module:attribute, set MILLPOND_APP, or write app in [tool.millpond]"
NO_STORE = (
    "no store is named: give --store sqlite:///jobs.db, set MILLPOND_STORE, or write store in "
    "[tool.millpond]; an app that has one will do too (--app module:attribute)"
)


class Session:
    """One run of the command."""

    def __init__(self, app: str | None = None, store: str | None = None, *, as_json: bool = False) -> None:
        self.flags: dict[str, Any] = {"app": app, "store": store}
        self.as_json = as_json
        self.may_create = False  # a file for a store that is not there yet
        self._opened: list[App] = []

    @cached_property
    def config(self) -> Config:
        """Every setting."""
        try:
            load()  # what is wrong without the flags is wrong in a file or a variable
        except OptionError as error:
            raise WrongSettings(str(error)) from error
        config = load(self.flags)
        also_hide(config["redact"])
        return config

    @cached_property
    def app(self) -> App:
        """The app that was named, imported."""
        if self.config["app"] is None:
            raise click.UsageError(NO_APP)
        app = _import(self.config)
        self._opened.append(app)
        if self.flags["store"] is not None and app.store.url != _shown(self.flags["store"]):
            raise click.UsageError(
                f"--store {hide_password(self.flags['store'])} is not the store of {self.config['app']}, "
                f"which is {app.store.url}: what the app says counts, so leave --store out or change the app"
            )
        return app

    def check_store(self) -> None:
        """Raise UsageError if the code names one store and a variable or file another: a program that was
        meant to work on one of them would work on the other. A flag is compared where the app is imported."""
        setting = self.config.settings["store"]
        if setting.value is None or self.flags["store"] is not None or self.config["app"] is None:
            return
        said, found = _shown(setting.value), self.app.store.url
        if _place(said) != _place(found):
            raise click.UsageError(
                f"{setting.source} names {said} and the code of {self.config['app']} names {found}: drop one "
                f"of them. Write App() without a URL for {setting.source} to count, or take "
                f"{setting.source if setting.folder is None else 'store out of ' + setting.source} away"
            )

    @cached_property
    def jobs(self) -> App:
        """An app to reach jobs through; it knows tasks only if it had to be imported to find the store."""
        if self.flags["store"] is None and self.config["app"] is not None:
            return self.app
        if self.config["store"] is None:
            raise click.UsageError(NO_STORE)
        from millpond.app import App

        app = App(self.config["store"])
        self._opened.append(app)
        if not self.may_create:
            _check_there(app.store, self.config.source("store"))
        return app

    @property
    def store(self) -> Store:
        """The store to work on."""
        return self.jobs.store

    def answer(self, document: Any, render: Callable[[], Sequence[RenderableType]]) -> None:
        """Print a document for programs, or what `render` makes of it for people."""
        from millpond.cli import output

        if self.as_json:
            output.print_document(document)
        else:
            output.print_for_people(*render())

    def note(self, text: str) -> None:
        """Tell people something beside the answer."""
        from millpond.cli.exit_codes import one_line

        click.echo(f"millpond: note: {one_line(text)}", err=True)

    def audit(self, action: str, target: str = "", **facts: Any) -> None:
        """Put down who changed what, where the HTTP API puts it, too."""
        from millpond.node import audit

        audit.write(self.store, "cli", action, target, **facts)

    def close(self) -> None:
        """Let go of the stores."""
        for app in self._opened:
            app.store.close()


def _import(config: Config) -> App:
    """Import the app as Python would from here; what it prints meanwhile goes to stderr."""
    from millpond.app import App

    setting = config.settings["app"]
    module, _, attribute = setting.value.partition(":")
    folder = str(setting.folder) if setting.folder else ""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found: Any = importlib.import_module(module)
            for name in attribute.split("."):
                found = getattr(found, name)
    except (Exception, SystemExit) as error:  # a module may do anything while it is imported
        raise Refusal(
            f"cannot import the app {setting.value} (from {setting.source}): {type(error).__name__}: "
            f"{error}; run `python -c 'import {module}'` in the same folder to see why"
        ) from error
    if not isinstance(found, App):
        raise Refusal(
            f"{setting.value} (from {setting.source}) is of type {type(found).__name__}, not an App: "
            "name the attribute that holds millpond.App(...)"
        )
    return found


def _check_there(store: Store, source: str) -> None:
    """Raise Refusal if nothing can be in the store: looking at a file makes it, and a typing error would be
    answered by an empty store."""
    path = getattr(store, "path", None)
    if store.url == "memory://":
        raise Refusal(
            f"the store is memory:// (from {source}), which only its own process can see: name one that lasts"
        )
    if path is not None and Path(path).parent.is_dir() and not Path(path).exists():
        raise Refusal(
            f"there is no file {path} (from {source}): check its name; the first job or `millpond migrate` "
            "makes it"
        )


def _shown(url: str) -> str:
    from millpond.store.open import open_store

    return open_store(url).url


def _place(url: str) -> str:
    """A store's URL in one spelling: two ways to write the path of a file are one file."""
    path = url.removeprefix("sqlite:///")
    return url if path == url else os.path.realpath(path)


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Take an option that was given after the command's name."""
    session = context.find_object(Session)
    if session is None or not value:
        return
    if parameter.name == "as_json":
        session.as_json = True
    elif parameter.name in session.flags:
        session.flags[parameter.name] = value


def shared(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that every command takes."""
    for option in (
        click.option("--debug", is_flag=True, hidden=True, expose_value=False),
        click.option("--store", hidden=True, expose_value=False, callback=_remember),
        click.option("--app", hidden=True, expose_value=False, callback=_remember),
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            expose_value=False,
            callback=_remember,
            help="Print one JSON document.",
        ),
    ):
        function = option(function)
    return function

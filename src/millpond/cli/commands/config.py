"""`millpond config`: each setting, its value, and where it came from."""

from __future__ import annotations

import click

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import Refusal
from millpond.cli.output import span, table, words
from millpond.config import Config, variable


@click.command("config")
@shared
@click.pass_obj
def command(session: Session) -> None:
    """Show every setting and where it came from."""
    config = _in_force(session)
    settings = {
        key: {"value": setting.shown, "source": setting.source, "variable": variable(key)}
        for key, setting in config.settings.items()
    }
    file = None if config.file is None else str(config.file)
    rows = [
        (key, said["variable"], said["source"], _for_people(said["value"])) for key, said in settings.items()
    ]
    session.answer(
        {"file": file, "settings": settings},
        lambda: [
            table(("setting", "variable", "from", "value"), rows, most=None),
            words(f"file: {file or 'none'}"),
        ],
    )


def _for_people(value: object) -> str:
    if isinstance(value, float):
        return span(value)
    if isinstance(value, tuple):
        value = ", ".join(value) or None
    return "(none)" if value is None else str(value)


def _in_force(session: Session) -> Config:
    """The settings, covered by what the app's code says, if it can be imported."""
    config = session.config
    if config["app"] is None:
        return config
    try:
        url = session.app.store.url
    except (Refusal, click.UsageError) as error:
        session.note(error.format_message())
        return config
    return config.covered({"store": url}, lambda _: f"the code of {config['app']}")

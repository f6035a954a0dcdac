"""The reference names what exists: every command, option, exit code, setting and variable."""

from __future__ import annotations

from collections.abc import Iterator

import click

from millpond.cli import COMMANDS, main
from millpond.config import KEYS, variable
from tests.docs.pages import ROOT, code, rows, section

PAGE = ROOT / "docs" / "reference" / "cli.md"
EVERYWHERE = {"--app", "--store", "--json", "--debug", "--help"}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its whole name."""
    context = click.Context(main)
    for name in COMMANDS:
        found = main.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from ((f"{name} {inner}", command) for inner, command in found.commands.items())
        else:
            yield name, found


def options(command: click.Command) -> set[str]:
    return {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
        if name.startswith("--")
    } - EVERYWHERE


def test_every_command_has_its_row_with_its_options():
    documented = {
        code(row[0])[0].split(" [")[0]: set(code(row[1])) for row in rows(section(PAGE, "## Commands"))
    }
    real = {name: options(command) for name, command in commands()}
    assert {
        " ".join(w for w in name.split() if w.islower()): said for name, said in documented.items()
    } == real


def test_every_setting_has_its_row():
    documented = {code(row[0])[0]: code(row[1])[0] for row in rows(section(PAGE, "## Settings"))}
    assert documented == {key: variable(key) for key in KEYS}


def test_the_options_of_every_command_are_named():
    named = {code(row[0])[0].split(" ")[0] for row in rows(section(PAGE, "## Options of every command"))}
    assert named == EVERYWHERE | {"--version"}


def test_every_exit_code_has_its_row():
    assert [code(row[0])[0] for row in rows(section(PAGE, "## Exit codes"))] == [
        "0", "1", "2", "3", "69", "75", "130", "131", "143",
    ]  # fmt: skip


def test_a_command_says_in_the_list_what_its_own_help_says():
    context = click.Context(main)
    for name, text in COMMANDS.items():
        found = main.get_command(context, name)
        assert found is not None
        assert (found.help or "").startswith(text.removesuffix("."))

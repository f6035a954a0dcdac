"""`millpond migrate`: the store's schema, created or brought up to date. Safe to run twice or at once."""

from __future__ import annotations

from typing import Any

import click

from millpond.cli.context import Session, shared
from millpond.cli.output import words
from millpond.rules.store.schema import Schema, Step


@click.command("migrate")
@click.option("--dry-run", is_flag=True, help="Say what would be done and what it locks; change nothing.")
@click.option("--sql", is_flag=True, help="Print the statements for review, or for psql; change nothing.")
@click.option("--from", "since", type=click.IntRange(1), help="With --sql: from this version of the schema.")
@click.option("--contract", is_flag=True, help="Take away what only older versions of Millpond need.")
@shared
@click.pass_obj
def command(session: Session, *, dry_run: bool, sql: bool, since: int | None, contract: bool) -> None:
    """Create or update the store's schema, while everything runs. Safe to run again."""
    if dry_run + sql + contract > 1:
        raise click.UsageError("--dry-run, --sql and --contract exclude each other: give one of them")
    if since is not None and not sql:
        raise click.UsageError("--from belongs to --sql: add --sql, or leave it out")
    session.check_store()
    session.may_create = True
    if sql:
        _print_statements(session, since)
    elif dry_run:
        _foresee(session)
    else:
        _change(session, contract=contract)


def _change(session: Session, *, contract: bool) -> None:
    url = session.store.url
    with session.store.upgrade() as upgrade:
        done = upgrade.contract() if contract else upgrade.migrate()
    nothing = f"{url} has nothing to contract" if contract else f"{url} is up to date"
    session.answer({"store": url, "done": done}, lambda: [words("\n".join(done) or nothing, lines=True)])


def _print_statements(session: Session, since: int | None) -> None:
    known = session.store.versions.known
    if since is not None and since > known:
        raise click.UsageError(f"--from {since} is newer than the schema that this Millpond knows: {known}")
    if since is None:
        with session.store.upgrade() as upgrade:
            found = upgrade.found()
        since = None if found is None else found.version
    text = session.store.script(since)
    if session.as_json:
        session.answer({"store": session.store.url, "from": since, "sql": text}, list)
    else:
        click.echo(text)  # as it is: a line that is broken for the terminal is another statement


def _foresee(session: Session) -> None:
    with session.store.upgrade() as upgrade:
        found, steps = upgrade.found(), upgrade.pending()
    known = session.store.versions.known
    document = {
        "store": session.store.url,
        "version": None if found is None else found.version,
        "known": known,
        "steps": [_document(step) for step in steps],
    }
    said = _in_words(session.store.url, found, steps, known)
    session.answer(document, lambda: [words("\n".join(said), lines=True)])


def _document(step: Step) -> dict[str, Any]:
    changes = [{"change": part.text, "note": part.note, "locks": part.locks} for part in step.changes]
    return {"from": step.before, "to": step.after, "stop": step.stops, "changes": changes}


def _in_words(url: str, found: Schema | None, steps: list[Step], known: int) -> list[str]:
    if found is None:
        return [f"{url} has no tables: version {known} would be created"]
    if not steps:
        return [f"{url} has version {found.version}: there is nothing to do"]
    said = []
    for step in steps:
        how = "stop nodes and whatever enqueues first" if step.stops else "while everything runs"
        said.append(f"{url}: {step.name}, {how}")
        for change in step.changes:
            text = " ".join(change.text.split())
            said.append(f"  {text if len(text) <= 160 else text[:159] + '…'}")
            said += [f"    {line}" for line in (change.note, f"locks: {change.locks}") if line]
    return said

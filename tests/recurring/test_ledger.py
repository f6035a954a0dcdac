"""How often what is remembered of tasks is written."""

from __future__ import annotations

from millpond.orchestrator.ledger import LONGEST, SHARDS, SHORTEST, Entry, Ledger, Recent


def filled(store, tasks: int, app: str = "app") -> Ledger:
    """A ledger with so many tasks, all of which wait to be written."""
    ledger = Ledger(store, app)
    recent = tuple(Recent(1_794_820_000_000_000 + number, "completed") for number in range(16))
    for number in range(tasks):
        ledger.put(f"task{number}", Entry(cursor=1_794_820_000_000_000, recent=recent))
    return ledger


def write(ledger: Ledger) -> None:
    for shard in range(SHARDS):
        ledger.flush(shard)


def test_a_few_tasks_are_written_soon(memory):
    assert filled(memory, 3).pause() == SHORTEST


def test_many_documents_take_turns(memory):
    ledger = filled(memory, 1000)
    assert len(ledger.dirty()) == SHARDS
    assert SHORTEST < ledger.pause() < LONGEST


def test_large_documents_are_written_less_often(memory):
    small, large = filled(memory, 10, "small"), filled(memory, 5000, "large")
    for ledger in (small, large):
        write(ledger)
        assert ledger.dirty() == []
    assert small.pause() == SHORTEST < large.pause() <= LONGEST

"""What a Redis or Valkey server says of itself, and whether it may keep jobs. `send` sends it one command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millpond.errors import OutcomeUnknown, StoreBusy, StoreError, StoreRefused, StoreUnavailable

Send = Callable[..., Any]


def info(send: Send, section: str) -> dict[str, str]:
    """A section of INFO; nothing where it is forbidden."""
    try:
        said = send("INFO", section)
    except StoreRefused:
        return {}
    lines = (line.partition(":") for line in said.decode(errors="replace").splitlines())
    return {name: value for name, colon, value in lines if colon}


def setting(send: Send, name: str) -> str | None:
    """A setting of the server; None where that is forbidden."""
    try:
        said = send("CONFIG", "GET", name)
    except StoreError as error:
        if isinstance(error, StoreBusy | StoreUnavailable | OutcomeUnknown):
            raise
        return None
    values = list(said.values()) if isinstance(said, dict) else said[1::2]
    return values[0].decode() if values else None


def refuse_eviction(url: str, memory: Mapping[str, str]) -> None:
    """Raise StoreRefused if a server with this section `memory` of INFO deletes keys when memory is short."""
    policy = memory.get("maxmemory_policy", "noeviction")
    if policy.startswith("allkeys") and memory.get("maxmemory", "0") != "0":
        raise StoreRefused(
            f"{url} has maxmemory-policy {policy} and would throw jobs away when memory is short: "
            "set `maxmemory-policy noeviction` (CONFIG SET and redis.conf)"
        )

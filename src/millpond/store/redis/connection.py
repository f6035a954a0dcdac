"""The connection to a Redis or Valkey server: sending scripts, and saying truthfully what came of them.

What fails before a script was sent has not happened; what fails afterwards may have. Nothing is ever sent
twice by itself, every wait for an answer is bounded, and a process never uses a connection of its parent.
"""

from __future__ import annotations

import importlib
import inspect
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakSet

from millpond.errors import OutcomeUnknown, StoreError, StoreRefused, StoreUnavailable
from millpond.rules.store.schema import Schema
from millpond.store.clock import ServerClock
from millpond.store.protocol import LOOK
from millpond.store.redis import schema as redis_schema
from millpond.store.redis.client import new_client
from millpond.store.redis.cluster import Nodes
from millpond.store.redis.encoding import pack
from millpond.store.redis.errors import (
    CODES,
    Moved,
    NoFlags,
    NoFunctions,
    NoRoom,
    Unknown,
    is_about_memory,
    is_out_of_place,
    translated,
)
from millpond.store.redis.scripts import Script, script
from millpond.store.redis.server_facts import info, refuse_eviction
from millpond.store.redis.url import Address
from millpond.store.versions import Versions

try:
    from hiredis import pack_command as _packed
except ImportError:  # an extra of the driver: all works without
    _pack: Callable[[Any], bytes] | None = None
else:
    _pack = _packed

TIMEOUT = 5.0  # seconds an answer, or a connection, is waited for at most
MOVES = 3  # how often a cluster may send us elsewhere

# Clients of the parent, kept for good: letting one go would wait for a lock that a thread of the parent held.
_inherited: list[Any] = []

Meanwhile = Callable[[], None]


class Manner(NamedTuple):
    """How a command is sent: whether it changes anything, and what to do until its answer is here."""

    writes: bool = False
    meanwhile: Meanwhile | None = None


READS, WRITES = Manner(), Manner(writes=True)


class Server:
    """A namespace on a server, or on the node of a cluster that has it."""

    def __init__(
        self,
        address: Address | None,
        client: Any = None,
        namespace: str = "millpond",
        *,
        patience: float | None = None,
    ) -> None:
        self.url = address.url if address else f"redis client {type(client).__name__}, namespace {namespace}"
        self.key = "{" + (address.namespace if address else namespace) + "}:schema"
        self.clock = ServerClock()
        self.versions = Versions(redis_schema.SCHEMA, self.url)
        self.patience = TIMEOUT if patience is None else min(TIMEOUT, patience)
        self._address = address
        self._given = client
        self._client: Any = client
        self._errors: Any = importlib.import_module(
            f"{type(client).__module__.split('.')[0]}.exceptions" if client else "redis.exceptions"
        )
        self._guard = threading.RLock()
        self._owner = os.getpid()
        self._checked = False
        self._has_functions = self._has_flags = True  # until the server says no
        self._only: Any = None  # the connections to a server that is no cluster
        self._nodes = Nodes(address.hosts if address else ())  # of a cluster
        self.hang_ups = 0  # idle connections that the server was found to have closed
        self._spare: deque[tuple[Any, Any]] = deque()  # at most about one connection, and the pool it is from
        _servers.add(self)

    # --- talking --------------------------------------------------------------------------------------
    def run(
        self, name: str, arguments: object, *, writes: bool = True, meanwhile: Meanwhile | None = None
    ) -> Any:
        """Run a script. `writes`: if its answer is lost, nobody knows whether it ran. `meanwhile` is called
        again and again until the answer is here."""
        self._ready()
        if self.clock.is_old():
            seconds, microseconds = self.send("TIME")
            self.clock.set(int(seconds) * 1_000_000 + int(microseconds))
        plain = WRITES if writes else READS
        return self._run(name, arguments, Manner(writes, meanwhile) if meanwhile else plain)

    def _run(self, name: str, arguments: object, manner: Manner) -> Any:
        clock, chosen = self.clock, script(name, self._has_flags)
        frozen = "" if clock.frozen is None else clock.frozen
        rest = (1, self.key, clock.shift, frozen, pack(arguments))
        if chosen.function and self._has_functions:
            try:
                return self._called(chosen, rest, manner)
            except NoRoom:
                pass
            except NoFunctions:
                self._has_functions = False
        try:
            return self.send("EVALSHA", chosen.digest, *rest, manner=manner)
        except Unknown:
            pass
        try:
            return self.send("EVAL", chosen.source, *rest, manner=manner)
        except NoFlags:
            self._has_flags = False
            return self.send("EVAL", script(name, has_flags=False).source, *rest, manner=manner)

    def _called(self, chosen: Script, rest: tuple[Any, ...], manner: Manner) -> Any:
        """Call a script as a function, which stays loaded; without the right to that, or on an old server,
        nothing has happened and a plain script does as well."""
        try:
            return self.send("FCALL", chosen.function, *rest, manner=manner)
        except Unknown:
            pass
        try:
            self._load(chosen)
            return self.send("FCALL", chosen.function, *rest, manner=manner)
        except Unknown as error:
            raise NoFunctions from error

    def _load(self, chosen: Script) -> None:
        """A server without memory loads no function, but still runs the same text as a script."""
        try:
            self.send("FUNCTION", "LOAD", "REPLACE", chosen.library)
        except StoreUnavailable as error:
            if error.__cause__ is not None and is_about_memory(error.__cause__):
                raise NoRoom from error
            raise

    def send(self, *command: Any, manner: Manner = READS) -> Any:
        """Send one command to the node that has our keys, and return its answer."""
        for _ in range(MOVES):
            try:
                return self._send(command, manner, asking=None)
            except Moved as moved:
                if self._only is not None:
                    raise StoreRefused(f"{self.url} is a cluster: add cluster=true to the URL") from moved
                if moved.asking is not None:
                    return self._send(command, manner, asking=moved.asking)
                self._nodes.is_stale = True
        raise StoreUnavailable(f"{self.url}: the cluster is being rearranged; nothing happened")

    def _send(self, command: tuple[Any, ...], manner: Manner, asking: Any) -> Any:
        pool = self._pool(asking)
        connection = self._borrowed(pool)
        try:
            try:
                if asking is not None:
                    connection.send_command("ASKING")
                    connection.read_response(disable_decoding=True)
                if _pack is None or self._given is not None:
                    connection.send_command(*command)
                else:  # the driver would look at each word, for types that we do not use
                    connection.send_packed_command((_pack(command),))
            except self.failures as error:
                raise self._away(error) from error
            return self._answer(connection, manner)
        except BaseException as error:
            if not isinstance(error, Unknown | NoFlags | NoFunctions | StoreError) or isinstance(
                error, OutcomeUnknown | StoreUnavailable
            ):
                connection.disconnect()
            raise
        finally:
            self._return(pool, connection)

    def _answer(self, connection: Any, manner: Manner) -> Any:
        try:
            if manner.meanwhile is not None:
                self._pass_the_time(connection, manner.meanwhile)
            return connection.read_response(disable_decoding=True)
        except self._errors.ResponseError as error:
            raise self._refusal(error) from error
        except self.failures as error:
            if type(error).__name__ in CODES:
                raise self._refusal(error) from error
            if not manner.writes:
                raise self._away(error) from error
            self._nodes.is_stale = True
            raise OutcomeUnknown(
                f"{self.url}: the answer was lost ({error}); it may have happened: ask again by id"
            ) from error

    def _refusal(self, error: Exception) -> Exception:
        if is_out_of_place(error):
            self._nodes.is_stale = True
        return translated(self.url, error)

    def _pass_the_time(self, connection: Any, meanwhile: Meanwhile) -> None:
        until = time.monotonic() + self.patience
        while not connection.can_read(LOOK):
            if time.monotonic() > until:
                raise self._errors.TimeoutError(f"no answer within {self.patience:g} s")
            meanwhile()

    def _away(self, error: Exception) -> StoreUnavailable:
        self._nodes.is_stale = True
        return StoreUnavailable(f"{self.url} cannot be reached: {error}; nothing happened")

    # --- connections ----------------------------------------------------------------------------------
    def _borrowed(self, pool: Any) -> Any:
        """A connection on which nothing waits: the last one used, without the pool's bookkeeping."""
        try:
            owner, connection = self._spare.pop()
        except IndexError:
            return self._connected(pool)
        try:
            if owner is pool and not connection.can_read():
                return connection
        except self.failures:
            pass
        self.hang_ups += owner is pool
        connection.disconnect()
        owner.release(connection)
        return self._connected(pool)

    def _return(self, pool: Any, connection: Any) -> None:
        if self._given is None and not self._spare:
            self._spare.append((pool, connection))
        else:
            pool.release(connection)

    def _connected(self, pool: Any) -> Any:
        kind: Any = type(pool)
        try:
            return pool.get_connection("EVALSHA") if _asks_for_name(kind) else pool.get_connection()
        except self.failures as error:
            if type(error).__name__ in CODES:
                raise translated(self.url, error) from error
            raise self._away(error) from error

    def _pool(self, asking: Any = None) -> Any:
        """The connections to the node that has our keys."""
        only = self._only  # another thread may just be closing
        if only is not None and asking is None and self._owner == os.getpid():
            return only
        with self._guard:
            client = self._open()
            try:
                if not hasattr(client, "get_node_from_key"):
                    self._only = client.connection_pool
                    return self._only
                if self._nodes.is_stale:
                    self._nodes.ask_all(client)
                if asking is not None:
                    node = client.get_node(host=asking.host, port=asking.port)
                else:
                    node = client.get_node_from_key(self.key)
                return client.get_redis_connection(node).connection_pool
            except self.failures as error:
                raise self._away(error) from error

    def _open(self) -> Any:
        if self._owner != os.getpid():
            _inherited.extend((self._client, self._spare))
            self._spare = deque()
            self._client, self._checked, self._only = self._given, False, None
            self._owner = os.getpid()  # last: whoever sees it asks no lock before using what is there
        if self._client is None:
            self._client, self._only = self._new_client(), None
        return self._client

    def _new_client(self) -> Any:
        assert self._address is not None
        return new_client(self._address, self._nodes, self.patience)

    def dedicated(self) -> Any:
        """A connection of one's own, for waiting."""
        self._ready()
        connection = self._pool().make_connection()
        try:
            connection.connect()
        except self.failures as error:
            raise self._away(error) from error
        return connection

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What the driver raises when the connection is broken."""
        return (self._errors.RedisError, self._errors.RedisClusterException, OSError)

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._guard:
            if self._given is None and self._client is not None and self._owner == os.getpid():
                self._client.close()  # with those that are lent, and the spare one is
            self._client, self._checked, self._only = self._given, False, None
            self._spare.clear()

    # --- what the server must be --------------------------------------------------------------------------
    def _ready(self) -> None:
        """Look once whether this server may be used, and whether the namespace is ours."""
        if self._checked and self._owner == os.getpid():
            return
        with self._guard:
            self._look()
            if not self._checked:
                self._prepare()
                self._checked = True

    def _look(self) -> None:
        """May this server be used?"""
        self._open()
        if not self._checked:
            self._follow_cluster()
            refuse_eviction(self.url, info(self.send, "memory"))

    def _follow_cluster(self) -> None:
        if self._address is None or self._address.cluster:
            return
        if info(self.send, "cluster").get("cluster_enabled") == "1":
            self._address.cluster = True
            # Should `_new_client` fail, the next call makes up for it
            before, self._client, self._only = self._client, None, None
            before.close()
            self._client = self._new_client()

    # --- versions ---------------------------------------------------------------------------------------
    @contextmanager
    def upgrade(self) -> Iterator[redis_schema.RedisUpgrade]:
        """The way to the version that this code knows. It may be killed anywhere, and repeated."""
        with self._guard:
            self._look()
            try:
                yield redis_schema.RedisUpgrade(self.url, lambda name, told: self._run(name, told, WRITES))
            finally:
                self._checked = False
                self.versions.forget()

    def _prepare(self) -> None:
        """Make the namespace if it is new, refuse it if it is of another version. An answer that is lost
        leaves nothing unknown: nothing of the call for which we look has been sent."""
        new = Schema(redis_schema.SCHEMA, redis_schema.COMPATIBLE_FROM)
        found, _ = self._run("open", (redis_schema.written(new),), READS)
        self.versions.check(redis_schema.read_version(found))

    def note_version(self, found: bytes | None) -> None:
        """The namespace was just seen to have this version."""
        schema = redis_schema.read_version(found)
        if schema is not None:
            self.versions.note(schema)

    def ask_now_and_then(self) -> None:
        """Before something new is stored: may this code still work on the namespace? Asked once a minute."""
        if self.versions.is_due():
            self.note_version(self.send("GET", self.key))
        self.versions.refuse()


@cache
def _asks_for_name(kind: Any) -> bool:
    """Must this sort of pool be told what the connection is for? Older drivers want it."""
    takes = inspect.signature(kind.get_connection).parameters.get("command_name")
    return takes is not None and takes.default is inspect.Parameter.empty


_servers: WeakSet[Server] = WeakSet()


def _after_fork() -> None:
    """A child begins anew: another thread of its parent may have held the lock."""
    for server in list(_servers):
        server._guard = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)

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
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakSet

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from millpond.errors import (
    OptionError,
    OutcomeUnknown,
    SchemaOutdated,
    StoreBusy,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from millpond.store.clock import ServerClock
from millpond.store.protocol import LOOK
from millpond.store.redis_address import Address
from millpond.store.redis_answers import CODES, Moved, NoFunctions, Unknown, translated
from millpond.store.redis_records import pack
from millpond.store.redis_scripts import Script, script

try:
    from hiredis import pack_command as _packed
except ImportError:  # an extra of the driver: all works without
    _pack: Callable[[Any], bytes] | None = None
else:
    _pack = _packed

SCHEMA = 1
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
        self._has_functions = True  # until the server says no
        self._only: Any = None  # the connections to a server that is no cluster
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
        clock, chosen = self.clock, script(name)
        frozen = "" if clock.frozen is None else clock.frozen
        rest = (1, self.key, clock.shift, frozen, pack(arguments))
        if chosen.function and self._has_functions:
            try:
                return self._called(chosen, rest, manner)
            except NoFunctions:
                self._has_functions = False
        try:
            return self.send("EVALSHA", chosen.digest, *rest, manner=manner)
        except Unknown:
            return self.send("EVAL", chosen.source, *rest, manner=manner)

    def _called(self, chosen: Script, rest: tuple[Any, ...], manner: Manner) -> Any:
        """Call a script as a function, which stays loaded; without the right to that, or on an old server,
        nothing has happened and a plain script does as well."""
        try:
            return self.send("FCALL", chosen.function, *rest, manner=manner)
        except Unknown:
            pass
        try:
            self.send("FUNCTION", "LOAD", "REPLACE", chosen.library)
            return self.send("FCALL", chosen.function, *rest, manner=manner)
        except Unknown as error:
            raise NoFunctions from error

    def send(self, *command: Any, manner: Manner = READS) -> Any:
        """Send one command to the node that has our keys, and return its answer."""
        for _ in range(MOVES):
            try:
                return self._send(command, manner, asking=None)
            except Moved as moved:
                if moved.asking is not None:
                    return self._send(command, manner, asking=moved.asking)
                self._rediscover()
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
            if not isinstance(error, Unknown | NoFunctions | StoreError) or isinstance(
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
            raise translated(self.url, error) from error
        except self.failures as error:
            if type(error).__name__ in CODES:
                raise translated(self.url, error) from error
            if not manner.writes:
                raise self._away(error) from error
            self._forget_nodes()
            raise OutcomeUnknown(
                f"{self.url}: the answer was lost ({error}); it may have happened: ask again by id"
            ) from error

    def _pass_the_time(self, connection: Any, meanwhile: Meanwhile) -> None:
        until = time.monotonic() + self.patience
        while not connection.can_read(LOOK):
            if time.monotonic() > until:
                raise self._errors.TimeoutError(f"no answer within {self.patience:g} s")
            meanwhile()

    def _away(self, error: Exception) -> StoreUnavailable:
        self._forget_nodes()
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
            self._client, self._only = self._connect(), None
        return self._client

    def _connect(self) -> Any:
        assert self._address is not None
        options: dict[str, Any] = {
            "socket_timeout": self.patience,
            "socket_connect_timeout": self.patience,
            "socket_keepalive": True,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }
        if self._address.driver_url.startswith("unix:"):
            del options["socket_keepalive"], options["socket_connect_timeout"]
        try:
            if self._address.cluster:
                return RedisCluster.from_url(self._address.driver_url, **options)
            return redis.Redis.from_url(self._address.driver_url, **options)
        except self.failures as error:
            raise StoreUnavailable(f"{self.url} cannot be reached: {error}; nothing happened") from error
        except (ValueError, TypeError) as error:
            raise OptionError(f"{self.url} is not a Redis URL: {error}") from error

    def _rediscover(self) -> None:
        """The cluster has been rearranged: ask it anew who has our keys."""
        with self._guard:
            try:
                self._open().nodes_manager.initialize()
            except self.failures as error:
                raise self._away(error) from error
            except AttributeError as error:
                raise StoreRefused(f"{self.url} is a cluster: add cluster=true to the URL") from error

    def _forget_nodes(self) -> None:
        """Trouble with a node of a cluster: the next call asks who is there."""
        with self._guard:
            if self._given is None and hasattr(self._client, "get_node_from_key"):
                self._client = None

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
    def _ready(self) -> bool:
        """Look once whether this server may be used, and whether the namespace is ours; True if it is new."""
        if self._checked and self._owner == os.getpid():
            return False
        with self._guard:
            self._open()
            if self._checked:
                return False
            self._follow_cluster()
            self._refuse_eviction()
            created = self._prepare()
            self._checked = True
            return created

    def _follow_cluster(self) -> None:
        if self._address is None or self._address.cluster:
            return
        if self.info("cluster").get("cluster_enabled") == "1":
            self._address.cluster = True
            before, self._client, self._only = self._client, None, None  # a failed `_connect` is made up for
            before.close()
            self._client = self._connect()

    def _refuse_eviction(self) -> None:
        memory = self.info("memory")
        policy = memory.get("maxmemory_policy", "noeviction")
        if policy.startswith("allkeys") and memory.get("maxmemory", "0") != "0":
            raise StoreRefused(
                f"{self.url} has maxmemory-policy {policy} and would throw jobs away when memory is short: "
                "set `maxmemory-policy noeviction` (CONFIG SET and redis.conf)"
            )

    def migrate(self) -> bool:
        """Make the namespace if it is new; True if it was."""
        with self._guard:
            self._checked = False
            return self._ready()

    def _prepare(self) -> bool:
        """Make the namespace if it is new (True), refuse it if another version has made it. An answer that is
        lost leaves nothing unknown: nothing of the call for which we look has been sent."""
        found, created = self._run("open", (str(SCHEMA),), READS)
        version = int(found) if found.isdigit() else -1
        if version != SCHEMA:
            newer = " with the newer Millpond that made it" if version > SCHEMA else ""
            raise SchemaOutdated(
                f"{self.url} has schema version {version}, this Millpond needs {SCHEMA}: "
                f"run `millpond migrate`{newer}"
            )
        return bool(created)

    def info(self, section: str) -> dict[str, str]:
        """A section of INFO; nothing where it is forbidden."""
        try:
            said = self.send("INFO", section)
        except StoreRefused:
            return {}
        lines = (line.partition(":") for line in said.decode(errors="replace").splitlines())
        return {name: value for name, colon, value in lines if colon}

    def setting(self, name: str) -> str | None:
        """A setting of the server; None where that is forbidden."""
        try:
            said = self.send("CONFIG", "GET", name)
        except StoreError as error:
            if isinstance(error, StoreBusy | StoreUnavailable | OutcomeUnknown):
                raise
            return None
        values = list(said.values()) if isinstance(said, dict) else said[1::2]
        return values[0].decode() if values else None


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

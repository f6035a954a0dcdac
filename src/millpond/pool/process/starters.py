"""Two ways to bring up a worker process, one interface: the template (default) and `mp_context`.

A starter starts, reports and cleans up. It decides nothing: when and how often to start is the engine's
question to `rules/`. Every method is called from the dispatcher thread only.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from multiprocessing import reduction
from multiprocessing.context import BaseContext
from typing import Any, NamedTuple, Protocol

from millpond.errors import OptionError
from millpond.pool.channel.remote_errors import text_of
from millpond.pool.options import FROZEN, is_frozen
from millpond.pool.proc import sight
from millpond.pool.worker import template
from millpond.pool.worker.main import Initializer
from millpond.pool.worker.template import Ends
from millpond.rules.pool.stall import STOPPED
from millpond.system.kernel import memfd_create, pidfd_open

# The working directory comes off the path before the first import: a ./socket.py there is not ours to run
BOOT = (
    "import sys; sys.path[:] = filter(None, sys.path); "
    "import marshal, socket; "
    "control = socket.socket(fileno=int(sys.argv[1])); "
    "told = open(int(sys.argv[3]), 'rb'); settings = marshal.load(told); told.close(); "
    "sys.path[:] = settings['path']; "
    "from millpond.pool.worker.template import run; "
    "run(control, int(sys.argv[2]), settings)"
)


class Started(NamedTuple):
    """A worker process exists; its pidfd is now ours."""

    identity: int
    pid: int
    pidfd: int


class Ended(NamedTuple):
    """A worker process is gone (or could not be made: pid 0), with its exit code, negative for a signal."""

    identity: int
    pid: int
    exitcode: int
    cause: str = ""


class Broken(NamedTuple):
    """Nothing can be started any more by this starter; all its workers are gone or going."""

    cause: str


class LeftOpen(NamedTuple):
    """Importing what was asked for has left connections or threads behind, which workers cannot share."""

    what: str


Report = Started | Ended | Broken | LeftOpen


class Starter(Protocol):
    """What the engine needs to bring up workers."""

    pid: int  # of the process that its workers die with

    def start(self, identity: int, ends: Ends, *, warm: bool) -> None:
        """Begin to start a worker; a report follows. `warm`: it will be sent functions by value."""

    def descriptors(self) -> list[int]:
        """What to wait on for reports."""

    def reports(self) -> list[Report]:
        """What has happened since the last call; never blocks."""

    def urge(self) -> None:
        """Let what starts workers go on, if it is stopped."""

    def abandon(self) -> None:
        """It has started nothing in time: have the next starter not depend on what hangs."""

    def close(self) -> None:
        """Let go of everything. All workers have ended."""


class TemplateProcess:
    """The template, and the socket on which it hears orders."""

    def __init__(
        self, preload: tuple[str, ...], *, fenced: bool, environment: Mapping[str, str] | None = None
    ) -> None:
        if is_frozen():
            raise OptionError(FROZEN)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = {
            "path": list(map(str, sys.path)),
            "argv": list(map(str, sys.argv)),
            "preload": list(preload),
            "fenced": fenced,
        }
        told = memfd_create("millpond-settings")  # a long command line does not fit into one message
        with theirs, open(told, "w+b") as file:
            marshal.dump(settings, file)
            file.flush()
            file.seek(0)
            flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
            self.process = subprocess.Popen(
                [sys.executable, *flags, "-c", BOOT, str(theirs.fileno()), str(os.getpid()), str(told)],
                pass_fds=[theirs.fileno(), told],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **environment} if environment else None,
                process_group=0,  # Ctrl-C in a terminal must not reach it
            )
        self.control.setblocking(False)
        self.is_up = False  # it has imported what it preloads, and may have forked workers

    def note(self, report: bytes) -> None:
        """Remember from a report of the template that it is up."""
        self.is_up = self.is_up or report[:1] == bytes([template.UP])

    def close(self) -> None:
        """End-of-file ends the template, which takes along what its workers left behind.

        A template that is not up may hang in a preload, and this runs with the engine's lock held: it is
        killed at once, since it has no workers. One that is stopped goes on, or the wait would be in vain.
        """
        if not self.is_up:
            with contextlib.suppress(OSError):
                self.note(self.control.recv(1))  # the first report is the one that tells
        self.control.close()
        if self.process.poll() is None:
            if self.is_up:
                os.kill(self.process.pid, signal.SIGCONT)
            else:
                template.kill_group(self.process.pid)
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Hub:
    """One template for several pools, which all preload the same; started when the first one needs it."""

    def __init__(self, preload: tuple[str, ...], environment: Mapping[str, str] | None = None) -> None:
        self._preload = preload
        self._environment = environment
        self._lock = threading.Lock()
        self._template: TemplateProcess | None = None

    def attach(self) -> tuple[socket.socket, int]:
        """A socket for one more pool's orders, and the process that hears them."""
        with self._lock:
            if self._template is not None and self._template.process.poll() is not None:
                self._template.close()
                self._template = None
            if self._template is None:
                self._template = TemplateProcess(self._preload, fenced=True, environment=self._environment)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                order = template.ORDER.pack(template.ATTACH, 0)
                socket.send_fds(self._template.control, [order], [theirs.fileno()])
            ours.setblocking(False)
            return ours, self._template.process.pid

    def said(self) -> list[bytes]:
        """What the template has said about itself since the last time."""
        found = []
        with self._lock:
            try:
                while self._template is not None and (data := self._template.control.recv(1 << 16)):
                    self._template.note(data)
                    found.append(data)
            except OSError:
                pass
        return found

    def abandon(self) -> None:
        """End a template that hangs in its imports, before which no pool can have a worker of it."""
        with self._lock:
            if self._template is not None and not self._template.is_up:
                self._template.close()
                self._template = None

    def close(self) -> None:
        """End the template; every pool is gone."""
        with self._lock:
            if self._template is not None:
                self._template.close()
                self._template = None


class TemplateStarter:
    """Workers forked from one clean process that is started once, for this pool or for several."""

    def __init__(self, preload: tuple[str, ...], *, fenced: bool = False, hub: Hub | None = None) -> None:
        self._hub = hub
        self._own: TemplateProcess | None = None
        if hub is None:
            self._own = TemplateProcess(preload, fenced=fenced)
            self._control, self.pid = self._own.control, self._own.process.pid
        else:
            self._control, self.pid = hub.attach()

    def start(self, identity: int, ends: Ends, *, warm: bool) -> None:
        """Send the order along with the worker's ends."""
        what = template.START_WARM if warm else template.START
        descriptors = [ends.sock.fileno(), ends.memory, ends.tickets, ends.bell]
        if ends.output is not None:
            descriptors.append(ends.output)
        socket.send_fds(self._control, [template.ORDER.pack(what, identity)], descriptors)

    def descriptors(self) -> list[int]:
        """The control socket."""
        return [self._control.fileno()]

    def reports(self) -> list[Report]:
        """Read what the template says."""
        found: list[Report] = [] if self._hub is None else self._about_itself(self._hub)
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 4)
            except BlockingIOError:
                return found
            except ConnectionResetError:
                continue  # says so once, before what it had still sent
            except OSError:
                data, descriptors = b"", []
            if not data:
                broken = [] if self._hub is None else self._about_itself(self._hub)
                found += broken or [Broken(f"the template process {self.pid} ended")]
                return found
            if self._own is not None:
                self._own.note(data)
            what, identity, pid, status = template.REPORT.unpack_from(data)
            if what == template.STARTED:
                found.append(_started(identity, pid, descriptors))
            elif what == template.EXITED:
                found.append(_ended(identity, pid, status))
            else:
                found += _about(data)

    def _about_itself(self, hub: Hub) -> list[Report]:
        return [report for data in hub.said() for report in _about(data)]

    def urge(self) -> None:
        """A template that was stopped by a signal goes on: to end it would end all its workers."""
        if sight(self.pid).state == STOPPED:
            with contextlib.suppress(OSError):  # another pool that shares it has reaped it meanwhile
                os.kill(self.pid, signal.SIGCONT)

    def abandon(self) -> None:
        """End the template, unless another pool may have workers of it."""
        if self._hub is not None:
            self._about_itself(self._hub)
            self._hub.abandon()
        elif self._own is not None:
            self._own.process.kill()

    def close(self) -> None:
        """No more orders: the workers that are left go, and the template with the last of its pools."""
        if self._own is None:
            self._control.close()
        else:
            self._own.close()


def _started(identity: int, pid: int, descriptors: list[int]) -> Started | Ended:
    """A worker whose pidfd was lost on the way, for want of a free descriptor, cannot be watched: it goes."""
    if not descriptors:
        template.kill_group(pid)
        cause = f"no descriptor was free to watch worker {pid} by: raise the limit of open files (ulimit -n)"
        return Ended(identity, 0, 1, cause)
    os.set_inheritable(descriptors[0], False)
    return Started(identity, pid, descriptors[0])


def _ended(identity: int, pid: int, status: int) -> Ended:
    """A worker is gone; without a pid it could not be forked, and the status is the negative errno."""
    if pid:
        return Ended(identity, pid, os.waitstatus_to_exitcode(status))
    name = errno.errorcode.get(-status, str(-status))
    hint = ": too many processes for this user (ulimit -u) or this container" if name == "EAGAIN" else ""
    return Ended(identity, 0, 1, f"no process could be forked: {os.strerror(-status)} ({name}){hint}")


def _about(data: bytes) -> list[Report]:
    """What a template says about itself."""
    text = data[template.REPORT.size :].decode("utf-8", "replace")
    if data[0] == template.BROKEN:
        return [Broken(f"preload failed in the template process\n{text}")]
    return [LeftOpen(text)] if data[0] == template.UP and text else []


CLOSE = 2.0  # seconds that workers have to end when their starter is closed
REAP = 0.01  # ... and each of those that had to be killed after that


class ContextStarter:
    """Workers started by `multiprocessing`, with the standard library's rules."""

    def __init__(self, context: BaseContext, initializer: Initializer | None) -> None:
        self.pid = os.getpid()
        self._context = context
        self._initializer = initializer  # through multiprocessing: it may hold locks, queues and the like
        self._processes: dict[int, Any] = {}
        self._news: list[Report] = []

    def start(self, identity: int, ends: Ends, *, warm: bool) -> None:
        """Start the process now; it is up when this returns."""
        method = self._context.get_start_method()
        parent = None if method == "forkserver" else os.getpid()
        process = self._context.Process(  # type: ignore[attr-defined]
            target=_begin, args=(_Parcel(ends), parent, self._initializer), name=f"millpond-worker-{identity}"
        )
        try:
            process.start()
            started = Started(identity, process.pid, pidfd_open(process.pid))
        except Exception as error:
            self._news.append(Ended(identity, 0, 1, text_of(error)))
            return
        self._processes[identity] = process
        self._news.append(started)

    def descriptors(self) -> list[int]:
        """Nothing: the engine watches the pidfds and asks."""
        return []

    def reports(self) -> list[Report]:
        """What was started and what has ended."""
        news, self._news = self._news, []
        for identity, process in list(self._processes.items()):
            code = process.exitcode
            if code is not None:
                process.join()
                del self._processes[identity]
                template.kill_group(process.pid)
                process.close()
                news.append(Ended(identity, 1, code))
        return news

    def urge(self) -> None:
        """Nothing: this process starts them."""

    def abandon(self) -> None:
        """Nothing: each is started by itself."""

    def close(self) -> None:
        """Reap whatever is left; a process that the kernel cannot end is left to the kernel."""
        until = time.monotonic() + CLOSE
        for process in self._processes.values():
            process.join(max(0.0, until - time.monotonic()))
            if process.exitcode is None:
                os.kill(process.pid, signal.SIGKILL)
        for process in self._processes.values():
            process.join(max(REAP, until - time.monotonic()))
            if process.exitcode is not None:
                process.close()
        self._processes = {}


class _Parcel:
    """The worker's ends, through whatever way the start method passes descriptors."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends

    def __reduce__(self) -> tuple[Any, ...]:
        ends = self.ends
        output = None if ends.output is None else reduction.DupFd(ends.output)
        return _unwrap, (
            reduction.DupFd(ends.sock.fileno()),
            reduction.DupFd(ends.memory),
            reduction.DupFd(ends.tickets),
            reduction.DupFd(ends.bell),
            output,
        )


def _unwrap(sock: Any, memory: Any, tickets: Any, bell: Any, output: Any) -> _Parcel:
    descriptor = None if output is None else output.detach()
    end = socket.socket(fileno=sock.detach())
    return _Parcel(Ends(end, memory.detach(), tickets.detach(), bell.detach(), descriptor))


def _let_go_of_the_fork_server() -> None:
    """A fork server ends when every holder of this descriptor is gone, and it hands one to each child:
    unless we close ours, neither it nor we would notice that the parent was killed."""
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    descriptor = getattr(server, "_forkserver_alive_fd", None)
    if server is not None and descriptor is not None:
        os.close(descriptor)
        server._forkserver_alive_fd = None


def _begin(parcel: _Parcel, parent: int | None, initializer: Initializer | None) -> None:
    """Runs in the new process."""
    _let_go_of_the_fork_server()
    code = template.become_worker(parcel.ends, os.getppid() if parent is None else parent, initializer)
    if code:
        sys.exit(code)  # the standard library ends this process: finalizers, threads, exit handlers

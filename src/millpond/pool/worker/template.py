"""The template process: clean and single-threaded, it forks workers in about a millisecond each.

It imports what was asked for once and then only forks, reaps and reports. It watches its owner and dies
with it, taking every worker along; as a child subreaper it also kills what the tasks of workers that have
ended left behind. It never unpickles anything and never runs a task.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import mmap
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from typing import Any, NamedTuple, NoReturn

from millpond.pool.channel.shared_page import FENCE, FENCED, PAGE, STACK
from millpond.pool.worker.lifetime import become_process, end_process, noting_exit_handlers
from millpond.pool.worker.main import Initializer, main
from millpond.pool.worker.main_module import fresh_main
from millpond.pool.worker.strays import Marks, Strays
from millpond.system.kernel import pidfd_open

REPORT = struct.Struct("<Bqqq")  # what, worker id, pid, wait status
UP, STARTED, EXITED, BROKEN = b"U"[0], b"S"[0], b"X"[0], b"B"[0]
ORDER = struct.Struct("<Bq")  # what, worker id
START, START_WARM = b"+"[0], b"w"[0]  # the second: functions of `__main__` will follow
ATTACH = b"a"[0]  # another pool gives orders too, on the socket that comes along
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
FENCE_POLL = 250  # milliseconds
LAST = 0.5  # seconds that the last look for what workers left behind may take
WORD = struct.Struct("<Q")
DUMP_SIGNAL = signal.SIGRTMAX - 3  # out of the way of signals that programs use

_filling: list[bytes] = []
_prctl = ctypes.CDLL(None, use_errno=True).prctl


class Ends(NamedTuple):
    """The worker's ends of its channel."""

    sock: socket.socket
    memory: int
    tickets: int
    bell: int
    output: int | None


def become_worker(ends: Ends, parent: int, initializer: Initializer | None = None) -> int:
    """Turn a freshly made process into a worker, and return its exit code. Shared by every way of starting
    one; the caller ends the process."""
    os.setpgid(0, 0)  # a kill takes the worker's children along; Ctrl-C is the parent's business
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # the parent died before we could ask to die with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if ends.output is not None:
        os.dup2(ends.output, 1)
        os.dup2(ends.output, 2)
        os.close(ends.output)
    memory = ends.memory
    os.lseek(memory, STACK, os.SEEK_SET)  # dumps append behind everything that is mapped
    faulthandler.enable(memory, all_threads=True)
    faulthandler.register(DUMP_SIGNAL, memory, all_threads=True, chain=False)
    return main(ends.sock, memory, ends.tickets, ends.bell, initializer)


class Template:
    """The loop of the template process."""

    def __init__(self, control: socket.socket, owner: int, *, fenced: bool = False) -> None:
        self.control = control  # the first; it ends with us
        self.controls = {control.fileno(): control}
        self.poll = select.poll()
        self.owner_pid, self.owner = owner, pidfd_open(owner)
        self.pid = os.getpid()
        self.workers: dict[int, tuple[int, int]] = {}  # pid -> (whose, id)
        self.marks = Marks()
        self.marked: dict[int, int] = {}  # pid of a worker -> the number that its descendants inherit
        self.strays = Strays(self.marks)
        self.fenced = fenced
        self.fences: dict[int, mmap.mmap] = {}  # pid -> the first page of what we share with it
        self.warm = False
        self.alarm, self.ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self.ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> NoReturn:
        """Obey until the owner is gone."""
        self.strays.keep()
        for descriptor in (self.control.fileno(), self.owner, self.alarm):
            self.poll.register(descriptor, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in self.poll.poll(FENCE_POLL if self.fences else None)]
            self.guard()
            if self.owner in ready:
                self.end()
            if self.alarm in ready:
                os.read(self.alarm, 4096)
                self.reap()
            for descriptor in ready:
                if descriptor in self.controls:
                    self.obey(descriptor)

    def obey(self, whose: int) -> None:
        """Fork one worker, with the descriptors that came along; or take orders from one more pool."""
        try:
            order, descriptors, _, _ = socket.recv_fds(self.controls[whose], ORDER.size, 8)
        except OSError:
            order = b""
        if not order:
            self.dismiss(whose)
            return
        what, identity = ORDER.unpack(order)
        if what == ATTACH:
            os.set_inheritable(descriptors[0], False)
            self.controls[descriptors[0]] = socket.socket(fileno=descriptors[0])
            self.poll.register(descriptors[0], select.POLLIN)
            return
        self.start(whose, what, identity, descriptors)

    def dismiss(self, whose: int) -> None:
        """A pool has gone: its workers go too. With the first one, everything ends."""
        if whose == self.control.fileno():
            self.end()
        self.poll.unregister(whose)
        self.controls.pop(whose).close()
        for pid, (owner, _) in self.workers.items():
            if owner == whose:
                kill_group(pid)

    def start(self, whose: int, what: int, identity: int, descriptors: list[int]) -> None:
        """Fork one worker."""
        if what == START_WARM and not self.warm:
            self.warm = True
            warm_up()
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        mark = self.marks.new(self.marked.values())
        try:
            pid = os.fork()
        except OSError as error:
            self.report(whose, REPORT.pack(EXITED, identity, 0, -(error.errno or 1)))
            pid = -1
        if pid == 0:
            self.child(identity, descriptors, mark)
        if pid > 0:
            self.workers[pid] = (whose, identity)
            self.marked[pid] = mark
            if self.fenced:
                self.fences[pid] = mmap.mmap(descriptors[1], PAGE)
            pidfd = pidfd_open(pid)
            self.report(whose, REPORT.pack(STARTED, identity, pid, 0), [pidfd])
            os.close(pidfd)
        for descriptor in descriptors:
            os.close(descriptor)

    def guard(self) -> None:
        """Stop the workers that have reached their fence, even if the owner is stopped and cannot."""
        if not self.fences:
            return
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        for pid, page in self.fences.items():
            (fence,) = WORD.unpack_from(page, FENCE * WORD.size)
            if fence and now > fence and not WORD.unpack_from(page, FENCED * WORD.size)[0]:
                WORD.pack_into(page, FENCED * WORD.size, fence)
                kill_group(pid)

    def child(self, identity: int, descriptors: list[int], mark: int) -> NoReturn:
        """The forked worker: let go of everything that is the template's."""
        try:
            self.marks.put_on(mark)
            for control in self.controls.values():
                control.close()
            for descriptor in (self.alarm, self.ring):
                os.close(descriptor)
            for fence in self.fences.values():
                fence.close()
            signal.set_wakeup_fd(-1)
            sock, memory, tickets, bell, *output = descriptors
            ends = Ends(socket.socket(fileno=sock), memory, tickets, bell, output[0] if output else None)
            become_process(identity, self.owner_pid, self.owner)
            end_process(become_worker(ends, self.pid))
        finally:
            os._exit(70)

    def reap(self) -> None:
        """Report every worker that ended, then end what it left behind."""
        ended = False
        while (pid := self.next_dead()) is not None:
            if pid in self.workers:
                kill_group(pid)  # while it is a zombie, its number cannot be anybody else's
            _, status = os.waitpid(pid, 0)
            known = self.workers.pop(pid, None)
            self.marked.pop(pid, None)
            fence = self.fences.pop(pid, None)
            if fence is not None:
                fence.close()
            ended |= self.strays.reaped(pid) or known is not None
            if known is not None:
                self.report(known[0], REPORT.pack(EXITED, known[1], pid, status))
        if ended:
            self.strays.kill(self.marked)

    def next_dead(self) -> int | None:
        """A child that has ended and is not reaped yet."""
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None
        return None if found is None else found.si_pid

    def report(self, whose: int, data: bytes, extra: list[int] | None = None) -> None:
        """Tell a pool; one that is gone needs no news."""
        control = self.controls.get(whose)
        if control is None:
            return
        try:
            socket.send_fds(control, [data], extra or [])
        except OSError:
            if control is self.control:
                self.end()

    def end(self) -> NoReturn:
        """Take every worker along and leave. What a worker left behind becomes ours when it is dead, not when
        it is killed; whoever cannot die is not waited for."""
        for pid in self.workers:
            kill_group(pid)
        self.workers = {}
        until = time.monotonic() + LAST
        while time.monotonic() < until:
            self.strays.kill_all()
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    time.sleep(0.001)
            except ChildProcessError:
                break
        os._exit(0)


def warm_up() -> None:
    """Import what functions of `__main__` need to arrive, once here instead of once in each worker."""
    import cloudpickle  # noqa: F401

    settle_down()


def settle_down() -> None:
    """Leave the heap so that workers share as many of its pages as possible."""
    gc.collect()
    gc.freeze()  # the collector never touches these objects again, here or in a worker
    fill_holes()


def fill_holes() -> None:
    """Fill the free blocks among our small objects, whose pages the workers share.

    A worker would put its first objects there, each at the price of a copied page; now they go side by
    side into fresh memory. Saves every worker about a third of a megabyte. New blocks that follow each
    other without a gap tell that no hole is left.
    """
    for size in range(48, 513, 16):
        neighbours = last = 0
        for _ in range(200):
            block = bytes(size - sys.getsizeof(b""))
            _filling.append(block)
            neighbours = neighbours + 1 if id(block) == last + size else 0
            last = id(block)
            if neighbours == 6:
                break


def left_open(control: int) -> str:
    """What the imports left behind that workers cannot share: connections and threads, in words."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:") and int(name) not in (0, 1, 2, control):
            found.append("a socket")
        elif target.endswith((".db", ".sqlite", ".sqlite3", "-wal")):
            found.append(target)
    # Python's only: libraries such as OpenBLAS start theirs anew after a fork
    threads = threading.active_count() - 1
    if threads:
        found.append(f"{threads} thread{'s' if threads > 1 else ''}")
    return ", ".join(found)


def kill_group(pid: int) -> None:
    """SIGKILL a worker and all it started; the worker leads its own process group."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def _die_with_the_owner(number: int) -> None:
    """The signal that the kernel sends when the owner ends; 0 for none.

    A preload may hang, and then nothing here looks at the owner: without the signal the template would
    outlive an owner that was killed. Shown in
    test_a_template_that_hangs_in_a_preload_ends_with_its_killed_parent.
    The signal also comes when only the thread ends that started the template, the dispatcher of one of its
    pools. So it holds only during the preload: afterwards the template looks for its owner itself.
    """
    _prctl(PR_SET_PDEATHSIG, number)


def run(control: socket.socket, owner: int, settings: dict[str, Any]) -> None:
    """Entry point of the template process."""
    sys.argv[:] = settings["argv"]
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # an owner that blocks SIGCHLD would keep ends from us
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _die_with_the_owner(signal.SIGKILL)
    try:
        template = Template(control, owner, fenced=bool(settings["fenced"]))
    except ProcessLookupError:  # the owner is gone already
        os._exit(0)
    if os.getppid() != owner:
        os._exit(0)
    try:
        with noting_exit_handlers():
            for name in settings["preload"]:
                importlib.import_module(name)
    except BaseException:
        text = traceback.format_exc().encode()[-60_000:]
        control.send(REPORT.pack(BROKEN, 0, 0, 0) + text)
        os._exit(71)
    _die_with_the_owner(0)
    found = left_open(control.fileno()) if settings["preload"] else ""
    fresh_main()
    settle_down()
    try:
        control.send(REPORT.pack(UP, 0, os.getpid(), 0) + found.encode())
    except OSError:
        template.end()
    template.serve()

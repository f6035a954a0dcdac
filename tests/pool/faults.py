"""Tasks that misbehave, for the tests; importable by worker processes."""

import ctypes
import os
import pickle
import signal
import sys
import time


def echo(value):
    return value


def pid_of(_=None):
    return os.getpid()


def exit_if(number, bad):
    if number in bad:
        os._exit(3)
    return number


def segfault_if(number, bad):
    if number in bad:
        ctypes.string_at(0)
    return number


def kill_self_if(number, bad):
    if number in bad:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def sleep_for_ever(number):
    time.sleep(1000)
    return number


def hold_the_gil(number):
    # PyDLL keeps the GIL; a bare C sleep would return when the dump signal comes, so go on for ever
    pause = ctypes.PyDLL(None).sleep
    while True:
        pause(1000)


def block_signals(number):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(1000)


def spin(number):
    while True:
        pass


HANGS = {"sleep": sleep_for_ever, "gil": hold_the_gil, "signals": block_signals, "spin": spin}


def hang_or_echo(number, how):
    return HANGS[how](number) if how else number


def say_and_wait(path):
    """Write our pid, then hang."""
    with open(path, "w") as file:
        file.write(str(os.getpid()))
        file.flush()
    time.sleep(1000)


def say_pid(fifo):
    """Tell the test which process runs this, then hang."""
    with open(fifo, "w") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(1000)


def note(path, number):
    """Record that this task ran, atomically."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{number}\n".encode())
    os.close(descriptor)
    return number


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__("needs two")
        self.lock = __import__("threading").Lock()


class BadText(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")


class HalfPicklable(Exception):
    """Pickles, but cannot be rebuilt: __init__ wants more than args holds."""

    def __init__(self, a, b):
        super().__init__(a)


class WontArrive:
    def __reduce__(self):
        return explode, ()


def explode():
    raise ValueError("cannot be rebuilt")


def return_lock():
    import threading

    return threading.Lock()


def return_wont_arrive():
    return WontArrive()


def raise_it(error_type, *args):
    raise error_type(*args)


def large(count):
    return bytes(count)


def fork_and_return():
    """Both the worker and its child come back from here; only one may answer."""
    child = os.fork()
    return "child" if child == 0 else "worker"


def fork_a_sleeper(fifo):
    """Leave a grandchild behind that outlives the worker's interest in it."""
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            with open(fifo, "w") as file:
                file.write(f"{os.getpid()}\n")
            time.sleep(1000)
        os._exit(0)
    os.wait()
    return os.getpid()


def close_everything():
    os.closerange(3, 1000)
    return "closed"


def print_much(count):
    for _ in range(count):
        sys.stdout.write("x" * 1_000_000)
    sys.stdout.flush()
    return count


def leave_with(error_type):
    raise error_type("out")


def pickle_of(value):
    return len(pickle.dumps(value))


def corrupt_ring():
    """Answer for a task that does not exist, as a worker gone mad would."""
    import gc

    from millpond.pool.worker.result_writer import Outbox

    [outbox] = [item for item in gc.get_objects() if isinstance(item, Outbox)]
    outbox.answer(10**9, 1, "stray", True, time.monotonic_ns())
    return os.getpid()


def misbehave_now_and_then(path, number, how):
    note(path, number)
    if how == "exit":
        os._exit(5)
    if how == "hang":
        sleep_for_ever(number)
    if how == "raise":
        raise ValueError(number)
    return number


def needs(flag):
    if not os.path.exists(flag):
        raise LookupError("no flag yet")


def grow():
    hoard = []
    while True:
        hoard.append(bytearray(10_000_000))
        time.sleep(0.01)

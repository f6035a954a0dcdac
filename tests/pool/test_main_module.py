"""Functions and classes of `__main__` behave in a worker as they did at home."""

import subprocess
import sys
import textwrap

SCRIPT = """
    import multiprocessing
    from millpond import Pool

    connection = None

    class Thing:
        def use(self):
            return connection

    def connect(value):
        global connection
        connection = value

    def helper():
        return connection

    def direct():
        return connection

    def through_helper():
        return helper()

    def take(lock):
        global held
        held = lock

    def use_lock():
        with held:
            return "locked"

    if __name__ == "__main__":
        with Pool(1, initializer=connect, initargs=("set",)) as pool:
            calls = [direct, through_helper, lambda: connection, Thing().use]
            print(*[pool.submit(call).result(30) for call in calls])
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            with Pool(1, mp_context=context, initializer=take, initargs=(context.Lock(),)) as pool:
                print(method, pool.submit(use_lock).result(30))
"""


def test_what_an_initializer_sets_in_main_is_there_for_tasks_and_locks_reach_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["set set set set", "fork locked", "spawn locked", "forkserver locked"]

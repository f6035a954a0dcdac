"""Signals to a real process: each is obeyed once, in order, and none keeps it from ending."""

from __future__ import annotations

import os
import pty
import signal
import sys
import time

import pytest

from millpond.rules.node.shutdown import ECHO
from tests.node_signals.programs import STAND_IN, program, stand_in

STEPS = ("drain", "hurry", "kill", "hold", "go on", "reload", "served")
STOPS = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("number", STOPS)
def test_the_first_drains_and_the_exit_code_is_0(number):
    with stand_in() as node:
        node.send(number)
        node.until("drain 25")
        node.tell("stop")
        assert node.code() == 0
        assert node.said(*STEPS) == ["drain 25", "served 0"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_second_hurries_and_the_third_kills(number, code):
    with stand_in() as node:
        for step in ("drain 25", "hurry", "kill"):
            send_until(node, number, step)
        assert node.code() == code
        assert node.said(*STEPS) == ["drain 25", "hurry", "drain 0", "kill", f"served {code}"]


def send_until(node, number, step):
    """Send a signal, wait for its step, and let the time pass in which a second one is an echo."""
    node.send(number)
    node.until(step)
    time.sleep(ECHO)


def test_sigint_and_sigterm_climb_the_same_ladder():
    with stand_in() as node:
        send_until(node, signal.SIGINT, "drain 25")
        send_until(node, signal.SIGTERM, "hurry")
        node.tell("stop")
        assert node.code() == 143


def test_sigquit_kills_at_once():
    with stand_in() as node:
        node.send(signal.SIGQUIT)
        assert node.code() == 131
        assert node.said(*STEPS) == ["drain 0", "kill", "served 131"]


def test_a_node_that_does_not_end_when_killed_is_left_at_the_next_signal():
    with stand_in("stubborn") as node:
        for step in ("drain 25", "hurry", "kill"):
            send_until(node, signal.SIGTERM, step)
        node.send(signal.SIGTERM)
        node.until("leaving it as it is")
        assert node.code() == 143
        assert not node.said("served")


def test_a_node_that_stops_by_itself_has_failed():
    with stand_in() as node:
        node.tell("stop")
        assert node.code() == 1
        assert "the node stopped by itself" in "\n".join(node.lines)


# --- hold and reload ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGUSR1])
def test_claiming_is_held_until_sigcont_and_the_process_goes_on(number):
    with stand_in() as node:
        node.send(number)
        node.until("hold")
        node.tell("anything")
        node.until("told anything")  # it was not suspended
        node.send(signal.SIGCONT)
        node.until("go on")
        node.send(signal.SIGTERM)
        node.until("drain")
        node.tell("stop")
        assert node.code() == 0


def test_after_a_flood_of_holds_and_continues_the_next_one_counts():
    """Of two in the same moment either may be the last: their handlers may run at once."""
    with stand_in() as node:
        for last, held in ((signal.SIGTSTP, "True"), (signal.SIGCONT, "False")):
            for _ in range(200):
                node.send(signal.SIGTSTP)
                node.send(signal.SIGCONT)
            told = ""
            while told != f"held {held}":  # until it is so; the test's time limit ends a wait in vain
                node.send(last)
                node.tell("held?")
                told = node.until("held ")
        node.send(signal.SIGTERM)
        node.until("drain")
        node.tell("stop")
        assert node.code() == 0


def test_a_stopped_process_obeys_what_came_meanwhile():
    with stand_in() as node:
        node.send(signal.SIGSTOP)
        os.waitid(os.P_PID, node.process.pid, os.WSTOPPED)
        node.send(signal.SIGTERM)
        node.send(signal.SIGCONT)
        node.until("drain")
        node.tell("stop")
        assert node.code() == 0


def test_sighup_reads_the_settings_again_and_grace_counts():
    with stand_in() as node:
        node.send(signal.SIGHUP)
        node.until("reload")
        node.until("settings were read again")
        node.send(signal.SIGTERM)
        node.until("drain 7")
        node.tell("stop")
        assert node.code() == 0


def test_wrong_settings_change_nothing():
    with stand_in("wrong") as node:
        node.send(signal.SIGHUP)
        node.until("the settings stay as they were: no such setting")
        node.send(signal.SIGTERM)
        node.until("drain 25")
        node.tell("stop")
        assert node.code() == 0


def test_no_sigterm_is_lost_in_a_flood_of_others():
    with stand_in() as node:
        for place in range(3000):
            node.send(signal.SIGHUP if place % 2 else signal.SIGCONT)
        node.send(signal.SIGTERM)
        for place in range(3000):
            node.send(signal.SIGHUP if place % 2 else signal.SIGCONT)
        node.until("drain")
        node.tell("stop")
        assert node.code() == 0


def test_sigusr2_writes_the_stacks():
    with stand_in() as node:
        node.send(signal.SIGUSR2)
        node.until("most recent call first")
        node.send(signal.SIGTERM)
        node.until("drain")
        node.tell("stop")
        assert node.code() == 0


# --- terminals ---------------------------------------------------------------------------------------------
def test_nohup_is_obeyed():
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    with program(sys.executable, "-c", ignoring + STAND_IN) as node:
        node.until("ready")
        node.send(signal.SIGHUP)
        node.send(signal.SIGTERM)
        node.until("drain")
        node.tell("stop")
        assert node.code() == 0
        assert not node.said("reload")


def test_a_closed_terminal_drains():
    ours, theirs = pty.openpty()
    taking = (
        "import fcntl, os, termios; os.setsid(); fcntl.ioctl(int(os.sys.argv[1]), termios.TIOCSCTTY, 0)\n"
    )
    try:
        with program(sys.executable, "-c", taking + STAND_IN, str(theirs), pass_fds=[theirs]) as node:
            node.until("ready")
            os.close(theirs)
            node.send(signal.SIGHUP)  # the terminal is there: somebody asks for a reload
            node.until("reload")
            os.close(ours)  # the kernel sends the next one
            node.until("drain")
            node.tell("stop")
            assert node.code() == 0
    finally:
        for descriptor in (ours, theirs):
            try:
                os.close(descriptor)
            except OSError:
                continue


def test_a_node_that_nobody_could_lead_any_more_is_ended():
    with program(sys.executable, "-c", STAND_IN, "mute") as node:
        assert node.code() == 1
        assert node.said("start", "kill") == ["start", "kill"]
        assert "nobody listens" in "".join(node.lines)


def test_orphans_that_cannot_be_looked_for_do_not_end_the_node():
    with stand_in("blind") as node:
        node.until("orphans could not be looked for")
        node.send(signal.SIGTERM)
        node.until("drain 25")
        node.tell("stop")
        assert node.code() == 0

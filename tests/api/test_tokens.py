"""Tokens, their file, and the sessions made with them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from millpond.api.problems import Problem
from millpond.api.security.token_file import LOOK, TokenFile, default_path
from millpond.api.security.tokens import MOST_TRIES, PER, SESSION, Keyring, Tries, token
from millpond.errors import OptionError
from tests.api.asking import ADMIN, OLD, READ, TOKENS

NOW = 1_000_000.0


@pytest.fixture
def keyring() -> Keyring:
    return Keyring(lambda: TOKENS)


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    found = TokenFile(tmp_path / "state" / "millpond" / "dashboard.json")
    found.ensure()
    return found


def test_a_token_says_what_its_bearer_may_do(keyring):
    assert keyring.look(ADMIN, NOW)[:3] == ("admin", "right", "token")
    assert keyring.look(READ, NOW)[:2] == ("read", "right")
    assert keyring.look(OLD, NOW)[:2] == ("none", "expired")
    for wrong in ("", "x", ADMIN + "x", ADMIN[:-1], "ä", "\udcff"):
        assert keyring.look(wrong, NOW)[:2] == ("none", "wrong")


@pytest.mark.parametrize(
    "text", ["", "short", "x" * 1001, "with space in the middle", "ümläute-0123456789", 5]
)
def test_a_token_that_is_no_good_is_refused(text):
    with pytest.raises(OptionError, match="token"):
        token("admin", text)


def test_a_session_lasts_for_a_while(keyring):
    caller, cookie = keyring.open_session(READ, NOW)
    assert caller.scope == "read"
    assert READ not in cookie
    assert keyring.look_session(cookie, NOW + SESSION - 2)[:3] == ("read", "right", "session")
    assert keyring.look_session(cookie, NOW + SESSION + 1).shown == "expired"


def test_no_session_is_had_with_a_wrong_or_expired_token(keyring):
    assert keyring.open_session("wrong-token-0123456789", NOW)[1] == ""
    assert keyring.open_session(OLD, NOW)[1] == ""


def test_a_session_that_was_tampered_with_is_none(keyring):
    _, cookie = keyring.open_session(READ, NOW)
    scope, ends, name, signature = cookie.split(".")
    forged = [
        f"admin.{ends}.{name}.{signature}",
        f"{scope}.{int(ends) + 10}.{name}.{signature}",
        f"{scope}.{ends}.{name}.{'0' * 64}",
        f"{scope}.{ends}.{name}",
        "",
        "...",
        "admin.9999999999.x." + "0" * 64,
        cookie + "x" * 300,
        "ä.1.2.3",
    ]
    assert {keyring.look_session(text, NOW).shown for text in forged} == {"wrong"}


def test_a_session_that_was_ended_counts_no_more(keyring):
    _, cookie = keyring.open_session(ADMIN, NOW)
    _, other = keyring.open_session(ADMIN, NOW)
    ended = keyring.look_session(cookie, NOW).session
    knowing = Keyring(keyring._source, has_ended={ended}.__contains__)
    assert knowing.look_session(cookie, NOW).shown == "wrong"
    assert knowing.look_session(other, NOW).shown == "right"


def test_a_session_ends_with_its_token():
    tokens = [token("admin", ADMIN)]
    keyring = Keyring(lambda: tokens)
    _, cookie = keyring.open_session(ADMIN, NOW)
    assert Keyring(lambda: tokens).look_session(cookie, NOW).shown == "right", "it survives a restart"
    tokens[:] = [token("admin", "another-token-0123456789")]
    assert keyring.look_session(cookie, NOW).shown == "wrong"


def test_a_session_does_not_outlive_a_token_that_expires():
    keyring = Keyring(lambda: [token("admin", ADMIN, NOW + 60)])
    caller, cookie = keyring.open_session(ADMIN, NOW)
    assert caller.expires_at == NOW + 60
    assert keyring.look_session(cookie, NOW + 61).shown == "expired"


def test_who_is_wrong_too_often_must_wait():
    tries = Tries()
    for _ in range(MOST_TRIES):
        tries.refuse("1.2.3.4", NOW)
    with pytest.raises(Problem, match="too many wrong tokens"):
        tries.refuse("1.2.3.4", NOW)
    tries.refuse("5.6.7.8", NOW)
    tries.refuse("1.2.3.4", NOW + PER + 1)


def test_addresses_of_one_network_of_ipv6_count_as_one():
    tries = Tries()
    for number in range(MOST_TRIES):
        tries.refuse(f"2001:db8::{number}", NOW)
    with pytest.raises(Problem):
        tries.refuse("2001:db8::ffff", NOW)
    tries.refuse("2001:db8:0:1::", NOW)


# --- the file --------------------------------------------------------------------------------------------
def test_only_its_owner_can_read_the_file(file):
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o077 == 0


def test_the_tokens_in_it_are_long_and_different_and_stay(file):
    admin, read = file.text("admin"), file.text("read")
    assert admin != read
    assert len(admin) >= 43, "256 bits"
    again = TokenFile(file.path)
    again.ensure()
    assert again.text("admin") == admin
    assert Keyring(again).look(admin, 0.0).scope == "admin"
    assert Keyring(again).look(read, 0.0).scope == "read"


def test_new_tokens_count_without_a_restart(file, monkeypatch):
    keyring = Keyring(file)
    old = file.text("admin")
    assert keyring.look(old, 0.0).shown == "right"
    TokenFile(file.path).renew()
    monkeypatch.setattr(file, "_look_at", 0.0)
    assert LOOK > 0
    assert keyring.look(old, 0.0).shown == "wrong"
    assert keyring.look(file.text("admin"), 0.0).shown == "right"


def test_expired_tokens_are_replaced_at_the_next_start(file):
    content = json.loads(file.path.read_text())
    content["admin"]["expires_at"] = "2001-01-01T00:00:00Z"
    file.path.write_text(json.dumps(content))
    old = content["admin"]["token"]
    running = TokenFile(file.path)
    assert Keyring(running).look(old, NOW * 1000).shown == "expired"
    file.ensure()
    assert file.text("admin") != old
    assert file.text("read") == content["read"]["token"]


def test_a_token_whose_end_cannot_be_read_has_expired(file):
    content = json.loads(file.path.read_text())
    content["admin"]["expires_at"] = "whenever"
    file.path.write_text(json.dumps(content))
    assert Keyring(TokenFile(file.path)).look(content["admin"]["token"], NOW).shown == "expired"


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_a_file_that_others_can_read_is_refused(file, mode):
    admin = file.text("admin")
    file.path.chmod(mode)
    with pytest.raises(OptionError, match="can be read by others"):
        TokenFile(file.path).ensure()
    assert Keyring(TokenFile(file.path)).look(admin, 0.0).shown == "wrong"


@pytest.mark.parametrize("content", ["", "[]", "{}", "nonsense", '{"admin": {}}', '{"admin": {"token": 5}}'])
def test_a_spoilt_file_lets_nobody_in(file, content):
    admin = file.text("admin")
    file.path.write_text(content)
    assert Keyring(TokenFile(file.path)).look(admin, 0.0).shown == "wrong"
    assert Keyring(TokenFile(file.path)).look("", 0.0).shown == "wrong"


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(OptionError, match="XDG_STATE_HOME"):
        TokenFile(tmp_path / "state" / "millpond" / "dashboard.json").ensure()


def test_the_file_has_a_place_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "millpond" / "dashboard.json"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_path().is_absolute()
    assert os.fspath(default_path()).endswith(".local/state/millpond/dashboard.json")

"""Redaction takes time in proportion to the text, whatever the text: counted in steps, by no clock."""

from __future__ import annotations

import re

import pytest

from millpond import config, redaction
from millpond.api import job_search
from tests.jobs.steps import Counter, unbounded_repeats

PATTERNS = {
    f"{module.__name__}.{name}{key}": pattern
    for module, names in (
        (redaction, None),
        (config, ("_BEHIND_SCHEME", "_USER", "_HIDDEN_PARAMETER")),
        (job_search, None),
    )
    for name, value in vars(module).items()
    if names is None or name in names
    for key, pattern in (value if isinstance(value, dict) else {"": value}).items()
    if isinstance(pattern, re.Pattern)
}
UNITS = (
    "-eyJ", "eyJabcdefgh.", "eyJ.", "a.", ".", "://:", "a://ba://b", "://a:b@", "://a", "a@",
    "token", "token=", "token ", "token='", 'token="', "token=[", 'token=\\"', "a=", "a: ", "a is ",
    "password is", "=", " ", "\t\n", "\\", '\\"', '"', "'", "[", "{]", "-", "--", "--a ", "--token ",
    "a-", "_", "aB", "bearer ", "basic", "authorization:", "authorization: a ", "proxy-",
    "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----END ", "-----END PRIVATE", "PRIVATE KEY",
    "SG.", "SG.aaaaaaaaaaaaaaaaa", "sk-", "ghp_", "AKIA", "AIza", "ya29.", "?a", "&token=", "?signature",
    "signature=", "hooks.slack.com/", "webhooks/", "0", "0x", "0-", "0.0",
)  # fmt: skip
LENGTHS = (80, pytest.param(600, marks=pytest.mark.slow))  # characters


def steps(pattern: re.Pattern[str], text: str) -> int:
    counter = Counter(pattern)
    counter.spans(text)
    return counter.steps


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", PATTERNS)
def test_twice_the_text_takes_twice_the_steps(name, length):
    pattern = PATTERNS[name]
    for unit in UNITS:
        text = unit * (2 * length // len(unit) + 1)
        once, twice = steps(pattern, text[:length]), steps(pattern, text[: 2 * length])
        assert twice <= 2.2 * once + 100, f"{unit!r}: {once} steps, then {twice}"


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_gives_back_what_has_no_bound(name):
    assert not unbounded_repeats(PATTERNS[name])


@pytest.mark.parametrize("name", PATTERNS)
def test_the_counter_finds_what_the_engine_finds(name):
    pattern = PATTERNS[name]
    for unit in UNITS:
        text = (unit * 20)[:60] + " token=x " + unit
        assert Counter(pattern).spans(text) == [found.span() for found in pattern.finditer(text)]


@pytest.mark.parametrize("old", [r"\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*", r"://([^:/?#@\s]*):\S*@"])
def test_a_pattern_that_takes_quadratic_time_is_found_out(old):
    pattern = re.compile(old)
    assert unbounded_repeats(pattern)
    growth = [steps(pattern, (unit * 200)[:200]) / steps(pattern, (unit * 100)[:100]) for unit in UNITS]
    assert max(growth) > 3


@pytest.mark.parametrize(
    "text",
    [
        "pass=hunter2",
        "pw: hunter2",
        "db_pass=hunter2",
        "dbPass=hunter2",
        "otp=hunter2",
        "pin=hunter2",
        "passcode=hunter2",
        "mfa_code=hunter2",
        "session=hunter2",
        "jwt=hunter2",
        "csrf: hunter2",
        "signing_key=hunter2",
        "encryption-key=hunter2",
        "card_number=hunter2",
        "cvv=hunter2",
        "ssn=hunter2",
        "?sig=hunter2&a=b",
        "?X-Amz-Signature=hunter2",
        "?Signature=hunter2",
        "--password hunter2 --user me",
        "--db-password   'hun hunter2'",
        'the password is "hunter2"',
        "the password is 'hunter2'",
        r'{"a": "{\"password\": \"hunter2\"}"}',
        r"{\\\"b\\\": {\\\"token\\\": \\\"hunter2\\\"}}",
        "{'tokens': ['a', 'hunter2'], 'b': 1}",
        "tokens=[['a'], 'hunter2']",
        'secrets: {"a": {"b": "]"}, "c": "hunter2"}',
        "password='it\\'s hunter2'",
        "password='cut off hunter2",
        "tokens=[1, hunter2",
        "Cookie: a=1; sid=hunter2",
        "os.environ['API_TOKEN'] = 'hunter2'",
        "password := hunter2",
        "password => 'hunter2'",
        "password == hunter2",
        "https://hooks.slack.com/services/T0/B0/hunter2",
        "https://discord.com/api/webhooks/1/hunter2",
        "SG.hunter2hunter2hunter2.hunter2hunter2hunter2",
        "AIzahunter2hunter2hunter2hunter2hunter2abcd",
        "www-eyJhbGciOiJ9.eyJzdWIiOiIxIn0.hunter2",
    ],
)
def test_a_secret_is_hidden_by_its_name_or_its_shape(text):
    hidden = redaction.without_secrets(text)
    assert "hunter2" not in hidden
    assert "***" in hidden


@pytest.mark.parametrize(
    "text",
    [
        "shipping: 3",
        "the password is wrong",
        "compass=north",
        "spinning: yes",
        "keyJson.dumps(x)",
        "a --verbose run",
        "opinion = mine",
        "jobs.resize is dead: error",
        "2026-01-01T10:00:00Z",
        "www.example.com",
        "monkey=banana",
        "author: me",
        "x is 'y'",
        "assignment = 3",
    ],
)
def test_text_that_is_no_secret_stays(text):
    assert redaction.without_secrets(text) == text

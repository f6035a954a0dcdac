"""Who may ask the HTTP API for what, as tables."""

from __future__ import annotations

import pytest

from millpond.rules.http_access import is_for_us, is_public, is_same_origin, judge, may_read, need_of


@pytest.mark.parametrize(
    ("method", "path", "need"),
    [
        ("GET", "/livez", "none"),
        ("GET", "/readyz", "none"),
        ("GET", "/", "none"),
        ("GET", "/static/app.js", "none"),
        ("GET", "/api/v1/session", "none"),
        ("POST", "/api/v1/session", "none"),
        ("GET", "/metrics", "figures"),
        ("GET", "/scale", "figures"),
        ("GET", "/api/v1/jobs", "read"),
        ("GET", "/api/v1/openapi.json", "read"),
        ("GET", "/nothing/that/exists", "read"),
        ("GET", "/api/v1/audit", "admin"),
        ("POST", "/api/v1/jobs", "admin"),
        ("PUT", "/api/v1/queues/mail/rate", "admin"),
        ("DELETE", "/api/v1/pools/mail/workers", "admin"),
        ("POST", "/livez", "admin"),
        ("OPTIONS", "/api/v1/jobs", None),
        ("PATCH", "/api/v1/jobs", None),
        ("TRACE", "/", None),
        ("get", "/livez", None),
    ],
)
def test_what_a_request_must_show(method, path, need):
    assert need_of(method, path) == need


@pytest.mark.parametrize(
    ("need", "scope", "shown", "problem"),
    [
        ("none", "none", "nothing", None),
        ("none", "none", "wrong", None),
        ("read", "none", "nothing", "no-token"),
        ("read", "read", "right", None),
        ("read", "admin", "right", None),
        ("read", "none", "wrong", "wrong-token"),
        ("read", "none", "expired", "expired-token"),
        ("figures", "none", "nothing", "no-token"),
        ("figures", "read", "right", None),
        ("admin", "none", "nothing", "no-token"),
        ("admin", "read", "right", "needs-admin"),
        ("admin", "admin", "right", None),
        ("admin", "none", "expired", "expired-token"),
    ],
)
def test_who_is_let_in(need, scope, shown, problem):
    refused = judge(need, scope, shown, open_reads=False, open_figures=False)
    assert (None if refused is None else refused.problem) == problem


def test_open_reads_open_nothing_else():
    assert judge("read", "none", "nothing", open_reads=True, open_figures=False) is None
    assert judge("figures", "none", "nothing", open_reads=True, open_figures=False) is not None
    assert judge("admin", "none", "nothing", open_reads=True, open_figures=True) is not None
    assert judge("figures", "none", "nothing", open_reads=False, open_figures=True) is None


def test_a_wrong_token_is_refused_even_where_none_is_needed():
    refused = judge("read", "none", "wrong", open_reads=True, open_figures=True)
    assert refused is not None
    assert refused.problem == "wrong-token"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8640",
        "127.0.0.1",
        "127.0.0.1:8640",
        "127.1.2.3",
        "[::1]",
        "[::1]:8640",
        "own.name",
        "own.name.",
    ],
)
def test_names_of_this_server_are_taken(host):
    assert is_for_us(host, {"own.name"}, only_loopback=True)


@pytest.mark.parametrize(
    "host",
    [
        "", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "8.8.8.8:80",
        "[fe80::1]", "0.0.0.0", "own.name:x", "own.name@evil", "a b", "localhost:8640:1", "2130706433",
        "0x7f000001", "own.name/x",
    ],
)  # fmt: skip
def test_other_names_are_not(host):
    assert not is_for_us(host, {"own.name"}, only_loopback=True)


def test_who_asks_a_public_server_for_its_address_was_not_led_there_by_a_name():
    assert is_for_us("10.0.0.1:8640", (), only_loopback=False)
    assert not is_for_us("evil.example", (), only_loopback=False)


@pytest.mark.parametrize(
    ("origin", "site", "is_same"),
    [
        (None, None, True),
        ("http://127.0.0.1:8640", "same-origin", True),
        ("http://127.0.0.1:8640", None, True),
        (None, "none", True),
        ("http://127.0.0.1:8641", None, False),
        ("http://127.0.0.1", None, False),
        ("https://evil.example", "cross-site", False),
        (None, "cross-site", False),
        (None, "same-site", False),
        ("null", None, False),
        ("http://127.0.0.1:8640", "same-site", False),
        ("http://127.0.0.1:8640.evil.example", None, False),
        ("ftp://127.0.0.1:8640", None, False),
    ],
)
def test_only_a_page_of_this_server_may_change_things(origin, site, is_same):
    assert is_same_origin(origin, site, "127.0.0.1:8640", https=False) == is_same


@pytest.mark.parametrize(
    ("path", "site", "mode", "allowed"),
    [
        ("/api/v1/jobs", None, None, True),
        ("/api/v1/jobs", "same-origin", "cors", True),
        ("/api/v1/jobs", "none", "navigate", True),
        ("/api/v1/jobs", "cross-site", "navigate", True),
        ("/api/v1/events", "cross-site", "cors", False),
        ("/api/v1/events", "same-site", "no-cors", False),
        ("/metrics", "cross-site", "no-cors", False),
        ("/", "cross-site", "navigate", True),
        ("/static/app.js", "cross-site", "no-cors", True),
    ],
)
def test_another_page_may_lead_people_here_and_not_fetch(path, site, mode, allowed):
    assert may_read(path, site, mode) == allowed


def test_behind_tls_only_a_page_that_came_by_tls_counts():
    assert is_same_origin("https://jobs.example", None, "jobs.example", https=True)
    assert not is_same_origin("http://jobs.example", None, "jobs.example", https=True)


@pytest.mark.parametrize(
    ("host", "public"),
    [
        ("127.0.0.1", False),
        ("::1", False),
        ("localhost", False),
        ("0.0.0.0", True),
        ("::", True),
        ("10.1.1.1", True),
        ("box", True),
    ],
)
def test_which_addresses_others_can_reach(host, public):
    assert is_public(host) == public

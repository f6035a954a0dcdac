"""Webhooks go where they may, to the address that was checked, once, and in bounded time."""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from millpond.cli.commands.run import alerts_of
from millpond.config import load
from millpond.errors import OptionError
from millpond.node.observability import webhook as module
from millpond.node.observability.alerts import Alert
from millpond.node.observability.webhook import Webhook, WebhookFailed, check_url, may_be_asked, resolve
from tests.node_health.sinks import LIMIT, listening

ALERT = Alert("StoreLost", "error", "the store is gone", 1.5, "host-1", 0, {"cause": "refused"})
HERE = ("127.0.0.0/8",)


def test_an_alert_arrives_as_json():
    with listening() as sink:
        Webhook(sink.url(path="/hook?a=b"), headers={"Authorization": "Bearer x"}, allow=HERE)(ALERT)
        posted = sink.posted.get(timeout=LIMIT)
    assert posted.path == "/hook?a=b"
    assert posted.headers["Content-Type"] == "application/json"
    assert posted.headers["Authorization"] == "Bearer x"
    assert posted.headers["Host"] == f"127.0.0.1:{sink.port}"
    assert json.loads(posted.body) == {
        "kind": "StoreLost", "level": "error", "text": "the store is gone", "at": 1.5, "node": "host-1",
        "folded": 0, "facts": {"cause": "refused"},
    }  # fmt: skip


def test_the_settings_say_which_networks_inside_an_alert_may_go_to():
    with listening() as sink:
        told = {"MILLPOND_ALERT_WEBHOOK": sink.url(), "MILLPOND_ALERT_NETWORKS": "10.0.0.0/8, 127.0.0.0/8"}
        (hook,) = alerts_of(load(environment=told))
        hook(ALERT)
        assert sink.count == 1
        (hook,) = alerts_of(load(environment={**told, "MILLPOND_ALERT_NETWORKS": "10.0.0.0/8"}))
        with pytest.raises(WebhookFailed, match="refused"):
            hook(ALERT)


# --- where an alert may go -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "0",
     "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"],
)  # fmt: skip
def test_no_spelling_of_this_machine_is_reached(host):
    with listening() as sink:
        with pytest.raises(WebhookFailed, match=r"refused|resolved"):
            Webhook(sink.url(host), tries=1)(ALERT)
        assert sink.count == 0


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
     "192.0.0.192", "192.88.99.1",
     "168.63.129.16", "224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1", "127.255.0.1", "0.1.2.3",
     "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "::", "::1", "::ffff:169.254.169.254",
     "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::", "2001:db8::1",
     "64:ff9b:1::7f00:1", "2001:20::1"],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(address):
    assert not may_be_asked(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101"])
def test_public_addresses_are_not(address):
    assert may_be_asked(ipaddress.ip_address(address))


def test_only_the_networks_that_were_allowed_are_reached():
    with listening() as sink:
        with pytest.raises(WebhookFailed, match=r"allow=\['127.0.0.1'\]"):
            Webhook(sink.url(), allow=["10.0.0.0/8"])(ALERT)
        Webhook(sink.url(), allow=["127.0.0.1"])(ALERT)
        assert sink.count == 1


def test_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch):
    found = [(socket.AF_INET, 1, 6, "", (address, 80)) for address in ("1.1.1.1", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(WebhookFailed, match=r"10\.0\.0\.1 is not a public address"):
        resolve(check_url("http://two-faced.example/"))


def test_a_name_is_resolved_once_and_the_checked_address_is_used(monkeypatch):
    answers = []

    def changing(host, port, **_):
        answers.append(host)
        address = "127.0.0.1" if len(answers) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    with listening() as sink:
        monkeypatch.setattr(socket, "getaddrinfo", changing)
        Webhook(sink.url("rebinding.example"), allow=["127.0.0.1"])(ALERT)
        assert answers == ["rebinding.example"]
        assert sink.posted.get(timeout=LIMIT).headers["Host"] == f"rebinding.example:{sink.port}"


def test_redirects_are_not_followed():
    with listening() as inner, listening(302, location=inner.url()) as outer:
        with pytest.raises(WebhookFailed, match="302, and redirects are not followed"):
            Webhook(outer.url(), allow=HERE)(ALERT)
        assert (outer.count, inner.count) == (1, 0)


@pytest.mark.parametrize(
    "url",
    ["ftp://example.com/", "file:///etc/passwd", "gopher://example.com", "example.com/x", "", "http://",
     "http://user:pass@example.com/", "http://token@example.com/", "http://example.com:99999/",
     "http://example.com/a b", "http://example.com/\r\nX: y", "http://[::1/", "//example.com/"],
)  # fmt: skip
def test_a_url_that_is_no_webhook_is_refused_at_once_and_not_shown(url):
    with pytest.raises(OptionError) as caught:
        Webhook(url)
    assert "pass@" not in str(caught.value)


def test_headers_cannot_smuggle_lines():
    for headers in ({"X": "a\r\nY: b"}, {"X\r\nY": "b"}, {"X Y": "b"}):
        with pytest.raises(OptionError, match="header"):
            Webhook("https://example.com/", headers=headers)


def test_a_network_that_is_none_is_refused():
    with pytest.raises(OptionError, match="allow"):
        Webhook("https://example.com/", allow=["internal"])


def test_neither_path_nor_headers_are_shown():
    hook = Webhook("https://hooks.example.com/T0/secret", headers={"Authorization": "Bearer hidden"})
    assert repr(hook) == "<Webhook to https://hooks.example.com>"


# --- failures --------------------------------------------------------------------------------------------
def test_a_server_that_fails_is_tried_again(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    with listening(500, 503, 204) as sink:
        Webhook(sink.url(), allow=HERE)(ALERT)
        assert sink.count == 3


def test_tries_come_to_an_end(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    with listening(500) as sink:
        with pytest.raises(WebhookFailed, match="answered 500"):
            Webhook(sink.url(), allow=HERE, tries=2)(ALERT)
        assert sink.count == 2


def test_a_request_the_server_refuses_is_not_repeated():
    with listening(404) as sink:
        with pytest.raises(WebhookFailed, match="answered 404"):
            Webhook(sink.url(), allow=HERE)(ALERT)
        assert sink.count == 1


def test_a_closed_webhook_tries_no_more():
    with listening(500) as sink:
        hook = Webhook(sink.url(), allow=HERE)
        hook.close()
        with pytest.raises(WebhookFailed, match="answered 500"):  # it was not delivered, and that is told
            hook(ALERT)
        assert sink.count == 1


def test_a_server_that_answers_a_byte_now_and_then_does_not_hold_the_thread():
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def drip():
            connection, _ = server.accept()
            with connection:
                while not done.wait(0.02):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(WebhookFailed, match=r"too long|timed out"):
            Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/", allow=HERE, timeout=0.2, tries=1)(ALERT)
        done.set()
        thread.join(LIMIT)


def test_a_server_that_says_nothing_and_one_that_is_not_there_fail():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(WebhookFailed, match="timed out"):
            Webhook(f"http://127.0.0.1:{port}/", allow=HERE, timeout=0.1, tries=1)(ALERT)
    with pytest.raises(WebhookFailed, match="refused"):
        Webhook(f"http://127.0.0.1:{port}/", allow=HERE, tries=1)(ALERT)


def test_what_is_not_http_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet():
            connection, _ = server.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"220 mail ready\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(WebhookFailed, match="not HTTP"):
            Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/", allow=HERE, tries=1)(ALERT)
        thread.join(LIMIT)


# --- TLS -------------------------------------------------------------------------------------------------
def certificate(folder: Path) -> Path:
    path = folder / "pair.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-days", "1", "-subj", "/CN=hooks.example", "-addext", "subjectAltName=DNS:hooks.example",
        "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"),
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs openssl to make a certificate")
    path.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return path


def test_the_certificate_is_checked_against_the_name_though_the_address_is_pinned(tmp_path, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path))
    here = lambda host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    with listening(context=context) as sink:
        monkeypatch.setattr(socket, "getaddrinfo", here)
        with pytest.raises(WebhookFailed, match="CERTIFICATE_VERIFY_FAILED"):
            Webhook(sink.url("hooks.example", scheme="https"), allow=HERE, tries=1)(ALERT)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        Webhook(sink.url("hooks.example", scheme="https"), allow=HERE, tries=1)(ALERT)
        with pytest.raises(WebhookFailed, match="CERTIFICATE_VERIFY_FAILED"):
            Webhook(sink.url("other.example", scheme="https"), allow=HERE, tries=1)(ALERT)
        assert sink.count == 1

"""From a URL to a store, and what is refused before anything is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from millpond import App
from millpond.errors import OptionError, StoreRefused
from millpond.store.open import open_store
from millpond.store.sqlite.network_file_systems import NETWORK, _kind, refuse_network
from tests.stores.acting import new_job, opened, put, the


@pytest.mark.parametrize(
    "url", ["", "jobs.db", "mysql://host/db", "http://x", "sqlite://jobs.db", "sqlite:///"]
)
def test_what_is_no_store_is_refused_with_examples(url):
    with pytest.raises(OptionError, match="sqlite:///"):
        open_store(url)


def test_a_relative_and_an_absolute_file():
    assert open_store("sqlite:///jobs.db").url == "sqlite:///jobs.db"
    assert open_store("sqlite:////var/jobs.db").url == "sqlite:////var/jobs.db"


def test_a_relative_file_stays_the_same_wherever_the_process_goes(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = opened("sqlite:///jobs.db")
    (job,) = put(store, new_job())
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.close()  # as a fork does
    assert the(store, job).id == job
    assert list((tmp_path / "elsewhere").iterdir()) == []
    store.close()


def test_no_url_shows_a_password():
    for url in ("redis://u:pw@host/0", "redis://host/0?password=pw", "postgresql://u:pw@host/db"):
        assert "pw" not in open_store(url).url


def test_a_schema_must_be_a_plain_name():
    for name in ("a-b", "A", "1a", 'x"; DROP TABLE jobs', ""):
        with pytest.raises(OptionError, match="schema"):
            open_store(f"postgresql://host/db?schema={name}")


MOUNTS = """
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
//server/share /mnt/with\\040space cifs rw 0 0
host:/x /homely fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/var/jobs.db", False),
        ("/home/me/jobs.db", True),
        ("/home/local/jobs.db", False),
        ("/mnt/with space/deep/jobs.db", True),
        ("/homely/jobs.db", True),
        ("/home2/jobs.db", False),
    ],
)
def test_the_innermost_mount_decides(tmp_path, path, refused):
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert (_kind(Path(path).parent, mounts) in NETWORK) == refused


def test_a_refusal_says_what_to_use_instead(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x {tmp_path} nfs4 rw 0 0\n")
    with pytest.raises(StoreRefused, match=r"network file system \(nfs4\).*PostgreSQL"):
        refuse_network(tmp_path / "not" / "yet" / "jobs.db", mounts)
    refuse_network(tmp_path / "jobs.db", tmp_path / "no such file")


@pytest.mark.parametrize(
    "url",
    [
        "redis://h:x",
        "redis://h:99999/0",
        "valkeys://u:pw@h:x/0",
        "postgresql://h:x/db",
        "sqlite:///\0",
        "sqlite:///a\0b.db",
    ],
)
def test_what_can_be_no_place_is_refused_when_the_app_is_made(url):
    with pytest.raises(OptionError, match="use sqlite:///") as refused:
        App(url)
    assert "pw" not in str(refused.value)

"""Settings: which layer wins, where a value came from, what is refused, what is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from millpond import config
from millpond.config import KEYS, hide_password, load, variable
from millpond.errors import OptionError
from millpond.store.protocol import Retention
from tests.cli.conftest import APP, URL, write_app


def write(folder: Path, text: str, name: str = "pyproject.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_each_layer_covers_the_one_before(folder):
    path = write(folder, '[tool.millpond]\nretention_dead = "1d"\n')
    variables = {"MILLPOND_RETENTION_DEAD": "2d"}
    told = [
        load(environment={}, folder=folder.parent),
        load(environment={}),
        load(environment=variables),
        load({"retention_dead": "3d"}, environment=variables),
        load({"retention_dead": "3d"}, {"retention_dead": "4d"}, environment=variables),
    ]
    assert [said["retention_dead"] / 86_400 for said in told] == [90, 1, 2, 3, 4]
    assert [said.source("retention_dead") for said in told] == [
        "default",
        str(path),
        "MILLPOND_RETENTION_DEAD",
        "--retention-dead",
        "code",
    ]


def test_the_default_retention_is_that_of_the_stores():
    kept = {name.removeprefix("retention_"): key.default for name, key in KEYS.items() if "retention" in name}
    assert Retention(**kept) == Retention()


def test_the_nearest_folder_upwards_counts(folder):
    write(folder, '[tool.millpond]\napp = "far:app"\n')
    deep = folder / "a" / "b"
    deep.mkdir(parents=True)
    write(deep, '[project]\nname = "not-about-millpond"\n')
    assert load(environment={}, folder=deep)["app"] == "far:app"
    write(deep.parent, 'app = "near:app"\n', "millpond.toml")
    assert load(environment={}, folder=deep)["app"] == "near:app"


def test_millpond_toml_counts_before_pyproject(folder):
    write(folder, '[tool.millpond]\napp = "second:app"\n')
    write(folder, 'app = "first:app"\n', "millpond.toml")
    assert load(environment={})["app"] == "first:app"


def test_an_sqlite_file_lies_beside_the_file_that_names_it(folder):
    write(folder, f'store = "{URL}"\n', "millpond.toml")
    deep = folder / "deep"
    deep.mkdir()
    assert load(environment={}, folder=deep)["store"] == f"sqlite:///{folder}/jobs.db"


def test_an_empty_variable_says_nothing():
    assert load(environment={"MILLPOND_APP": " "})["app"] is None


@pytest.mark.parametrize(
    "name",
    ["MILLPOND_POOL_KIND", "MILLPOND_TEST_REDIS", "MILLPOND_SERVICE_HOST", "MILLPOND_PORT_80_TCP_ADDR"],
)
def test_variables_of_others_are_let_be(name):
    assert load(environment={name: "x"}).source("app") == "default"


def test_unknown_keys_are_refused_with_the_nearest_one(folder):
    with pytest.raises(OptionError, match="did you mean 'MILLPOND_STORE'"):
        load(environment={"MILLPOND_STOR": "x"})
    with pytest.raises(OptionError, match=r"--retention-ded is not a setting.*did you mean 'retention_dead'"):
        load({"retention_ded": "1d"}, environment={})
    path = write(folder, 'stoer = "x"\n', "millpond.toml")
    with pytest.raises(OptionError, match=f"{path}: 'stoer' is not.*did you mean 'store'"):
        load(environment={})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("retention_dead = true", "retention_dead must be a duration"),
        ('retention_dead = "soon"', "retention_dead must be a duration"),
        ("app = 3", "app must be 'module:attribute'"),
        ('app = "jobs.app"', "app must be 'module:attribute'"),
        ('store = "jobs.db"', "store must be a URL"),
        ('store = "redis://h:99999"', "store is not a valid URL: Port out of range"),
        ('store = "redis://[h"', "store is not a valid URL: Invalid IPv6"),
        ("app = ", "is not valid TOML"),
    ],
)
def test_wrong_values_are_refused_with_their_place(folder, text, complaint):
    path = write(folder, text, "millpond.toml")
    with pytest.raises(OptionError, match=complaint) as caught:
        load(environment={})
    assert str(path) in str(caught.value)


def test_the_table_must_be_a_table(folder):
    write(folder, "[tool]\nmillpond = 3\n")
    with pytest.raises(OptionError, match=r"write \[tool.millpond\]"):
        load(environment={})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("redis://:secret@host:6379/0", "redis://:***@host:6379/0"),
        ("redis://:se/cr@et@host/0", "redis://:***@host/0"),
        ("postgresql://host/db?user=me&password=secret&a=b", "postgresql://host/db?user=me&password=***&a=b"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("sqlite:////var/jobs.db", "sqlite:////var/jobs.db"),
    ],
)
def test_passwords_are_hidden(url, shown):
    assert hide_password(url) == shown


def test_a_password_is_not_shown_by_an_error(folder, run):
    with pytest.raises(OptionError) as caught:
        load({"store": "//me:secret@host"}, environment={})
    assert "--store" in str(caught.value)
    result = run("jobs", "--store", "mysql://me:secret@host/db", code=2)
    assert "secret" not in result.output
    assert "is not a store" in result.stderr


# --- millpond config ---------------------------------------------------------------------------------------
def test_the_command_shows_each_value_and_its_source(run, ask, monkeypatch):
    monkeypatch.setenv("MILLPOND_STORE", "postgresql://me:secret@host/db")
    said = ask("config", "--app", "no.such:app", catch_exceptions=False)
    assert list(said["settings"]) == list(KEYS)
    assert said["file"] is None
    assert said["settings"]["app"] == {"value": "no.such:app", "source": "--app", "variable": "MILLPOND_APP"}
    assert said["settings"]["store"]["value"] == "postgresql://me:***@host/db"
    assert said["settings"]["store"]["source"] == "MILLPOND_STORE"
    assert said["settings"]["retention_dead"]["source"] == "default"
    shown = run("config")
    assert all(key in shown.stdout and variable(key) in shown.stdout for key in KEYS)
    assert "secret" not in shown.output


def test_the_store_of_the_code_counts_before_settings(ask, app_name, monkeypatch):
    monkeypatch.setenv("MILLPOND_STORE", "sqlite:///other.db")
    said = ask("config", "--app", app_name)["settings"]["store"]
    assert (said["value"], said["source"]) == (URL, f"the code of {app_name}")


def test_a_long_value_is_shown_whole(run):
    url = f"sqlite:////{'long/' * 40}jobs.db"
    assert url in run("config", "--store", url).stdout


def test_an_app_that_cannot_be_imported_is_noted(run):
    result = run("config", "--app", "no.such:app")
    assert "note: cannot import the app no.such:app (from --app)" in result.stderr


def test_an_unknown_setting_stops_every_command(folder, run):
    write(folder, 'stoer = "x"\n', "millpond.toml")
    for command in ("config", "jobs", "check"):
        assert "did you mean 'store'?" in run(command, code=3).stderr


def test_an_app_named_in_a_file_is_found_from_a_folder_below(folder, ask, monkeypatch):
    name = write_app(folder, "from millpond.app import App\napp = App('sqlite:////nowhere/x.db')\n")
    write(folder, f'app = "{name}"\n', "millpond.toml")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert ask("config")["settings"]["store"]["value"] == "sqlite:////nowhere/x.db"


def test_the_module_needs_no_store_and_no_click():
    source = Path(config.__file__).read_text(encoding="utf-8")
    assert "millpond.store" not in source
    assert "click" not in source


def test_a_retention_beyond_all_bounds_is_refused(run):
    said = run(
        "prune", "--store", "sqlite:///jobs.db", "--retention-dead", "9999999999999999d", code=2
    ).stderr
    assert "--retention-dead must be at most 100 years" in said


def test_a_folder_that_was_deleted_has_no_settings(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert load(environment={})["store"] is None


# --- two stores --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["run", "migrate", "check"])
def test_a_store_of_the_code_and_another_of_the_settings_are_refused(
    run, folder, app_name, monkeypatch, command
):
    monkeypatch.setenv("MILLPOND_STORE", "sqlite:///other.db")
    said = run(command, "--app", app_name, code=1 if command == "check" else 2).output
    assert f"MILLPOND_STORE names sqlite:///other.db and the code of {app_name} names {URL}" in said
    assert "App() without a URL" in said
    assert not (folder / "jobs.db").exists()
    assert not (folder / "other.db").exists()


def test_a_file_that_names_another_store_is_refused_too(run, folder, app_name):
    write(folder, 'store = "sqlite:///other.db"\n', "millpond.toml")
    assert "millpond.toml names sqlite:////" in run("migrate", "--app", app_name, code=2).stderr


def test_the_same_file_named_twice_is_one_store(run, folder, app_name, monkeypatch):
    monkeypatch.setenv("MILLPOND_STORE", f"sqlite:///{folder / 'jobs.db'}")
    run("migrate", "--app", app_name)
    run("check", "--app", app_name)


def test_an_app_without_a_url_takes_the_store_of_the_settings(run, ask, folder, monkeypatch):
    name = write_app(folder, APP.replace(f'App("{URL}")', "App()"))
    monkeypatch.setenv("MILLPOND_STORE", "sqlite:///other.db")
    assert ask("migrate", "--app", name)["store"] == "sqlite:///other.db"
    assert ask("check", "--app", name)["ok"] is True

"""Roles of a PostgreSQL server for one test: with rights and settings of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.stores.places import address_and_name


class Role:
    """A role that may log in, the URL of the store as that role, and the administrator's connection."""

    def __init__(self, url: str, admin: psycopg.Connection[Any]) -> None:
        self.name = f"r{uuid.uuid4().hex[:12]}"
        self.admin, self.schema = admin, address_and_name(url)[1]
        self.url = url.replace("://postgres@", f"://{self.name}@", 1)

    def order(self, text: str) -> list[Any]:
        """Run a statement as the administrator."""
        cursor = self.admin.execute(text.format(role=self.name, schema=self.schema).encode())
        return cursor.fetchall() if cursor.description else []

    def set(self, name: str, value: str) -> None:
        """From now on the role's sessions begin with this setting."""
        self.order(f"ALTER ROLE {{role}} SET {name} = {value}")

    def reset(self, name: str) -> None:
        self.order(f"ALTER ROLE {{role}} RESET {name}")


@contextmanager
def a_role(url: str, *, may: str = "SUPERUSER") -> Iterator[Role]:
    """A role that exists for one test."""
    with psycopg.connect(address_and_name(url)[0], autocommit=True) as admin:
        role = Role(url, admin)
        role.order(f"CREATE ROLE {{role}} LOGIN {may}")
        try:
            yield role
        finally:
            role.order("DROP OWNED BY {role} CASCADE")
            role.order("DROP ROLE {role}")

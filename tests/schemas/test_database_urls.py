"""Which addresses of databases are taken from the command line."""

from __future__ import annotations

import pytest

from amphitrite.schemas.database_urls import refuse_password
from amphitrite.schemas.errors import Error

TAKEN = (
    None,
    "",
    "sqlite:////var/lib/amphitrite.db",
    "postgresql+psycopg://user@host/name?sslmode=require",
    "postgresql+psycopg:///name?host=/run/postgresql",
    "postgresql+psycopg://user:@host/name",
    "//[not a url",
)
REFUSED = (
    "postgresql+psycopg://user:hush@host/name",
    "postgresql+psycopg://host/name?user=me&password=hush",
    "postgresql+psycopg://user:hu%2Fsh@[::1]:5432/name",
)


@pytest.mark.parametrize("url", TAKEN)
def test_without_a_password(url: str | None) -> None:
    refuse_password("--database", url)


@pytest.mark.parametrize("url", REFUSED)
def test_with_a_password(url: str) -> None:
    with pytest.raises(Error, match="--database has a password") as refused:
        refuse_password("--database", url, variable="ML_DATABASE_URL")
    assert "hush" not in str(refused.value) and "ML_DATABASE_URL" in str(refused.value.hint)

"""A look into a database from outside."""

from __future__ import annotations

from sqlalchemy import create_engine, text


def rows(url: str, statement: str, **values: object) -> list[tuple]:
    """The rows of a statement."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            result = connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()

"""Screening: what is settled on this machine before a service with a quota is asked.

ada@@web.de         malformed             invalid, and never submitted
ada@my_firm.de      `lenient` accepts it  unknown (`unusual_form`): a service would refuse it
ada@gone.example    no mail servers       invalid with `screen="mx"`
ada@web.de          stays for the backend; its row gets suggestion and normal form (`fill`)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..backend import Event, Noticed, Settled
from ..checks.syntax.column import normal_forms, observe_column
from ..model.arrow import to_bools
from ..model.table import SOURCE_LOCAL, complete_table
from ..model.words import UNUSUAL_FORM, Status, ValidationType, Verdict
from .backend import LocalBackend
from .batch import ObservedBatch, Positions, constant, constant_moment
from .domains import DomainRows, gather_groups


class Screener:
    """Settles malformed addresses and, on request, domains without mail servers.

    It adds suggestions to the other rows.
    """

    def __init__(
        self,
        backend: LocalBackend,
        *,
        with_dns: bool,
        owns_backend: bool = False,
        lenient: bool = False,
        for_service: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.backend = backend
        self.with_dns = with_dns
        self.owns_backend = owns_backend
        self.lenient = lenient
        self.for_service = for_service  # which refuses the forms that `lenient` accepts
        self.clock = clock
        self.batch: ObservedBatch | None = None
        self.seen_at: Positions = np.empty(0, np.int64)

    async def settle(
        self, addresses: pa.StringArray, positions: Positions, validation_type: ValidationType
    ) -> AsyncIterator[Event]:
        """Yield rows that are settled here; `positions` (ascending) are those in the column."""
        self.batch = batch = await self.backend.observe_batch(addresses, lenient=self.lenient)
        self.seen_at = positions
        try:
            if self.with_dns and len(batch.domains):
                await self.backend.domains.require_resolver()
            malformed, rows = batch.malformed_rows(validation_type, self.clock())
            if len(malformed):
                yield Settled(rows, positions=malformed)
            if self.lenient and self.for_service:
                odd = self.odd_positions(batch)
                if len(odd):
                    rows = self.odd_rows(batch, odd, validation_type)
                    yield Settled(rows, positions=odd)
            if self.with_dns:
                async for event in self.settle_domains(batch, validation_type):
                    yield event
        finally:
            if self.owns_backend:
                await self.backend.aclose()

    def odd_positions(self, batch: ObservedBatch) -> Positions:
        """The addresses that are accepted here and not by a service."""
        accepted = batch.accepted()
        texts = batch.rows["text"].take(accepted)
        is_odd = pc.invert(observe_column(texts)["well_formed"])
        return accepted[to_bools(is_odd)]

    def odd_rows(
        self, batch: ObservedBatch, positions: Positions, validation_type: ValidationType
    ) -> pa.Table:
        """Their rows: nobody is asked about them, so that nothing is known."""
        size = len(positions)
        seen = batch.rows.take(positions)
        columns = {
            "email": seen["text"],
            "status": constant(Status.DONE, size),
            "validation_type": constant(validation_type, size),
            "result": constant(Verdict.UNKNOWN, size),
            "reasons": constant(UNUSUAL_FORM, size),
            "source": constant(SOURCE_LOCAL, size),
            "checked_at": constant_moment(self.clock(), size),
            "normalized": normal_forms(seen),
            **batch.flags_of(seen),
        }
        return complete_table(columns, size)

    async def settle_domains(
        self, batch: ObservedBatch, validation_type: ValidationType
    ) -> AsyncIterator[Event]:
        """Yield the rows of domains that cannot receive mail; the others stay for the backend."""
        stage = self.backend.domains
        rows = DomainRows(batch.domain_codes(), len(batch.domains))
        observed = stage.observe(batch.domain_names(), ValidationType.MX)
        async for group in gather_groups(observed):
            dead = [seen for seen in group if seen.dns.is_undeliverable]
            if dead:
                yield stage.settle_group(batch, validation_type, rows, dead, self.clock())
        for notice in stage.take_notices():
            yield Noticed(notice)

    def fill(self, rows: pa.Table, positions: Positions) -> pa.Table:
        """Add suggestion and normal form to a service's rows, which do not have them."""
        batch = self.batch
        seen_at = self.seen_at
        if batch is None or not len(seen_at):
            return rows
        places = np.searchsorted(seen_at, positions)
        nearest = places.clip(max=len(seen_at) - 1)
        is_other = seen_at[nearest] != positions
        index = pa.array(nearest, pa.int64(), mask=is_other)  # null: it was not seen here
        seen = batch.rows.take(index)
        known = {"suggestion": batch.suggestions(seen), "normalized": normal_forms(seen)}
        for name, values in known.items():
            column = pc.coalesce(rows[name].combine_chunks(), values)
            position = rows.schema.get_field_index(name)
            rows = rows.set_column(position, rows.schema.field(name), column)
        return rows

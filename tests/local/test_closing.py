"""Backends close their sockets: when told to, at the end of a block, or when they are forgotten."""

import asyncio
import gc
import inspect
import time
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

import mailverdict as mv
from mailverdict.errors import BackendError
from mailverdict.loop import run_sync
from mailverdict.model.settings import FUTURE_CONSTANTS, LocalOptions, LocalSettings
from mailverdict.sandbox import World

DESCRIPTORS = Path("/proc/self/fd")
needs_proc = pytest.mark.skipif(not DESCRIPTORS.exists(), reason="counts descriptors in /proc")
EMAIL = "ada@one.example"


@pytest.fixture(scope="module")
def world():
    with World() as opened:
        # What is opened once is open now.
        mv.check(EMAIL, validation_type="mx", backend=opened.backend)
        yield opened


def open_descriptors() -> int:
    gc.collect()
    return sum(1 for _ in DESCRIPTORS.iterdir())


def descriptors_after(limit: int) -> int:
    """Descriptors once no more than `limit` are open, or after five seconds."""
    until = time.monotonic() + 5
    while (count := open_descriptors()) > limit and time.monotonic() < until:
        run_sync(asyncio.sleep(0.01))
    return count


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("count", [50, 1_000])
def test_forgotten_backends_leave_no_descriptor_open(world, count):
    before = open_descriptors()
    for i in range(count):
        use = (mv.check, mv.explain)[i % 2]
        use(EMAIL, validation_type="mx", backend=world.make_backend())
    assert descriptors_after(before) <= before


@pytest.mark.slow
@needs_proc
def test_backends_used_on_other_event_loops_leave_no_descriptor_open(world):
    before = open_descriptors()
    for _ in range(20):
        backend = world.make_backend()
        asyncio.run(backend.check(EMAIL, "mx"))
        mv.check(EMAIL, validation_type="mx", backend=backend)
    backend.close()
    del backend
    assert descriptors_after(before) <= before


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("how", ["close", "with", "async with"])
def test_a_closed_backend_has_no_descriptor_open(world, how):
    before = open_descriptors()
    backend = world.make_backend()
    if how == "close":
        mv.check(EMAIL, validation_type="mx", backend=backend)
        assert open_descriptors() > before
        backend.close()
    elif how == "with":
        with backend as same:
            assert same is backend
            mv.verify([EMAIL], validation_type="mx", backend=backend)
    else:

        async def use() -> None:
            async with backend as same:
                await same.check(EMAIL, "mx")

        asyncio.run(use())
    assert open_descriptors() <= before


def test_a_closed_backend_refuses_to_be_used(world):
    backend = world.make_backend()
    backend.close()
    backend.close()
    for call in (mv.check, mv.explain):
        with pytest.raises(BackendError, match="was closed; make a new one"):
            call(EMAIL, validation_type="mx", backend=backend)
    with pytest.raises(BackendError, match="was closed"):
        mv.verify([EMAIL], validation_type="mx", backend=backend)


def test_a_call_leaves_the_callers_backend_open(world):
    with world.make_backend() as backend:
        mv.plan([EMAIL], backend=backend)
        mv.verify([EMAIL], validation_type="mx", backend=world.url, screen=backend, journal=None)
        mv.audit_host(backend, domains=["one.example"])
        assert mv.check(EMAIL, validation_type="mx", backend=backend).result == "valid"


def test_the_signature_names_every_setting_that_stays_with_its_default():
    signature = inspect.signature(mv.LocalBackend).parameters
    settings = [each.name for each in fields(LocalSettings)]
    assert set(get_type_hints(LocalOptions)) == set(settings)
    assert list(signature) == [name for name in settings if name not in FUTURE_CONSTANTS]
    everything = inspect.signature(LocalSettings).parameters
    for name, parameter in signature.items():
        assert parameter.default == everything[name].default
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY

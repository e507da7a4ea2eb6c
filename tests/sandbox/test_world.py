"""The sandbox gives the same answers each time, also on a machine that is too busy for its time-outs."""

from __future__ import annotations

import mailverdict as mv
from mailverdict.sandbox import World

# No server answers so fast.
IMPATIENT = {"connect_timeout": 0.001, "command_timeout": 0.001, "dns_timeout": 0.001}


def answers(world, **settings):
    addresses = [
        "ada@plain.example",
        "nobody@plain.example",
        "ada@tarpit.example",
        "ada@gone.example",
        "ada@servfail.example",
        "not an address",
    ]
    backend = world.make_backend(resolver_check=False, **settings)
    out = mv.verify(addresses, validation_type="smtp", backend=backend, journal=None)
    return out["verdict"].tolist(), out["why"].fillna("").tolist()


def test_a_silence_that_no_script_explains_does_not_count():
    with World() as world:
        assert answers(world, **IMPATIENT) == answers(world)


def test_a_silence_of_a_script_is_not_asked_about_again():
    def sessions(backend):
        before = world.smtp.stats("mx.tarpit.example").sessions
        mv.verify(["ada@tarpit.example"], validation_type="smtp", backend=backend, journal=None)
        return world.smtp.stats("mx.tarpit.example").sessions - before

    with World() as world:
        once = world.make_backend()
        once.world = None
        assert sessions(world.backend) == sessions(once) > 0


def test_what_a_script_explains():
    with World() as world:
        assert world.explains("tarpit.example", "timeout")
        assert not world.explains("plain.example", "timeout")
        assert not world.explains("real-firm.example", "")
        assert world.explains("servfail.example", "inconclusive")

"""A realistic column of addresses, the same for the same seed.

Made up, and shaped after customer exports: 58 % of the rows at ten providers, a long tail of about
47,000 domains, capitals in some rows, 3 % malformed in 30 ways, 1 % non-ASCII.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

PROVIDERS = {
    "gmail.com": 26.0,
    "yahoo.com": 8.0,
    "hotmail.com": 7.0,
    "outlook.com": 5.0,
    "icloud.com": 3.5,
    "aol.com": 2.5,
    "gmx.de": 2.0,
    "web.de": 1.7,
    "orange.fr": 1.3,
    "qq.com": 1.0,
}
PROVIDER_SHARE, MALFORMED_SHARE, NON_ASCII_SHARE, CAPITALS_SHARE = 0.58, 0.03, 0.01, 0.05
TAIL_DOMAINS = 48_500  # the last few are so rare that a million rows miss some of them
TAIL_SLOPE = 0.75


def words(text: str) -> tuple[str, ...]:
    """Split at blanks."""
    return tuple(text.split())


FIRST = words("""
    anna ben carla david elena felix grace hugo ines jan karin luca maria nina oscar paula quentin rosa sam tina uwe
    vera wim xenia yusuf zoe alice bruno chloe dieter emma frank gina hans isabel jose kate leo mona noah olga peter
    rita sven tom ursula
""")
LAST = words("""
    adler baker costa dupont evans fischer garcia hansen ivanov jones keller lopez martin novak olsen petit quinn rossi
    silva taylor ullmann vogel weber xu young zimmer abbott brandt clark duval eriksen ferrari gruber hughes ito jansen
    kowalski lang
""")
FUNCTIONS = words(
    "info sales support contact admin office billing hr jobs noreply webmaster service"
)
THEMES = words("""
    north south blue green red silver alpine river lake forest stone iron copper solar lunar urban metro global central
    prime nova terra aqua vento delta sigma orbit pixel cargo trade craft build steel timber garden market health
    dental legal media
""")
KINDS = words("""
    works group labs shop farm tech studio partners systems logistics motors foods travel school clinic bank energy
    design printing energies consulting software trading services foundation insurance ventures networks supply hotel
""")
TLDS = words("com de fr co.uk org net it es nl io eu ch at pl com.br ca com.au se info biz")
ACCENTED = words("jörg françois zoë søren andré łukasz márta 石井 мария ελένη")
IDN = words("""
    müller.de café-paris.fr bücher.example.com xn--mller-kva.de почта.com 例え.jp señor.es ångström.se
""")

# Each takes a local part and a domain and breaks the address in one way.
MALFORMED: dict[str, Callable[[str, str], str]] = {
    "no @": lambda a, d: a + d,
    "no @ but (at)": lambda a, d: f"{a}(at){d}",
    "two @": lambda a, d: f"{a}@@{d}",
    "@ twice": lambda a, d: f"{a}@home@{d}",
    "nothing before @": lambda a, d: f"@{a}.{d}",
    "nothing after @": lambda a, d: f"{a}@",
    "two dots before @": lambda a, d: f"{a}..x@{d}",
    "two dots after @": lambda a, d: f"{a}@{d.replace('.', '..', 1)}",
    "dot first": lambda a, d: f".{a}@{d}",
    "dot before @": lambda a, d: f"{a}.@{d}",
    "dot after @": lambda a, d: f"{a}@.{d}",
    "dot last": lambda a, d: f"{a}@{d}.",
    "no dot": lambda a, d: f"{a}@{d.partition('.')[0]}",
    "blank before @": lambda a, d: f"{a[:2]} {a[2:]}@{d}",
    "blank around @": lambda a, d: f"{a} @ {d}",
    "blank in domain": lambda a, d: f"{a}@{d.replace('.', ' .', 1)}",
    "comma for dot": lambda a, d: f"{a}@{d.replace('.', ',')}",
    "two addresses": lambda a, d: f"{a}@{d};{a}@gmail.com",
    "display name": lambda a, d: f"{a.title()} <{a}@{d}>",
    "angle brackets": lambda a, d: f"<{a}@{d}>",
    "mailto": lambda a, d: f"mailto:{a}@{d}",
    "quoted local part": lambda a, d: f'"{a}"@{d}',
    "address literal": lambda a, d: f"{a}@[192.0.2.7]",
    "comment": lambda a, d: f"{a}(work)@{d}",
    "underscore in domain": lambda a, d: f"{a}@my_{d}",
    "hyphen first": lambda a, d: f"{a}@-{d}",
    "numeric top level": lambda a, d: f"{a}@{d}.123",
    "control character": lambda a, d: f"{a}\x00@{d}",
    "reserved name": lambda a, d: f"{a}@{d.partition('.')[0]}.local",
    "label too long": lambda a, d: f"{a}@{'x' * 64}.{d}",
}


def make_addresses(n: int, seed: int = 7) -> list[str]:
    """Give `n` addresses, unique also without regard to case; the same for the same seed.

    >>> make_addresses(3, seed=1) == make_addresses(3, seed=1)
    True
    """
    rng = random.Random(seed)
    domains, weights = domain_pool(rng)
    drawn = iter(())
    seen: set[str] = set()
    made: list[str] = []
    while len(made) < n:
        domain = next(drawn, None)
        if domain is None:
            drawn = iter(rng.choices(domains, cum_weights=weights, k=n))
            continue
        address = make_address(rng, domain)
        if address.lower() not in seen:
            seen.add(address.lower())
            made.append(address)
    return made


def domain_pool(rng: random.Random) -> tuple[list[str], list[float]]:
    """All domains and their cumulated weights: the providers first, then the tail."""
    names = [
        f"{a}{sep}{b}.{tld}"
        for a, sep, b, tld in itertools.product(THEMES, ("", "-", "the"), KINDS, TLDS)
    ]
    tail = rng.sample(names, TAIL_DOMAINS)
    ranks = [(rank + 30) ** -TAIL_SLOPE for rank in range(TAIL_DOMAINS)]
    scale = (1 - PROVIDER_SHARE) / sum(ranks)
    share = PROVIDER_SHARE / sum(PROVIDERS.values())
    weights = [w * share for w in PROVIDERS.values()] + [w * scale for w in ranks]
    return [*PROVIDERS, *tail], list(itertools.accumulate(weights))


def make_address(rng: random.Random, domain: str) -> str:
    """One address at `domain`: usual, malformed, non-ASCII or written in capitals."""
    local = make_local(rng, domain)
    kind = rng.random()
    if kind < MALFORMED_SHARE:
        return rng.choice(tuple(MALFORMED.values()))(local, domain)
    if kind < MALFORMED_SHARE + NON_ASCII_SHARE:
        return make_non_ascii(rng, local, domain)
    if kind < MALFORMED_SHARE + NON_ASCII_SHARE + CAPITALS_SHARE:
        return rng.choice(
            (f"{local.title()}@{domain}", f"{local}@{domain.title()}", f"{local}@{domain}".upper())
        )
    return f"{local}@{domain}"


def make_local(rng: random.Random, domain: str) -> str:
    """A usual local part: a function at small domains now and then, else a name with a number."""
    if domain not in PROVIDERS and rng.random() < 0.1:
        return rng.choice(FUNCTIONS)
    first, last, number = rng.choice(FIRST), rng.choice(LAST), rng.randrange(20_000)
    style = rng.random()
    if style < 0.45:
        return f"{first}.{last}{number}"
    if style < 0.65:
        return f"{first}{last}{number}"
    if style < 0.8:
        return f"{first[0]}{last}{number}"
    if style < 0.95:
        return f"{first}_{last}{number}"
    return f"{first}.{last}+{rng.choice(THEMES)}{number}"


def make_non_ascii(rng: random.Random, local: str, domain: str) -> str:
    """An internationalised local part, an internationalised domain, or both."""
    accented = f"{rng.choice(ACCENTED)}.{local}"
    return rng.choice(
        (f"{accented}@{domain}", f"{local}@{rng.choice(IDN)}", f"{accented}@{rng.choice(IDN)}")
    )

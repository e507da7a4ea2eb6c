"""The theme: readable in both schemes, distinguishable without colour vision, and the only source of colours."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from mailverdict import theme
from mailverdict.frames.results import BUCKETS
from mailverdict.model.words import ACTIONS, Verdict
from tests.doubles.tables import each_row

ROOT = Path(__file__).parents[1]
SCHEMES = ("light", "dark")
SURFACES = ("page", "surface", "sunken")
KEYS = tuple(theme.MARKS)
# What colour-blind people perceive, of linear RGB: Machado, Oliveira, Fernandes (2009), "A Physiologically-based Model for
# Simulation of Color Vision Deficiency", IEEE Transactions on Visualization and Computer Graphics 15(6), severity 1.0.
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = np.array([0.95047, 1.0, 1.08883])  # D65
FAR = 12  # CIEDE2000; about 1 can just be perceived side by side, and 10 is told apart at a glance


def linear(name, scheme):
    text = getattr(theme.COLOURS[name], scheme)
    values = np.array([int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other, scheme):
    """WCAG 2.2, "contrast ratio"."""
    low, high = sorted(
        float(linear(name, scheme) @ (0.2126, 0.7152, 0.0722)) for name in (one, other)
    )
    return (high + 0.05) / (low + 0.05)


def to_lab(rgb):
    scaled = XYZ @ np.clip(rgb, 0, 1) / WHITE
    x, y, z = np.where(scaled > 216 / 24389, np.cbrt(scaled), (24389 / 27 * scaled + 16) / 116)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(one, other):
    """Sharma, Wu, Dalal (2005), "The CIEDE2000 Color-Difference Formula", Color Research and Application 30(1)."""
    (light1, a1, b1), (light2, a2, b2) = one, other
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    stretch = 1 + 0.5 * (1 - math.sqrt(mean**7 / (mean**7 + 25**7)))
    chroma1, chroma2 = math.hypot(a1 * stretch, b1), math.hypot(a2 * stretch, b2)
    hue1, hue2 = (math.degrees(math.atan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    grey = chroma1 * chroma2 == 0
    turn = 0 if grey else (hue2 - hue1 + 180) % 360 - 180
    if grey:
        hue = hue1 + hue2
    elif abs(hue1 - hue2) <= 180:
        hue = (hue1 + hue2) / 2
    else:
        hue = (hue1 + hue2 + (360 if hue1 + hue2 < 360 else -360)) / 2
    light, chroma = (light1 + light2) / 2, (chroma1 + chroma2) / 2
    weight = (
        1
        - 0.17 * math.cos(math.radians(hue - 30))
        + 0.24 * math.cos(math.radians(2 * hue))
        + 0.32 * math.cos(math.radians(3 * hue + 6))
        - 0.20 * math.cos(math.radians(4 * hue - 63))
    )
    d_light = (light2 - light1) / (
        1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2)
    )
    d_chroma = (chroma2 - chroma1) / (1 + 0.045 * chroma)
    d_hue = (
        2
        * math.sqrt(chroma1 * chroma2)
        * math.sin(math.radians(turn / 2))
        / (1 + 0.015 * chroma * weight)
    )
    rotation = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7))
    rotation *= math.sin(math.radians(60 * math.exp(-(((hue - 275) / 25) ** 2))))
    return math.sqrt(d_light**2 + d_chroma**2 + d_hue**2 + rotation * d_chroma * d_hue)


@each_row(
    ("one", "other", "expected"),
    [  # pairs 1, 9 and 17 of the test data of Sharma, Wu, Dalal (2005), table 1
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.4900, -0.0010), (50, -2.4900, 0.0009), 7.1792),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
    ],
)
def test_the_distance_is_that_of_the_published_test_data(one, other, expected):
    assert ciede2000(one, other) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
class TestContrast:
    """WCAG 2.2: 1.4.3 asks 4.5:1 of text, 1.4.11 asks 3:1 of what must be seen to understand or use a page."""

    def test_texts_have_enough_contrast(self, scheme):
        names = ("text", "text-soft", "accent", *(f"{key}-text" for key in KEYS))
        for name, surface in itertools.product(names, SURFACES):
            assert contrast(name, surface, scheme) >= 4.5, (name, surface)

    def test_lines_and_bars_have_enough_contrast(self, scheme):
        for name, surface in itertools.product(("line-strong", "focus", *KEYS), SURFACES):
            assert contrast(name, surface, scheme) >= 3, (name, surface)

    def test_badges_have_enough_contrast(self, scheme):
        for key in KEYS:
            assert contrast(f"{key}-text", f"{key}-soft", scheme) >= 4.5, key
            assert contrast(key, f"{key}-soft", scheme) >= 3, key

    def test_what_stands_on_the_accent_has_enough_contrast(self, scheme):
        assert contrast("on-accent", "accent", scheme) >= 4.5
        assert contrast("text", "accent-soft", scheme) >= 4.5
        assert contrast("accent", "accent-soft", scheme) >= 4.5


@each_row("scheme", SCHEMES)
@each_row("vision", VISION)
def test_verdicts_can_be_told_apart_without_full_colour_vision(vision, scheme):
    seen = {key: to_lab(VISION[vision] @ linear(key, scheme)) for key in KEYS}
    near = {
        pair: ciede2000(*(seen[key] for key in pair)) for pair in itertools.combinations(KEYS, 2)
    }
    assert {pair: round(distance, 1) for pair, distance in near.items() if distance < FAR} == {}


def test_each_verdict_action_and_state_has_a_colour_a_word_and_a_shape():
    names = {*map(str, Verdict), *ACTIONS, *BUCKETS}
    assert names <= set(theme.MARK_OF) == set(theme.LABELS)
    assert set(theme.MARK_OF.values()) == set(theme.MARKS)
    marks = theme.MARKS.values()
    assert (
        len({mark.shape for mark in marks})
        == len({mark.glyph for mark in marks})
        == len({m.label for m in marks})
    )
    assert theme.colour("send") == theme.COLOURS["valid"].light


def test_the_stylesheet_defines_what_it_uses_in_both_schemes_and_only_inside_its_scope():
    text = theme.stylesheet(".box")
    used = set(re.findall(r"var\((--mv-[a-z0-9-]+)", text))
    defined = set(re.findall(r"(--mv-[a-z0-9-]+):", text))
    assert used <= defined
    # By the browser, by the page around.
    assert text.count(f"--mv-valid:{theme.COLOURS['valid'].dark}") == 2
    selectors = [
        s
        for head in re.findall(r"(?:^|[{}])([^{}@]+)\{", text, re.M)
        for s in re.split(r",(?![^(]*\))", head)
    ]
    assert len(selectors) > 20
    assert [s for s in selectors if not s.strip().startswith(".box")] == []


def test_a_badge_has_word_and_shape_and_escapes_its_label():
    assert theme.badge("drop").endswith("</svg>Remove</span>")
    assert "&lt;b&gt;" in theme.badge("valid", "<b>")
    assert 'aria-hidden="true"' in theme.symbol("risky")


LITERAL = re.compile(
    r"(?<![&\w])#(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})\b|\b(?:rgb|hsl|oklch|lab)a?\(|:\s*(?:white|black|gr[ae]y|red)\b"
)
PAGES = (
    *(
        "src/mailverdict/service/http/page.html",
        "docs/site.css",
        "src/mailverdict/reports/page.css",
    ),
    "src/mailverdict/widgets/static/page.css",
)
CODE = (
    "reports/page.py",
    "reports/page.js",
    "service/http/page.py",
    "widgets/audit.py",
    "widgets/server.py",
)
SCRIPTS = ("connection.js", "mailing.js", "page.js", "parts.js", "run.js", "steps.js", "table.js")


@each_row("path", PAGES)
def test_pages_have_no_colours_of_their_own(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert "var(--mv-" in text
    assert LITERAL.findall(text) == []
    assert set(re.findall(r"var\((--mv-[a-z0-9-]+)", text)) <= set(
        re.findall(r"(--mv-[a-z0-9-]+):", theme.stylesheet())
    )


@each_row("path", [*CODE, *(f"widgets/static/{name}" for name in SCRIPTS)])
def test_code_of_pages_has_no_colours_of_its_own(path):
    assert LITERAL.findall((ROOT / "src/mailverdict" / path).read_text(encoding="utf-8")) == []


def test_each_script_and_style_sheet_of_the_audit_is_looked_at():
    looked_at = {*SCRIPTS, *(Path(path).name for path in PAGES)}
    folder = ROOT / "src/mailverdict/widgets/static"
    assert {
        path.name for path in folder.iterdir() if path.is_file()
    } <= looked_at  # `vendor` is not ours


@each_row(
    "text", ["color: #fff;", "border:1px solid #1a7f37", "background: rgb(0 0 0)", "color: white"]
)
def test_a_colour_is_recognized(text):
    assert LITERAL.search(text)

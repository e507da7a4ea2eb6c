"""HTML pages as lines of text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.bounces.page_text import MAX_PAGE, page_text
from tests.doubles.tables import each_row


@each_row(
    ("page", "text"),
    [
        ("<p>a<br>b</p><div>c</div>d", "a\nb\nc\nd"),
        ("<b>ada</b>@firm<span>.example</span>", "ada@firm.example"),
        ("<table><tr><td>Error:</td><td>550 5.1.1</td></tr></table>", "Error:\n550 5.1.1"),
        ("a\n  b&nbsp;&lt;c&gt;", "a b <c>"),
        ("<head><title>x</title><style>y</style></head><body>a<script>z</script>b</body>", "ab"),
        ("<style>y</style>a<!-- b -->", "a"),
        ("<head>x<body>a", "a"),
        ("", ""),
    ],
)
def test_what_a_reader_sees(page, text):
    assert page_text(page) == text


def test_a_page_is_cut():
    assert len(page_text("a " * MAX_PAGE)) < MAX_PAGE


@given(st.text(alphabet="<>/!-=\"' &;abp\n"))
def test_no_page_raises_an_error(page):
    page_text(page)

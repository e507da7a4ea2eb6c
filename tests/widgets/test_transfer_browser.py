"""Files in pieces in Debian's chromium, with a kernel that loses messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailverdict.widgets.audit import front_end
from tests.widgets.browser import CHROMIUM, AuditPage

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
    ),
]
SIZE = 2 * 2**20 + 5
# `isLost(n)` says which messages of the page, and which of the kernel, counted together, do not arrive.
FAKE_MODEL = """
async ([script, size, isLost]) => {
  const handlers = [], isGone = new Function("n", `return ${isLost}`);
  const file = new Uint8Array(size).map((_, n) => n * 7 + (n >> 8));
  const uploads = {};
  let count = 0;
  Object.assign(window, { waited: 0, sent: 0, dropped: 0, failing: "" });
  const reply = (content, buffers = []) => isGone(count++) || setTimeout(() => handlers.forEach((each) => each(content, buffers)));
  const model = { get: () => ({}), off() {}, on: (name, handler) => name === "msg:custom" && handlers.push(handler),
    send(content, _, buffers) {
      const { id, offset } = content;
      if (content.file === "drop") { window.dropped++; return; }
      window.sent++;
      if (isGone(count++)) return;
      if (window.failing) return reply({ file: "failed", id, why: window.failing });
      if (content.file === "get") {
        const piece = file.slice(offset, offset + 2 ** 20);
        return reply({ file: "get", id, offset, size }, [new DataView(piece.buffer)]);
      }
      const parts = (uploads[id] ??= []), received = () => parts.reduce((sum, part) => sum + part.length, 0);
      if (offset === received()) parts.push(new Uint8Array(buffers[0]));
      reply({ file: "put", id, received: received() });
    } };
  const { connectToNotebook } = (await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })))).default;
  const connection = connectToNotebook(model);
  connection.connect({ onSections() {}, onStatus() {}, onSave() {} });
  const note = (_, isWaiting) => { window.waited += Boolean(isWaiting); };
  window.upload = () => (window.work = connection.upload(new File([file], "list.csv"), "list", note));
  window.save = () => connection.save({ id: "offer", name: "list.csv" }, note);
  window.isWhole = async () => {
    const got = new Uint8Array(await new Blob(Object.values(uploads)[0]).arrayBuffer());
    return got.length === file.length && got.every((byte, n) => byte === file[n]);
  };
}
"""


def show(opened: AuditPage, size: int = SIZE, is_lost: str = "false") -> None:
    opened.page.clock.install()
    opened.page.set_content("<p>")
    opened.page.evaluate(FAKE_MODEL, [front_end(("connection.js",)), size, is_lost])


def wait(opened: AuditPage, name: str) -> None:
    """Let time pass until a promise has ended."""
    opened.page.evaluate(
        f"{name}.then(() => (window.ended = 'done'), (error) => (window.ended = error.message))"
    )
    for _ in range(40):
        opened.page.clock.run_for(3_000)
        if opened.page.evaluate("window.ended"):
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("size", [0, SIZE])
@pytest.mark.parametrize("is_lost", ["false", "n % 3 === 1", "n < 3 || n === 9"])
def test_a_file_goes_up_whole_whatever_is_lost(opened: AuditPage, size: int, is_lost: str) -> None:
    show(opened, size, is_lost)
    opened.page.evaluate("void upload()")
    wait(opened, "work")
    assert opened.page.evaluate("ended") == "done"
    assert opened.page.evaluate("isWhole()")
    assert (opened.page.evaluate("waited") > 0) == (is_lost != "false")


@pytest.mark.parametrize("size", [0, SIZE])
@pytest.mark.parametrize("is_lost", ["false", "n % 3 === 1"])
def test_a_file_comes_down_whole_whatever_is_lost(
    opened: AuditPage, size: int, is_lost: str
) -> None:
    show(opened, size, is_lost)
    with opened.page.expect_download() as download:
        opened.page.evaluate("void (window.work = save())")
        wait(opened, "work")
    content = Path(download.value.path()).read_bytes()
    assert content == bytes((n * 7 + (n >> 8)) % 256 for n in range(size))
    assert opened.page.evaluate("dropped") == 1


def test_what_the_kernel_says_against_a_file_ends_it(opened: AuditPage) -> None:
    show(opened)
    opened.page.evaluate("void (window.failing = 'No space left on device', upload())")
    wait(opened, "work")
    assert opened.page.evaluate("ended") == "No space left on device"


def test_a_file_that_is_cancelled_is_dropped(opened: AuditPage) -> None:
    show(opened, is_lost="true")
    opened.page.evaluate("void upload()")
    while not opened.page.evaluate("sent"):
        pass  # the file is being read
    opened.page.clock.run_for(25_000)
    assert opened.page.evaluate("waited") == 2
    opened.page.evaluate("work.cancel()")
    wait(opened, "work")
    assert opened.page.evaluate("[ended, dropped]") == ["cancelled", 1]
    opened.page.clock.run_for(60_000)
    assert opened.page.evaluate("waited") == 2, "nothing is sent any more"

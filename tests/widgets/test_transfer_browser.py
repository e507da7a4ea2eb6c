"""Files in pieces between Debian's chromium and a kernel, in JupyterLab and under Voila."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from mailverdict.widgets import transfer
from tests.doubles.waiting import wait_until
from tests.widgets.browser import CHROMIUM, AuditPage, Place

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]
SIZE = 40_000_003
SCRIPT = Path(transfer.__file__).with_name("static") / "transfer.js"
# A page with a file input, a log, and a button for the download of what was uploaded.
CODE = '''
from pathlib import Path
import anywidget, traitlets
from mailverdict.widgets import transfer

PAGE = """
export default { render({ model, el }) {
  el.classList.add("mv-audit");
  el.innerHTML = `<input type="file" aria-label="File"><button>Cancel</button><p></p>`;
  const [input, cancel, state] = el.children;
  const transfer = createTransfer(model);
  let running;
  const show = (promise) => promise.then(({ name, size }) => (state.textContent = `done ${name} ${size}`),
    (error) => (state.textContent = `${error.name}: ${error.message}`));
  input.onchange = () => show(running = transfer.upload(input.files[0], "list",
    (done, total) => { state.textContent = `${done} of ${total}`; if (done > 2e6 && input.files[0].name === "stop.bin") cancel.click(); }));
  cancel.onclick = () => transfer.cancel(running.id);
  model.on("msg:custom", (content) => { if (content.offer) show(transfer.download(content.offer, content.name)); });
  return () => transfer.close();
} };
"""


class Page(anywidget.AnyWidget):
    _esm = traitlets.Unicode(Path(transfer.__file__).with_name("static").joinpath("transfer.js").read_text() + PAGE).tag(sync=True)


page = Page()
Path("uploads").mkdir(exist_ok=True)
files = transfer.FileTransfer(
    page.send, Path("uploads"),
    on_file=lambda name, path, purpose: page.send({"offer": files.offer(name, path), "name": name}),
)
page.on_msg(lambda widget, content, buffers: files.on_message(content, buffers))
page
'''


def random_file(path: Path, size: int) -> Path:
    path.write_bytes(random.Random(size).randbytes(size))
    return path


def uploaded(place: Place) -> list[Path]:
    return [path for path in (place.folder / "uploads").rglob("*") if path.is_file()]


def test_40_mb_go_up_and_come_down_unchanged(place: Place, opened: AuditPage, tmp_path: Path) -> None:
    source = random_file(tmp_path / "list of contacts.csv", SIZE)
    place.open(opened)
    with opened.page.expect_download() as download:
        opened.field("File").set_input_files(source)
    saved = tmp_path / "saved"
    download.value.save_as(saved)
    assert download.value.suggested_filename == source.name
    assert saved.stat().st_size == SIZE
    assert hashlib.sha256(saved.read_bytes()).digest() == hashlib.sha256(source.read_bytes()).digest()
    opened.shown(f"done {source.name} {SIZE}")
    assert opened.errors == []

    opened.field("File").set_input_files(random_file(tmp_path / "stop.bin", SIZE))
    opened.shown("AbortError: cancelled")
    with opened.page.expect_download() as download:
        opened.field("File").set_input_files(random_file(tmp_path / "empty.csv", 0))
    assert Path(download.value.path()).read_bytes() == b""
    wait_until(lambda: uploaded(place) == [])  # the cancelled upload is removed, and what was downloaded


FAKE_MODEL = """
() => {
  // A kernel that loses messages: the first of an upload, each third piece from the browser and each third part from
  // the kernel, once.
  const handlers = [], file = new Uint8Array(9 * 2 ** 20 + 5).map((_, n) => n * 7 + (n >> 8));
  const received = []; let begins = 0, count = 0, pieces = 0, parts = 0;
  window.questions = 0;
  const reply = (content, buffers = []) => setTimeout(() => handlers.forEach((each) => each(content, buffers)), 0);
  const model = { on: (_, handler) => handlers.push(handler), off() {}, send(content, _, buffers) {
    const { id } = content;
    if (content.transfer === "begin" && ++begins > 1) reply({ transfer: "ack", id, received: 0 });
    if (content.transfer === "piece") {
      if (window.isLosing && ++pieces > 3) return;
      if (content.offset !== count) throw new Error(`out of order: ${content.offset}, not ${count}`);
      received.push(new Uint8Array(buffers[0])); count += buffers[0].byteLength;
      reply({ transfer: "ack", id, received: count });
    }
    if (content.transfer === "status") { window.questions++; pieces = -100; reply({ transfer: "ack", id, received: count, asked: content.asked }); }
    if (content.transfer === "read") {
      if (++parts % 3 === 0) return;
      const piece = file.slice(content.offset, content.offset + content.size);
      reply({ transfer: "part", id, offset: content.offset, size: file.length }, [new DataView(piece.buffer)]);
    }
  } };
  window.transfer = createTransfer(model);
  window.isLosing = true; window.waited = 0;
  const note = (done, total, isWaiting) => { window.waited += isWaiting; };
  window.whole = window.transfer.upload(new File([file], "list.csv"), "list", note).then(async () => {
    const got = new Uint8Array(await new Blob(received).arrayBuffer());
    return got.length === file.length && got.every((byte, n) => byte === file[n]);
  });
  window.saved = window.transfer.download("offer", "list.csv", note).then(({ size }) => size === file.length);
}
"""


def test_what_a_broken_connection_loses_is_sent_again(opened: AuditPage, tmp_path: Path) -> None:
    page = opened.page
    page.clock.install()
    page.set_content("<p>")
    page.add_script_tag(content=SCRIPT.read_text().replace("export { createTransfer };", ""))
    page.evaluate(FAKE_MODEL)
    with page.expect_download() as download:
        for _ in range(20):
            page.clock.run_for(6_000)
    assert page.evaluate("whole") is True
    assert page.evaluate("saved") is True
    content = Path(download.value.path()).read_bytes()
    assert len(content) == 9 * 2**20 + 5
    assert content == bytes((n * 7 + (n >> 8)) % 256 for n in range(len(content)))
    assert page.evaluate("questions") >= 1
    assert page.evaluate("waited") >= 2


LOSING_MODEL = """
(isLost) => {
  // A kernel that gets the pieces but some, and answers which byte it misses, as transfer.py does.
  const handlers = [], isGone = new Function("n", "offset", `return ${isLost}`);
  window.parts = []; window.cancelled = 0;
  let count = 0, n = 0;
  const reply = (content) => setTimeout(() => handlers.forEach((each) => each(content, [])), 0);
  const model = { on: (_, handler) => handlers.push(handler), off() {}, send(content, _, buffers) {
    const { id, offset, attempt } = content;
    if (content.transfer === "cancel") window.cancelled++;
    if (content.transfer === "begin") reply({ transfer: "ack", id, received: 0 });
    if (content.transfer !== "piece" || isGone(n++, offset)) return;
    if (offset !== count) return reply({ transfer: "ack", id, received: count, missed: attempt });
    window.parts.push(new Uint8Array(buffers[0]));
    count += buffers[0].byteLength;
    reply({ transfer: "ack", id, received: count });
  } };
  const file = new Uint8Array(12 * 2 ** 20 + 5).map((_, n) => n * 7 + (n >> 8));
  const upload = createTransfer(model).upload(new File([file], "list.csv"));
  return upload.then(async () => {
    const got = new Uint8Array(await new Blob(window.parts).arrayBuffer());
    return got.length === file.length && got.every((byte, n) => byte === file[n]) ? "equal" : "different";
  }, (error) => error.message);
}
"""


@pytest.mark.parametrize(
    ("is_lost", "ends"),
    [
        ("[1, 2, 5, 9, 10].includes(n)", "equal"),  # several pieces, two of them twice
        ("offset === 3 * 2 ** 20", "the connection loses data: 3,145,728 of 12,582,917 bytes arrived"),
    ],
)
def test_lost_pieces_are_sent_again_some_times(opened: AuditPage, is_lost: str, ends: str) -> None:
    page = opened.page
    page.set_content("<p>")
    page.add_script_tag(content=SCRIPT.read_text().replace("export { createTransfer };", ""))
    assert page.evaluate(LOSING_MODEL, is_lost).startswith(ends)
    assert page.evaluate("cancelled") == int(ends != "equal")

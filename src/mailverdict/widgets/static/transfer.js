// Files between this page and the kernel in pieces, over the messages of a widget; transfer.py is the other end.
//
//   const transfer = createTransfer(model);
//   const upload = transfer.upload(file, purpose, onProgress);  // a promise with the property `id`
//   await transfer.download(id, "list.csv", onProgress);        // saves a file; `id` comes from FileTransfer.offer
//   transfer.cancel(upload.id);                                 // the promise is rejected with an AbortError
//   transfer.fail(why);                                         // all promises are rejected with this message
//
// onProgress(done, total, isWaiting) counts bytes. `isWaiting`: the kernel has not answered for 20 s; it may be busy.

function createTransfer(model) {
  const PIECE = 2 ** 20; // bytes; a WebSocket message over 10 MiB would end the connection
  const WINDOW = 4; // pieces on the way
  const ATTEMPTS = 5; // to send a piece that is lost each time
  const PATIENCE = 20_000; // ms without an answer until the kernel is asked again
  const running = new Map(); // id of a transfer -> how it goes on

  const listen = (content, buffers) => {
    if (content && content.transfer) running.get(content.id)?.answer(content, buffers ?? []);
  };
  model.on("msg:custom", listen);

  const send = (content, buffers = []) => model.send(content, undefined, buffers);

  // Start a transfer: `body` gets the functions that end it, and gives its answers to messages and to silence.
  function start(names, onProgress, body) {
    const id = newId();
    const promise = new Promise((resolve, reject) => {
      let lastAnswer = Date.now();
      const end = (settle, value) => {
        if (!running.delete(id)) return;
        clearInterval(timer);
        settle(value);
      };
      const control = {
        id,
        isOver: () => !running.has(id),
        finish: (value) => end(resolve, value),
        fail: (error) => end(reject, error),
        report: (done, total, isWaiting = false) => onProgress?.(done, total, isWaiting),
      };
      const { answer, remind, stop } = body(control);
      const timer = setInterval(() => Date.now() - lastAnswer >= PATIENCE && remind(), PATIENCE / 4);
      running.set(id, {
        names: [id, ...names],
        answer: (content, buffers) => {
          lastAnswer = Date.now();
          if (content.transfer === "refused") control.fail(new Error(content.why));
          else answer(content, buffers);
        },
        fail: control.fail,
        cancel: () => {
          stop();
          control.fail(new DOMException("cancelled", "AbortError"));
        },
      });
    });
    promise.id = id;
    return promise;
  }

  // Pieces are sent in order; each answer says how much has arrived. When the kernel misses a piece, or is asked after a
  // silence, what was lost with a broken connection is sent again, five times at most without success.
  function upload(file, purpose, onProgress) {
    const name = file.name || "pasted.csv";
    const size = file.size;
    return start([], onProgress, (control) => {
      const { id } = control;
      let sent = 0;
      let received = 0;
      let isBegun = false;
      let isReading = false;
      let asked = 0;
      let attempt = 0; // in the messages, so that answers to pieces of an earlier attempt are recognized
      let failures = 0; // attempts since something arrived

      const sendAgain = () => {
        if (++failures > ATTEMPTS) {
          send({ transfer: "cancel", id });
          control.fail(new Error(`the connection loses data: ${received.toLocaleString("en")} of ${size.toLocaleString("en")} bytes arrived. Check it, then choose the file again`));
          return;
        }
        attempt += 1;
        sent = received;
      };
      const begin = () => send({ transfer: "begin", id, name, size, purpose });
      const push = async () => {
        if (isReading || !isBegun) return;
        isReading = true;
        try {
          while (!control.isOver() && sent < size && sent - received < WINDOW * PIECE) {
            const offset = sent;
            const piece = await file.slice(offset, offset + PIECE).arrayBuffer();
            if (control.isOver()) return;
            if (offset !== sent) continue;
            if (!piece.byteLength) throw new Error("it has become shorter");
            sent += piece.byteLength;
            send({ transfer: "piece", id, offset, attempt }, [piece]);
          }
        } catch (error) {
          send({ transfer: "cancel", id });
          control.fail(new Error(`${name} cannot be read: ${error.message}`));
        } finally {
          isReading = false;
        }
      };
      queueMicrotask(begin);
      return {
        answer: (content) => {
          isBegun = true;
          if (content.received > received) failures = 0;
          received = Math.max(received, content.received);
          const isMissed = content.missed !== undefined && content.missed === attempt;
          const isLost = content.asked !== undefined && content.asked === asked && sent > received;
          if (isMissed || isLost) sendAgain();
          if (control.isOver()) return;
          control.report(received, size);
          if (received === size) control.finish({ name, size });
          else push();
        },
        remind: () => {
          control.report(received, size, true);
          if (isBegun) send({ transfer: "status", id, asked: ++asked });
          else begin();
        },
        stop: () => send({ transfer: "cancel", id }),
      };
    });
  }

  // The page asks for parts, a few at a time, and asks again for those that did not come.
  function download(file, name, onProgress) {
    return start([file], onProgress, (control) => {
      const { id } = control;
      const parts = new Map(); // offset -> Blob, which the browser may keep on disk
      let size = null;
      let asked = 0;
      let done = 0;

      const ask = (offset) => send({ transfer: "read", id, file, offset, size: PIECE });
      const pull = () => {
        while (asked < size && asked - done < WINDOW * PIECE) {
          ask(asked);
          asked += PIECE;
        }
      };
      queueMicrotask(() => ask(0));
      return {
        answer: (content, buffers) => {
          if (parts.has(content.offset)) return;
          size = content.size;
          const part = new Blob([buffers[0] ?? ""]);
          parts.set(content.offset, part);
          done += part.size;
          asked = Math.max(asked, PIECE);
          control.report(done, size);
          if (done < size) return pull();
          const offsets = [...parts.keys()].sort((a, b) => a - b);
          save(new Blob(offsets.map((each) => parts.get(each)), { type: "application/octet-stream" }), name);
          send({ transfer: "done", id, file });
          control.finish({ name, size });
        },
        remind: () => {
          control.report(done, size ?? 0, true);
          if (size === null) ask(0);
          for (let offset = 0; offset < asked; offset += PIECE) if (!parts.has(offset)) ask(offset);
        },
        stop: () => {},
      };
    });
  }

  function cancel(id) {
    for (const each of [...running.values()]) if (each.names.includes(id)) each.cancel();
  }

  // All transfers fail with the same message: the kernel has ended.
  function fail(why) {
    for (const each of [...running.values()]) each.fail(new Error(why));
  }

  function close() {
    for (const each of [...running.values()]) each.cancel();
    model.off("msg:custom", listen);
  }

  // A link in the page that is clicked: VS Code follows clicks on links to blobs, and needs the blob for a while.
  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.hidden = true;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  // crypto.randomUUID exists on HTTPS and localhost only.
  function newId() {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  return { upload, download, cancel, fail, close };
}

export { createTransfer };

// Between the page and what it shows: the kernel of a notebook, or the server of `mailverdict audit`.
//
//   const disconnect = connection.connect({ onSections, onStatus, onSave });
//   await connection.act(name, values);                           // until what it changed has come
//   const sent = connection.upload(file, purpose, onProgress);    // a promise with the function `cancel`
//   const saved = connection.save(offer, onProgress);             // the same; `offer` came with onSave
//
// onSections gets the sections that have changed, by name. onStatus gets { isLost, text }; with a text there is something
// that a person has to do or to know. onProgress gets { done, total } in bytes, and true when it waits for an answer.

const STOPPED =
  "The connection is lost. This page goes on by itself as soon as “mailverdict audit” runs again at this address; if it " +
  "prints another one, open that.";
const RETRYING = "The connection to the kernel is lost. Trying again…";
const REFUSED = "This page has no valid key: open the address that “mailverdict audit” printed.";
const CONNECTED = { isLost: false, text: "" };
const TAB = "mailverdict-tab"; // in the storage of the tab
const KEY = "mailverdict-key"; // the same, while the server is known
const SECTIONS = ["list", "tidy", "check", "decide", "page"];
const ENDED = ["restarting", "autorestarting", "terminating", "dead"]; // states of a kernel that has forgotten the page
const PIECE = 2 ** 20; // bytes of a file in one message
const PATIENCE = 10_000; // milliseconds without an answer until a message about a file is sent again
const LONGEST_WAIT = 30_000; // milliseconds for the answer to an action: it may be lost
const SILENCE = 3_000; // milliseconds without a line of the server, which sends one each second
const NEXT_TRY = 1_000; // milliseconds until the page looks for the server again

// The actions that wait for an answer; each is known by the name of this page and its number.
function createAnswers(view) {
  const waiting = new Map();
  let last = 0;
  const settle = (number) => {
    for (const [each, resolve] of waiting) {
      if (each > number) continue;
      waiting.delete(each);
      resolve();
    }
  };
  return {
    ask: (send) => {
      const number = ++last;
      send(`${view} ${number}`);
      setTimeout(() => settle(number), LONGEST_WAIT);
      return new Promise((resolve) => waiting.set(number, resolve));
    },
    onAnswer: (answer) => {
      const [name, number] = answer.split(" ");
      if (name === view) settle(Number(number));
    },
    settleAll: () => settle(Infinity),
  };
}

// --- the kernel of a notebook -----------------------------------------------------------------------------------------

function connectToNotebook(model) {
  const files = createFiles(model);
  const answers = createAnswers(randomName()); // a widget may be shown several times
  const { kernel } = model.widget_manager ?? {};

  function connect({ onSections, onStatus, onSave }) {
    const listeners = [];
    const on = (name, listener) => {
      model.on(name, listener);
      listeners.push([name, listener]);
    };
    for (const name of SECTIONS) on(`change:${name}_section`, () => onSections({ [name]: model.get(`${name}_section`) }));
    on("change:answered", () => answers.onAnswer(model.get("answered")));
    on("msg:custom", files.receive);
    on("msg:custom", (content) => content.act === "save" && onSave(content));

    let isOver = false;
    const lose = (what) => {
      if (isOver) return;
      isOver = true;
      const text = `${what} Run the cell again.`;
      files.end(() => new Error(text));
      answers.settleAll();
      onStatus({ isLost: true, text });
    };
    const onKernel = (_, status) => ENDED.includes(status) && lose("The kernel was restarted.");
    const onWire = (_, status) => {
      if (status === "disconnected") lose("The connection to the kernel has ended.");
      else if (isOver) return;
      else if (status === "connecting") onStatus({ isLost: true, text: RETRYING });
      else onStatus(CONNECTED);
    };
    kernel?.statusChanged?.connect(onKernel);
    kernel?.connectionStatusChanged?.connect(onWire);

    onSections({
      ...Object.fromEntries(SECTIONS.map((name) => [name, model.get(`${name}_section`)])),
      marks: model.get("marks"),
      words: model.get("words"),
    });
    return () => {
      files.end(() => new DOMException("cancelled", "AbortError"));
      answers.settleAll();
      kernel?.statusChanged?.disconnect(onKernel);
      kernel?.connectionStatusChanged?.disconnect(onWire);
      for (const [name, listener] of listeners) model.off(name, listener);
    };
  }

  return {
    connect,
    act: (name, values) => answers.ask((answer) => model.send({ act: name, ...values, answer })),
    upload: files.upload,
    save: files.save,
  };
}

// Files over the messages of a widget; transfer.py is the other end. One message is on its way at a time, and is sent
// again until it is answered: it, or its answer, may be lost with a connection.
function createFiles(model) {
  const going = new Map(); // id of a file -> what waits for its next message
  const send = (content, buffers = []) => {
    try {
      model.send(content, undefined, buffers);
    } catch {
      // The kernel is gone: `lose` ends the file and says so.
    }
  };

  const receive = (content, buffers) => {
    const one = content.file && going.get(content.id);
    if (!one) return;
    if (content.file === "failed") one.end(new Error(content.why));
    else one.answer({ ...content, piece: buffers?.[0] });
  };

  // `work` asks with `ask`; its promise fails when the file is ended from outside.
  function carry(id, onProgress, work) {
    let end;
    const ended = new Promise((_, reject) => {
      end = reject;
    });
    const ask = (content, buffers) =>
      new Promise((resolve) => {
        const repeat = () => {
          onProgress(null, true);
          send(content, buffers);
        };
        const timer = setInterval(repeat, PATIENCE);
        one.stop = () => clearInterval(timer);
        one.answer = (answer) => {
          one.stop();
          resolve(answer);
        };
        send(content, buffers);
      });
    const one = { end, answer: () => {}, stop: () => {} };
    going.set(id, one);
    const done = Promise.race([ended, work(ask)]).finally(() => {
      one.stop();
      going.delete(id);
      send({ file: "drop", id });
    });
    return Object.assign(done, { cancel: () => end(new DOMException("cancelled", "AbortError")) });
  }

  function upload(file, purpose, onProgress) {
    const id = randomName();
    const { name, size } = file;
    return carry(id, onProgress, async (ask) => {
      let received = 0;
      do {
        const piece = await file.slice(received, received + PIECE).arrayBuffer();
        if (received + piece.byteLength < Math.min(received + PIECE, size)) throw new Error("it has become shorter");
        ({ received } = await ask({ file: "put", id, name, size, purpose, offset: received }, [piece]));
        onProgress({ done: received, total: size });
      } while (received < size);
    });
  }

  function save({ id, name }, onProgress) {
    return carry(id, onProgress, async (ask) => {
      const parts = []; // the browser may keep them on disk
      let done = 0;
      for (let total = Infinity; done < total; ) {
        const { offset, size, piece } = await ask({ file: "get", id, offset: done });
        total = size;
        if (offset !== done) continue; // the answer to a message that was sent twice
        if (!piece.byteLength && done < total) throw new Error("it has become shorter");
        parts.push(new Blob([piece]));
        done += piece.byteLength;
        onProgress({ done, total });
      }
      const url = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
      click(url, name);
      setTimeout(() => URL.revokeObjectURL(url), 60_000); // VS Code needs it for a while
    });
  }

  return { upload, save, receive, end: (why) => going.forEach((each) => each.end(why())) };
}

// --- the server of `mailverdict audit` --------------------------------------------------------------------------------

// The page has a key of one start of the command. While the stream is open, the server is the one that it knows, and gets
// the key with each request. When the stream ends, anybody may have the port, and may even be asked for the page if it is
// loaded again: the key leaves the storage of the tab, and is not sent until the server has proved that it knows it.
function connectToServer() {
  const tab = sessionStorage.getItem(TAB) ?? randomName();
  sessionStorage.setItem(TAB, tab);
  let key = location.hash.slice(1) || (sessionStorage.getItem(KEY) ?? "");
  let isOpen = false;
  if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  const authorization = () => `Bearer ${key}`;
  const answers = createAnswers(tab);

  function connect({ onSections, onStatus, onSave }) {
    const stop = new AbortController();
    const receive = ({ answered, save, ...sections }) => {
      if (Object.keys(sections).length) onSections(sections);
      if (answered) answers.onAnswer(answered);
      if (save) onSave(save);
    };
    const follow = async () => {
      while (!stop.signal.aborted) {
        let text = STOPPED;
        try {
          const present = await presentKey(key, stop.signal);
          if (present) {
            key = present;
            sessionStorage.setItem(KEY, key);
            isOpen = true;
            const headers = { Authorization: authorization() };
            const isKnown = await readLines(`/events?tab=${tab}`, headers, stop.signal, receive, () => onStatus(CONNECTED));
            if (!isKnown) text = REFUSED;
          } else {
            text = REFUSED;
          }
        } catch {
          // It is stopped, or this computer slept.
        }
        if (stop.signal.aborted) return;
        isOpen = false;
        sessionStorage.removeItem(KEY);
        onStatus({ isLost: true, text });
        answers.settleAll();
        await new Promise((resolve) => setTimeout(resolve, NEXT_TRY));
      }
    };
    follow();
    // Another address of the same page is not loaded by the browser.
    const onHash = () => location.reload();
    addEventListener("hashchange", onHash);
    return () => {
      stop.abort();
      answers.settleAll();
      removeEventListener("hashchange", onHash);
    };
  }

  async function act(name, values) {
    if (!isOpen) return undefined; // the page says so already
    const headers = { Authorization: authorization() };
    const send = (answer) =>
      fetch("/act", { method: "POST", headers, body: JSON.stringify({ act: name, ...values, answer, tab }) });
    let request;
    const answered = answers.ask((answer) => (request = send(answer)));
    const response = await request.catch(() => null); // without a server: the stream says so
    if (response && !response.ok) throw new Error(await response.text());
    return answered;
  }

  function upload(file, purpose, onProgress) {
    const request = new XMLHttpRequest(); // `fetch` does not tell how much was sent
    const sent = new Promise((resolve, reject) => {
      request.upload.onprogress = (event) => onProgress({ done: event.loaded, total: file.size });
      request.onload = () => (request.status < 400 ? resolve() : reject(new Error(request.responseText)));
      request.onerror = () => reject(new Error("the connection was lost. Choose the file again"));
      request.onabort = () => reject(new DOMException("cancelled", "AbortError"));
      if (!isOpen) return reject(new Error("the connection was lost. Choose the file again"));
      request.open("PUT", `/file?name=${encodeURIComponent(file.name)}&purpose=${encodeURIComponent(purpose)}`);
      request.setRequestHeader("Authorization", authorization());
      request.send(file);
    });
    return Object.assign(sent, { cancel: () => request.abort() });
  }

  // The browser saves it by itself, and shows how far it is.
  async function save({ name, ticket }) {
    click(`/file/${ticket}`, name);
  }

  return { connect, act, upload, save, hasAddress: true };
}

// The lines of a stream as values, until it ends, or is silent for too long. False if the key is refused.
async function readLines(url, headers, stop, onLine, onOpen) {
  const silence = new AbortController();
  let timer;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE);
  };
  wait();
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.any([stop, silence.signal]) });
    if (!response.ok) return response.status !== 401 && response.status !== 403;
    onOpen();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return true;
      wait();
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) onLine(JSON.parse(line));
    }
  } finally {
    clearTimeout(timer);
  }
}

// The present key of a server that proves that it knows `key`; empty if it does not. server.py is the other end.
async function presentKey(key, stop) {
  if (!key) return "";
  const nonce = randomName();
  const signal = AbortSignal.any([stop, AbortSignal.timeout(SILENCE)]);
  const response = await fetch("/proof", { method: "POST", body: nonce, signal });
  if (!response.ok) return "";
  const { answers } = await response.json();
  const algorithm = { name: "HMAC", hash: "SHA-512" };
  const secret = await crypto.subtle.importKey("raw", new TextEncoder().encode(key), algorithm, false, ["sign", "verify"]);
  for (const { salt, proof, masked } of answers) {
    const about = `${location.port || 80} ${nonce} ${salt}`;
    const isProved = await crypto.subtle.verify("HMAC", secret, octets(proof), new TextEncoder().encode(`proof ${about}`));
    if (!isProved) continue;
    const mask = new Uint8Array(await crypto.subtle.sign("HMAC", secret, new TextEncoder().encode(`token ${about}`)));
    return String.fromCharCode(...octets(masked).map((octet, at) => octet ^ mask[at]));
  }
  return "";
}

const octets = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));

// A link that is clicked: VS Code follows clicks on links to blobs.
function click(href, name) {
  const link = Object.assign(document.createElement("a"), { href, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}

// crypto.randomUUID exists on HTTPS and localhost only.
function randomName() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export { CONNECTED, connectToNotebook, connectToServer };

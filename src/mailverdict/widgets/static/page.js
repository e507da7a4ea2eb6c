// The widget: renders what the kernel sends, and sends what a person does.

const SECTIONS = ["list", "tidy", "check", "decide", "page"];
const TITLES = { list: "List", tidy: "Tidy", check: "Verify", decide: "Decide" };
const STEPS = Object.keys(TITLES);
const ENDED = ["restarting", "autorestarting", "terminating", "dead"]; // states of a kernel that has forgotten the page
const LONGEST_WAIT = 30_000; // milliseconds for the answer to a choice
let instances = 0;

function render({ model, el }) {
  const transfer = createTransfer(model);
  const root = document.createElement("div");
  root.className = "mv-audit";
  root.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab's single-letter shortcuts
  el.append(root);
  // The printed address names no theme, so that Voila's page is light: it follows the browser, as the opened page does.
  const { body } = document;
  const isThemed = new URLSearchParams(location.search).has("theme");
  if (body.dataset.voila && !isThemed && matchMedia("(prefers-color-scheme: dark)").matches) {
    body.dataset.jpThemeLight = "false";
    body.style.colorScheme = "dark";
    body.style.background = "Canvas"; // the browser's own ground in this scheme
    body.style.setProperty("--jp-layout-color1", "Canvas"); // the same for the element around the cells
  }
  const live = document.createElement("div");
  live.className = "mv-hidden";
  live.setAttribute("role", "status");
  live.setAttribute("aria-live", "polite");
  const main = document.createElement("div");
  root.append(main, live);

  const pending = new Map(); // by control, what was chosen and the number of the message about it
  const viewName = Math.random().toString(36).slice(2); // a widget may be shown several times
  let acts = 0;
  const app = {
    id: `mv${++instances}`,
    root,
    marks: model.get("marks"),
    words: model.get("words"),
    ui: { open: {}, paste: {}, examples: {}, transfers: [], format: "csv", open_row: null, lost: "" },
    actionLabel: (name) => app.decide.actions.find((each) => each.id === name)?.label ?? name,
    // With a choice, a control and its new value, the page shows this value until the kernel has answered: sections that
    // come before have the old one, and a second press would be the opposite of what they show.
    act(name, values = {}, choice = null) {
      app.ui.failed = null;
      const number = ++acts;
      if (choice) pending.set(choice.key, { value: choice.value, number });
      model.send({ act: name, ...values, ...(choice && { answer: `${viewName} ${number}` }) });
      if (!choice) return;
      setTimeout(() => settle(choice.key, number), LONGEST_WAIT); // the message, or its answer, may be lost
      draw();
    },
    isWaiting: () => pending.size > 0,
    chosen: (key, value) => (pending.has(key) ? pending.get(key).value : value),
    set(values) {
      Object.assign(app.ui, values);
      draw();
    },
  };
  const read = () => SECTIONS.forEach((name) => (app[name] = model.get(`${name}_section`)));

  let searchTimer = null;
  let asked = null; // the text whose answer has not come yet: texts that are typed meanwhile do not queue up
  let askedAt = 0;
  let typed = null; // a text that waits for that answer
  app.search = (text) => {
    clearTimeout(searchTimer);
    searchTimer = setTimeout(() => {
      if (asked === null && text === app.decide.words) return;
      if (asked !== null && Date.now() - askedAt < 5_000) {
        typed = text;
        searchTimer = setTimeout(() => app.search(text), 1_000);
        return;
      }
      [asked, askedAt, typed] = [text, Date.now(), null];
      app.act("search", { text });
    }, 60);
  };
  const onFound = () => {
    if (asked === null || (model.get("decide_section").words !== asked && Date.now() - askedAt < 5_000)) return;
    asked = null;
    if (typed !== null) app.search(typed);
  };
  model.on("change:decide_section", onFound);
  function settle(key, number) {
    if (!(pending.get(key)?.number <= number)) return;
    pending.delete(key);
    onChange();
  }
  const onAnswer = () => {
    const [view, number] = model.get("answered").split(" ");
    if (view !== viewName) return;
    for (const key of [...pending.keys()]) settle(key, Number(number));
  };
  model.on("change:answered", onAnswer);
  // A step is opened, gets the focus, and comes to the top of what is seen.
  app.goTo = (name) => {
    app.set({ open: { ...app.ui.open, [name]: true } });
    const title = root.querySelector(`#${app.id}-${name}-title`);
    title.focus({ preventScroll: true });
    title.scrollIntoView({ block: "start" });
  };
  app.clearFacets = () => {
    clearTimeout(searchTimer);
    asked = typed = null;
    root.querySelector(`#${app.id}-search`).value = "";
    app.act("clear_facets");
  };

  // --- the kernel ----------------------------------------------------------------------------------------------------

  // Under Voila there are no cells to run.
  const howToStart = () => (document.body.dataset.voila ? "reload the page" : "run the cell again");
  function lose(what) {
    if (app.ui.lost) return;
    const how = howToStart();
    app.ui.lost = `${what} ${how[0].toUpperCase()}${how.slice(1)} and choose the file again.`;
    transfer.fail(app.ui.lost);
    draw();
  }
  const { kernel } = model.widget_manager ?? {};
  const onStatus = (_, status) => ENDED.includes(status) && lose("The kernel was restarted.");
  const onConnection = (_, status) => status === "disconnected" && lose("The connection to the kernel has ended.");
  kernel?.statusChanged?.connect(onStatus);
  kernel?.connectionStatusChanged?.connect(onConnection);
  // Under Voila a page that is loaded again has a new kernel: a result and the choices behind it would be lost.
  const onLeave = (event) => {
    const holds = app.page.running || app.decide.is_ready || app.tidy.can_undo;
    if (document.body.dataset.voila && holds && !app.ui.lost) event.preventDefault();
  };
  window.addEventListener("beforeunload", onLeave);

  // --- files ---------------------------------------------------------------------------------------------------------

  let number = 0;
  async function carry(purpose, verb, name, start) {
    const line = { key: `t${++number}`, purpose, text: `${verb} ${name}`, done: 0, total: 0 };
    app.ui.transfers.push(line);
    const onProgress = (done, total, isWaiting) => {
      const mb = (bytes) => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
      Object.assign(line, { done, total, text: `${verb} ${name}: ${mb(done)} of ${mb(total)} MB${isWaiting ? `, waiting for the kernel. If it was restarted, ${howToStart()} and choose the file again` : ""}` });
      schedule();
    };
    const work = start(onProgress);
    line.cancel = () => transfer.cancel(work.id);
    draw();
    try {
      await work;
      if (purpose === "save") app.ui.saved = name;
    } catch (error) {
      if (error.name !== "AbortError") app.set({ failed: { purpose, text: `${name}: ${error.message}` } });
    } finally {
      app.ui.transfers = app.ui.transfers.filter((each) => each !== line);
      draw();
    }
  }

  app.upload = (file, purpose) => {
    app.ui.failed = null;
    if (purpose === "list") app.ui.open = { ...app.ui.open, list: true }; // its progress, and why it fails, are there
    const box = root.querySelector(`#${app.id}-paste-${purpose}`);
    if (box && !box.value.trim()) app.ui.paste = { ...app.ui.paste, [purpose]: false };
    return carry(purpose, "Sending", file.name, (onProgress) => transfer.upload(file, purpose, onProgress));
  };

  const onMessage = (content) => {
    if (content.act === "save") carry("save", "Saving", content.name, (onProgress) => transfer.download(content.id, content.name, onProgress));
  };
  model.on("msg:custom", onMessage);

  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const onDrag = (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.stopPropagation();
    if (app.page.running) event.dataTransfer.dropEffect = "none"; // the pointer shows that nothing can be dropped
    const isOver = event.type === "dragover" || event.type === "dragenter" || root.contains(event.relatedTarget);
    if (event.type === "drop") {
      root.classList.remove("mv-over");
      if (event.dataTransfer.files.length && !app.page.running) app.upload(event.dataTransfer.files[0], "list");
    } else {
      root.classList.toggle("mv-over", isOver && !app.page.running);
    }
  };
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) root.addEventListener(kind, onDrag);
  const onPaste = (event) => {
    const isField = event.target.closest?.("input, textarea, select");
    const file = event.clipboardData?.files?.[0];
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (isField || app.page.running || app.list.name) return;
    if (file) app.upload(file, "list");
    else if (text.includes("@")) app.act("load_pasted", { text });
    else return;
    event.preventDefault();
  };
  root.addEventListener("paste", onPaste);

  // --- drawing -------------------------------------------------------------------------------------------------------

  const VIEWS = { list: listStep, tidy: tidyStep, check: checkStep, decide: decideStep };
  const shown = {}; // by step, whether the kernel wanted it open when it was last folded or unfolded
  const isOpen = (name) => app.ui.open[name] ?? app.page.open[name];

  // When the kernel opens or folds a step, what the user did with it before does not count any more. The step of the
  // check is folded at the end of a run, when nobody clicked: it stays open while the pointer or the focus is in it.
  function follow(name) {
    const wanted = app.page.open[name];
    if (shown[name] === wanted) return;
    const section = root.querySelector(`#${app.id}-${name}`);
    const isInUse = section && (section.matches(":hover") || section.contains(document.activeElement));
    if (name === "check" && isInUse && !wanted) app.ui.open[name] = true;
    else delete app.ui.open[name];
    shown[name] = wanted;
  }

  // Scroll so that what has the focus, or the step under the pointer, stays where it is on the screen.
  function keepInPlace(change) {
    const active = document.activeElement;
    const anchor = active !== root && root.contains(active) ? active : root.querySelector(".mv-step:hover");
    const before = anchor?.getBoundingClientRect().top;
    change();
    const moved = anchor?.isConnected ? anchor.getBoundingClientRect().top - before : 0;
    if (Math.abs(moved) < 1) return;
    let box = root.parentElement;
    while (box && !(/auto|scroll/.test(getComputedStyle(box).overflowY) && box.scrollHeight > box.clientHeight)) box = box.parentElement;
    (box ?? document.scrollingElement).scrollTop += moved;
  }

  function step(name, at) {
    follow(name);
    const section = app[name];
    const can = name === "list" || app.page.can[name];
    const open = can && isOpen(name);
    const title = `${app.id}-${name}-title`;
    const failed = app.ui.failed && (app.ui.failed.purpose === name || (app.ui.failed.purpose === "suppress" && name === "tidy") || (["save", "compare"].includes(app.ui.failed.purpose) && name === "decide"));
    const isDone = can && !open && section.summary;
    return h("section", { key: name, id: `${app.id}-${name}`, class: `mv-step${open ? " mv-open" : ""}${can ? "" : " mv-locked"}`, "aria-labelledby": title },
      h("h3", { class: "mv-step-head" },
        h("button", { id: title, type: "button", class: "mv-step-button", disabled: !can, "aria-expanded": open ? "true" : "false", onClick: () => app.set({ open: { ...app.ui.open, [name]: !open } }) },
          h("span", { class: isDone ? "mv-number mv-done" : "mv-number", "aria-hidden": "true" }, isDone ? "✓" : at + 1),
          h("span", { class: "mv-step-title" }, h("span", { class: "mv-hidden" }, `Step ${at + 1}: `), TITLES[name]),
          h("span", { class: "mv-step-summary" }, open ? "" : section.summary || ""),
          can && h("span", { class: "mv-chevron", "aria-hidden": "true" }, open ? "▾" : "▸"))),
      open && h("div", { class: "mv-step-body" }, VIEWS[name](app), failed && h("p", { class: "mv-notice mv-notice-failed", role: "alert" }, app.ui.failed.text)),
    );
  }

  function draw() {
    read();
    if (!app.list.runs) return;
    const lost = app.ui.lost && h("p", { key: "lost", class: "mv-notice mv-notice-failed mv-lost", role: "alert" }, app.ui.lost);
    keepInPlace(() => patch(main, [lost, ...STEPS.map(step)].filter(Boolean)));
    if (live.textContent !== app.page.said) live.textContent = app.page.said;
  }

  let isScheduled = false;
  function schedule() {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      draw();
    });
  }
  // A page in the background draws no frames: changes are drawn when they come.
  const onChange = () => (document.hidden ? draw() : schedule());
  for (const name of SECTIONS) model.on(`change:${name}_section`, onChange);
  draw();

  return () => {
    transfer.close();
    kernel?.statusChanged?.disconnect(onStatus);
    kernel?.connectionStatusChanged?.disconnect(onConnection);
    window.removeEventListener("beforeunload", onLeave);
    model.off("msg:custom", onMessage);
    model.off("change:decide_section", onFound);
    model.off("change:answered", onAnswer);
    for (const name of SECTIONS) model.off(`change:${name}_section`, onChange);
    clearTimeout(searchTimer);
  };
}

export default { render };

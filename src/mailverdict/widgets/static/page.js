// The page of an audit: four steps, the files that come and go, and what a person drops or pastes.

import { html, render as draw, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { CONNECTED, connectToNotebook, connectToServer } from "./connection.js";
import { Audit, Button, Notice, useAudit } from "./parts.js";
import { STEPS } from "./steps.js";

// Of the purpose of a file, where the step has another name.
const STEP_OF = { suppress: "tidy", save: "decide", compare: "decide", bounces: "decide" };
// Why a step cannot be opened yet.
const LOCKED = { tidy: "when there is a list", check: "when there is a list", decide: "when the list is verified" };
let instances = 0;

// The widget of a notebook.
const render = ({ model, el }) => show(connectToNotebook(model), el);

function show(connection, el) {
  const host = document.createElement("div");
  el.append(host);
  draw(html`<${Page} id=${`mv${++instances}`} connection=${connection} />`, host);
  return () => draw(null, host);
}

function Page({ id, connection }) {
  const root = useRef();
  const [sections, setSections] = useState({});
  const [status, setStatus] = useState(CONNECTED);
  const [waiting, setWaiting] = useState(0);
  const [paste, setPaste] = useState({});
  const files = useFiles(connection);
  const steps = useSteps(root, id, sections.page);
  useLayoutEffect(
    () =>
      connection.connect({
        onSections: (changed) => setSections((before) => ({ ...before, ...changed })),
        onStatus: setStatus,
        onSave: files.save,
      }),
    [],
  );
  useScrollKept(root);
  useThemeAround(root);

  const { list, page } = sections;
  async function act(name, values) {
    files.setFailed(null);
    setWaiting((count) => count + 1);
    try {
      await connection.act(name, values);
    } catch (error) {
      files.setFailed({ purpose: "page", text: error.message });
    }
    setWaiting((count) => count - 1);
  }
  function upload(file, purpose) {
    if (purpose === "list") steps.open("list"); // its progress, and why it fails, are there
    const box = root.current.querySelector(`#${id}-paste-${purpose}`);
    if (box && !box.value.trim()) setPaste({ ...paste, [purpose]: false });
    files.upload(file, purpose);
  }
  const app = {
    ...sections,
    ...files,
    ...status,
    id,
    isWaiting: waiting > 0,
    paste,
    setPaste,
    act,
    upload,
    goTo: steps.goTo,
    // After the next drawing: what gets the focus may not be there yet.
    focusOn: (name) => setTimeout(() => root.current?.querySelector(`#${id}-${name}`)?.focus()),
  };
  useAddress(connection.hasAddress, sections.decide, act);
  const canTake = !status.isLost && !page?.running; // also before the page knows its state
  const drop = useDrop(canTake, (file) => upload(file, "list"));
  const onPaste = (event) => {
    const isField = event.target.closest?.("input, textarea, select");
    const file = event.clipboardData?.files?.[0];
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (isField || !canTake || list?.name) return;
    if (file) upload(file, "list");
    else if (text.includes("@")) act("load_pasted", { text });
    else return;
    event.preventDefault();
  };
  // JupyterLab looks for this from the element with the focus upwards; there some of its shortcuts match at once, such
  // as the arrows, which a choice needs.
  const onFocus = (event) => event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  return html`<${Audit.Provider} value=${app}>
    <div ref=${root} class=${drop.isOver ? "mv-audit mv-over" : "mv-audit"} data-lm-suppress-shortcuts="true"
      ...${drop.handlers} onPaste=${onPaste} onfocusin=${onFocus}>
      <p class="mv-name"><strong>mailverdict</strong> finds out which e-mail addresses of a list can be mailed, and why the others cannot.</p>
      ${status.text && html`<div class="mv-lost"><${Notice} kind="failed" role="alert">${status.text}<//></div>`}
      ${files.failed?.purpose === "page" && html`<${Notice} kind="failed" role="alert">${files.failed.text}<//>`}
      ${list && STEPS.map((step, at) => html`<${Step} key=${step.name} ...${step} number=${at + 1} steps=${steps} />`)}
      ${list && html`<${NextStep} />`}
      <div class="mv-hidden" role="status" aria-live="polite">${page?.said}</div>
    </div>
  <//>`;
}

// The line that stays in sight: where the list is, and the button that comes first. A second click of a double click was
// meant for the button that was there before.
function NextStep() {
  const { page, decide, isWaiting, act } = useAudit();
  const { line, primary } = page;
  if (!line) return null;
  const service = decide.services?.find((each) => each.id === decide.save_as.service);
  const press = {
    verify: () => act("verify"),
    pause: () => act("pause"),
    plan: () => act("make_plan_again"),
    send: () =>
      service ? act("download_for", { service: service.id, which: "send" }) : act("download", { which: "send", kind: decide.save_as.format }),
    everything: () => act("download", { which: "everything", kind: decide.save_as.format }),
  }[primary];
  const off = !line.enabled || (primary === "verify" && isWaiting) || (["send", "everything"].includes(primary) && decide.busy);
  const label = primary === "send" && service ? `${line.label} for ${service.label}` : line.label;
  return html`<div class="mv-next" role="region" aria-label="Next">
    <span class="mv-next-text">${line.text}</span>
    ${line.why && html`<span class="mv-soft">${line.why}</span>`}
    <${Button} class="mv-button mv-primary" disabled=${off} why=${line.why} onClick=${(event) => event.detail < 2 && press()}>${label}<//>
  </div>`;
}

function Step({ name, title, number, view, folded, steps }) {
  const { id, page, failed, ...app } = useAudit();
  const { summary, busy, message, kind } = app[name];
  const can = name === "list" || page.can[name];
  const isOpen = can && steps.isOpen(name);
  const isDone = can && !isOpen && summary;
  const failure = failed && (STEP_OF[failed.purpose] ?? failed.purpose) === name ? failed.text : "";
  const toggle = () => (isOpen ? steps.fold(name) : steps.open(name));
  const isSaid = can && !isOpen && message && ["failed", "warned"].includes(kind);
  return html`<section id=${`${id}-${name}`} class=${`mv-step${isOpen ? " mv-open" : ""}${can ? "" : " mv-locked"}`}
    aria-labelledby=${`${id}-${name}-title`}>
    <h3 class="mv-step-head">
      <${Button} local id=${`${id}-${name}-title`} class="mv-step-button" disabled=${!can} why=${LOCKED[name]}
        aria-expanded=${String(isOpen)} onClick=${toggle}>
        <span class=${isDone ? "mv-number mv-done" : "mv-number"} aria-hidden="true">${isDone ? "✓" : number}</span>
        <span class="mv-step-title"><span class="mv-hidden">${`Step ${number}: `}</span>${title}</span>
        <span class="mv-step-summary">${isOpen ? "" : can ? busy || summary : LOCKED[name]}</span>
        ${can && html`<span class="mv-chevron" aria-hidden="true">${isOpen ? "hide ▾" : "show ▸"}</span>`}
      <//>
    </h3>
    ${can && !isOpen && folded && html`<${folded} />`}
    ${isSaid && html`<div class="mv-step-body"><${Notice} kind=${kind} role="status">${message}<//></div>`}
    ${isOpen &&
    html`<div class="mv-step-body">
      <${view} />
      ${failure && html`<${Notice} kind="failed" role="alert">${failure}<//>`}
    </div>`}
  </section>`;
}

// The address of the page has what the rows are filtered by, so that a reload, the button Back and a second tab show the
// same rows. In a notebook the address is not the page's own.
function useAddress(has, decide, act) {
  const { current: known } = useRef({ isFirst: true, isAsking: false });
  const ask = async (address) => {
    known.isAsking = true;
    await act("look_at", { address });
    known.isAsking = false;
  };
  useLayoutEffect(() => {
    if (!has || known.isAsking) return;
    const shown = decide?.is_ready ? decide.address : "";
    const isFirst = known.isFirst && decide?.is_ready;
    if (decide?.is_ready) known.isFirst = false;
    if (location.search === shown || (known.isFirst && !decide?.is_ready)) return;
    if (isFirst && location.search) ask(location.search);
    else history.pushState(history.state, "", location.pathname + shown);
  }, [decide]);
  useLayoutEffect(() => {
    if (!has) return undefined;
    const goBack = () => ask(location.search);
    addEventListener("popstate", goBack);
    return () => removeEventListener("popstate", goBack);
  }, []);
}

// Which steps are open: those that Python opened, until a person opens or folds them.
function useSteps(root, id, page) {
  const [chosen, setChosen] = useState({});
  const { current: last } = useRef({}); // by step, whether Python wanted it open
  for (const { name } of STEPS) {
    const wanted = page?.open[name];
    if (last[name] === wanted) continue;
    last[name] = wanted;
    // The third step is folded at the end of a run, when nobody clicked: it stays while the pointer or focus is in it.
    const section = root.current?.querySelector(`#${id}-${name}`);
    const isInUse = section && (section.matches(":hover") || section.contains(section.getRootNode().activeElement));
    if (name === "check" && isInUse && !wanted) chosen[name] = true;
    else delete chosen[name];
  }
  const set = (name, isOpen) => setChosen((before) => ({ ...before, [name]: isOpen }));
  return {
    isOpen: (name) => chosen[name] ?? page.open[name],
    open: (name) => set(name, true),
    fold: (name) => set(name, false),
    // A step is opened, gets the focus, and comes to the top of what is seen.
    goTo: (name) => {
      set(name, true);
      const title = root.current.querySelector(`#${id}-${name}-title`);
      title.focus({ preventScroll: true });
      setTimeout(() => title.scrollIntoView({ block: "start" }));
    },
  };
}

// Files on their way, how the last one failed, and what was saved.
function useFiles(connection) {
  const [transfers, setTransfers] = useState([]);
  const [failed, setFailed] = useState(null);
  const [saved, setSaved] = useState("");
  const { current: counter } = useRef({ files: 0 });

  async function carry(purpose, verb, name, start) {
    const key = `t${++counter.files}`;
    const change = (line) => setTransfers((all) => all.map((each) => (each.key === key ? { ...each, ...line } : each)));
    const work = start((progress, isWaiting) => {
      if (isWaiting) return change({ wait: ", waiting for an answer" });
      const { done, total } = progress;
      return change({ done, total, wait: "", text: `${verb} ${name}: ${megabytes(done)} of ${megabytes(total)} MB` });
    });
    setTransfers((all) => [...all, { key, purpose, text: `${verb} ${name}`, done: 0, total: 0, cancel: work.cancel }]);
    try {
      await work;
      if (purpose === "save") setSaved(name);
    } catch (error) {
      if (error.name !== "AbortError") setFailed({ purpose, text: `${name}: ${error.message}` });
    } finally {
      setTransfers((all) => all.filter((each) => each.key !== key));
    }
  }

  return {
    transfers,
    failed,
    saved,
    setFailed,
    upload: (file, purpose) => {
      setFailed(null);
      carry(purpose, "Sending", file.name, (onProgress) => connection.upload(file, purpose, onProgress));
    },
    save: (offer) => carry("save", "Saving", offer.name, (onProgress) => connection.save(offer, onProgress)),
  };
}

const megabytes = (bytes) => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);

// A file that is dropped anywhere on the page.
function useDrop(canTake, onFile) {
  const [isOver, setOver] = useState(false);
  const onDrag = (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    event.stopPropagation();
    if (!canTake) event.dataTransfer.dropEffect = "none"; // the pointer shows that nothing can be dropped
    if (event.type === "drop" && event.dataTransfer.files.length && canTake) onFile(event.dataTransfer.files[0]);
    const isWithin = event.type !== "dragleave" || event.currentTarget.contains(event.relatedTarget);
    setOver(canTake && isWithin && event.type !== "drop");
  };
  return { isOver, handlers: { onDragEnter: onDrag, onDragOver: onDrag, onDragLeave: onDrag, onDrop: onDrag } };
}

// Marimo draws a widget in a shadow tree: its theme is hidden from the style sheet, but not its colour scheme.
function useThemeAround(root) {
  useLayoutEffect(() => {
    const { current: node } = root;
    if (node.getRootNode() === document) return undefined;
    const follow = () => {
      const { colorScheme } = getComputedStyle(node.parentElement);
      node.dataset.jpThemeLight = String(!colorScheme.includes("dark"));
    };
    const themes = new MutationObserver(follow);
    for (const each of [document.documentElement, document.body]) themes.observe(each, { attributes: true });
    follow();
    return () => themes.disconnect();
  }, []);
}

// Scroll so that what has the focus, or the step under the pointer, stays where it is on the screen when parts of the page
// come or go.
function useScrollKept(root) {
  const active = root.current?.getRootNode().activeElement;
  const isWithin = active && active !== root.current && root.current.contains(active);
  const anchor = isWithin ? active : root.current?.querySelector(".mv-step:hover");
  const before = anchor?.getBoundingClientRect().top;
  useLayoutEffect(() => {
    const moved = anchor?.isConnected ? anchor.getBoundingClientRect().top - before : 0;
    if (Math.abs(moved) < 1) return;
    const scrolls = (box) => /auto|scroll/.test(getComputedStyle(box).overflowY) && box.scrollHeight > box.clientHeight;
    let box = root.current.parentElement;
    while (box && !scrolls(box)) box = box.parentElement;
    (box ?? document.scrollingElement).scrollTop += moved;
  });
}

// The page of `mailverdict audit` has a place for it.
const place = document.getElementById("mv-audit");
if (place) show(connectToServer(), place);

export { render };

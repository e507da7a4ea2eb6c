// A run of `mailverdict.start`: draws what the kernel sends, and sends which button was pressed. All words come from there.

const SILENCE = 10_000; // milliseconds without a message of a kernel that sends one every half second
const BUSY = 3_000; // milliseconds after which a button that has no effect yet says why
const ENDED = ["restarting", "autorestarting", "terminating", "dead"]; // states of a kernel that has forgotten the run
const GOING_ON = ["running", "paused"]; // states of a run that a stopped kernel ends
const SVG = "http://www.w3.org/2000/svg";

const make = (tag, fields, ...children) => {
  const node = Object.assign(document.createElement(tag), fields);
  node.append(...children);
  return node;
};

function symbol({ shape, sign }, name) {
  const svg = document.createElementNS(SVG, "svg");
  const draw = (tag, attributes) => {
    const part = svg.appendChild(document.createElementNS(SVG, tag));
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
  };
  svg.setAttribute("class", `mv-symbol mv-${name}`);
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  if (shape) {
    draw("path", { d: shape });
    draw("path", { d: sign, class: "mv-sign" });
  } else {
    draw("circle", { class: "mv-ring", cx: 8, cy: 8, r: 6 });
  }
  return svg;
}

function render({ model, el }) {
  const title = make("b");
  const checked = make("span");
  const filled = make("span");
  const meter = make("div", { className: "mv-meter", role: "progressbar", ariaLabel: "Checked", ariaValueMin: "0", ariaValueMax: "100" }, filled);
  const counts = make("ul", { className: "mv-counts" });
  counts.setAttribute("role", "list");
  const notes = make("div", { className: "mv-soft" });
  const buttons = make("div", { className: "mv-buttons" });
  const lost = make("p", { className: "mv-lost", role: "alert", hidden: true });
  const live = make("div", { className: "mv-hidden", role: "status" });
  const root = make("section", { className: "mv-repr", ariaLabel: "Verification", tabIndex: -1 }, make("p", {}, title, ": ", checked), meter, counts, notes, buttons, lost, live);
  root.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab's single-letter shortcuts
  el.append(root);

  let silent = null; // a timer
  let isGone = false; // the kernel has ended: nothing brings this run back
  const say = (text) => {
    lost.textContent = text;
    lost.hidden = !text;
    for (const each of buttons.children) each.setAttribute("aria-disabled", String(Boolean(text)));
  };
  const lose = () => {
    isGone = true;
    clearTimeout(silent);
    if (!GOING_ON.includes(model.get("shown").state)) return;
    title.textContent = "Stopped";
    say("Kernel stopped: run the cell again.");
  };

  const hush = () => {
    title.textContent = "No answer";
    say(`The kernel has not answered for ${SILENCE / 1000} seconds. If it was stopped, run the cell again.`);
  };

  function press(button) {
    if (button.getAttribute("aria-disabled") === "true") return;
    model.send({ act: button.dataset.act });
    button.setAttribute("aria-disabled", "true");
    const { state } = model.get("shown");
    setTimeout(() => {
      if (!isGone && model.get("shown").state === state) lost.textContent = "The kernel is busy with another cell, and does this after it.";
      lost.hidden = !lost.textContent;
    }, BUSY);
  }

  // A button stays the same element while it has the same place: the focus stays, too.
  function drawButtons(wanted) {
    const hadFocus = buttons.contains(root.getRootNode().activeElement);
    while (buttons.children.length > wanted.length) buttons.lastChild.remove();
    wanted.forEach(({ act, label }, at) => {
      const button = buttons.children[at] ?? buttons.appendChild(make("button", { type: "button", onclick: (event) => press(event.currentTarget) }));
      if (button.dataset.act === act) return;
      button.dataset.act = act;
      button.textContent = label;
      button.setAttribute("aria-disabled", "false");
    });
    if (hadFocus && !buttons.children.length) root.focus();
  }

  let drawn = {};
  function draw() {
    const shown = model.get("shown");
    const isChanged = (name) => JSON.stringify(shown[name]) !== JSON.stringify(drawn[name]);
    title.textContent = shown.title;
    checked.textContent = shown.checked;
    filled.style.width = `${100 * shown.share}%`;
    meter.ariaValueNow = String(Math.floor(100 * shown.share));
    if (isChanged("counts")) counts.replaceChildren(...shown.counts.map(({ name, label, count }) => make("li", {}, symbol(model.get("marks")[name], name), ` ${label} `, make("b", {}, count))));
    if (isChanged("notes")) notes.replaceChildren(...shown.notes.map((each) => make("p", {}, each)));
    if (isChanged("said")) live.textContent = shown.said;
    drawButtons(shown.buttons);
    clearTimeout(silent);
    if (shown.state !== drawn.state || lost.textContent.includes("not answered")) say("");
    if (shown.state === "running") silent = setTimeout(hush, SILENCE);
    drawn = shown;
  }

  // A page that draws a widget in a shadow tree hides its own theme from the style sheet, but not the colour scheme.
  const follow = () => {
    if (root.getRootNode() === document) return;
    root.removeAttribute("data-jp-theme-light");
    root.dataset.jpThemeLight = String(!/dark/.test(getComputedStyle(el).colorScheme));
  };
  const themes = new MutationObserver(follow);
  for (const each of [document.documentElement, document.body]) themes.observe(each, { attributes: true });
  requestAnimationFrame(follow);

  const { kernel } = model.widget_manager ?? {};
  const onStatus = (_, status) => ENDED.includes(status) && lose();
  const onConnection = (_, status) => status === "disconnected" && lose();
  kernel?.statusChanged?.connect(onStatus);
  kernel?.connectionStatusChanged?.connect(onConnection);
  model.on("change:shown", draw);
  draw();
  return () => {
    clearTimeout(silent);
    themes.disconnect();
    kernel?.statusChanged?.disconnect(onStatus);
    kernel?.connectionStatusChanged?.disconnect(onConnection);
    model.off("change:shown", draw);
  };
}

export default { render };

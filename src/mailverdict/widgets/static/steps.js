// The four steps as descriptions of elements. `app` has the sections that the kernel sent, the state of the page itself
// (`ui`), and the functions that send events.

const ALWAYS_SHOWN = 4; // columns of the table besides the row: address, verdict, why, what to do
const QUOTA_OVER = "Today's quota is used up.";
const FORMAT_NAMES = { csv: "CSV", xlsx: "Excel (XLSX)", parquet: "Parquet" };

// --- parts that steps share ------------------------------------------------------------------------------------------

function button(app, id, label, onClick, props = {}) {
  const isPrimary = app.page.primary === id;
  return h("button", { type: "button", class: isPrimary ? "mv-button mv-primary" : "mv-button", onClick, ...props }, label);
}

function symbol(app, name) {
  const mark = app.marks[name];
  const paths = mark.shape
    ? [h("path", { d: mark.shape }), h("path", { class: "mv-sign", d: mark.sign })]
    : [h("circle", { class: "mv-ring", cx: 8, cy: 8, r: 6 })];
  return h("svg", { class: `mv-symbol mv-${name}`, viewBox: "0 0 16 16", "aria-hidden": "true" }, paths);
}

function badge(app, name, label) {
  return h("span", { class: `mv-badge mv-${name}` }, symbol(app, name), label);
}

function notices(section) {
  return [
    section.message &&
      h(
        "p",
        { key: "message", class: `mv-notice mv-notice-${section.kind}`, role: section.kind === "failed" ? "alert" : "status" },
        section.message,
      ),
    section.busy && h("p", { key: "busy", class: "mv-busy" }, h("span", { class: "mv-spinner", "aria-hidden": "true" }), section.busy),
  ];
}

function select(id, label, options, value, onChange, props = {}) {
  return h(
    "span",
    { class: "mv-field" },
    h("label", { for: id }, label),
    h(
      "select",
      { id, onChange: (event) => onChange(event.target.value), value, ...props },
      options.map((each) => h("option", { key: each.id, value: each.id, selected: String(each.id) === String(value) }, each.label)),
    ),
  );
}

function meter(share, name) {
  return h("span", { class: `mv-meter ${name ? `mv-${name}` : ""}`, "aria-hidden": "true" }, h("span", { style: `width:${(100 * share).toFixed(2)}%` }));
}

function transferLine(app, purpose) {
  const going = app.ui.transfers.filter((each) => each.purpose === purpose);
  return going.map((each) =>
    h(
      "div",
      { key: `transfer ${each.key}`, class: "mv-transfer" },
      h("label", { for: `${app.id}-${each.key}` }, each.text),
      h("progress", { id: `${app.id}-${each.key}`, max: each.total || 1, value: each.done }),
      each.cancel && h("button", { type: "button", class: "mv-button mv-small", onClick: each.cancel }, "Cancel"),
    ),
  );
}

// A button that opens the browser's file dialog.
function fileButton(app, id, label, purpose, props = {}) {
  const name = `${app.id}-file-${purpose}`;
  return [
    button(app, id, label, () => app.root.querySelector(`#${name}`).click(), props),
    h("input", {
      key: name,
      id: name,
      type: "file",
      accept: app.list.accept,
      hidden: true,
      tabindex: -1,
      "aria-hidden": "true",
      onChange: (event) => {
        if (event.target.files.length) app.upload(event.target.files[0], purpose);
        event.target.value = "";
      },
    }),
  ];
}

function pasteBox(app, name, label, hint, onDone) {
  if (!app.ui.paste[name]) return null;
  const id = `${app.id}-paste-${name}`;
  // The focus does not get lost with the box: a list that is read replaces its step's buttons, not its title.
  const close = (place) => {
    app.set({ paste: { ...app.ui.paste, [name]: false } });
    app.root.querySelector(`#${app.id}-${place}`)?.focus();
  };
  const finish = () => {
    const box = app.root.querySelector(`#${id}`);
    const text = box.value;
    if (!text.trim()) return box.focus();
    box.value = "";
    close(name === "list" ? "list-title" : `open-${name}`);
    onDone(text);
  };
  return h(
    "div",
    { key: id, class: "mv-paste" },
    h("label", { for: id }, label),
    h("textarea", { id, rows: 6, placeholder: hint, spellcheck: "false" }),
    h("div", { class: "mv-row" }, h("button", { type: "button", class: "mv-button", onClick: finish }, "Use these"),
      h("button", { type: "button", class: "mv-button mv-quiet", onClick: () => close(`open-${name}`) }, "Close")),
  );
}

function openPaste(app, name) {
  app.set({ paste: { ...app.ui.paste, [name]: true } });
  app.root.querySelector(`#${app.id}-paste-${name}`)?.focus();
}

// --- 1 list ----------------------------------------------------------------------------------------------------------

function listStep(app) {
  const list = app.list;
  const isEmpty = !list.name;
  const off = app.page.running;
  const choose = [
    h("div", { class: "mv-row" },
      fileButton(app, "choose", isEmpty ? "Choose a file" : "Choose another file", "list", { disabled: off }),
      h("button", { id: `${app.id}-open-list`, type: "button", class: "mv-button", disabled: off, onClick: () => openPaste(app, "list") }, "Paste addresses"),
      list.can_list_runs && h("button", { type: "button", class: "mv-button", disabled: off, onClick: () => app.act("list_runs") }, "Earlier runs"),
    ),
  ];
  return [
    isEmpty
      ? h("div", { key: "zone", class: "mv-zone" },
          h("p", { class: "mv-zone-title" }, "Drop your list here"),
          h("p", { class: "mv-soft" }, "CSV, Excel, Parquet, JSON lines or Arrow, of any size, also compressed. With or without a header line."),
          choose)
      : h("div", { key: "loaded" }, loadedList(app, off), choose),
    pasteBox(app, "list", "Paste addresses, one per line, or cells copied from a spreadsheet", "ada@example.org", (text) => app.act("load_pasted", { text })),
    transferLine(app, "list"),
    notices(list),
    isEmpty && (list.is_text || list.can_read_again) && list.kind === "failed" && readAgain(app, off),
    isEmpty && list.allow_paths && pathField(app),
    list.runs.length > 0 && runTable(app, off),
  ];
}

function loadedList(app, off) {
  const list = app.list;
  const columns = list.columns.map((label, at) => ({ id: at, label }));
  if (list.column === null) columns.unshift({ id: "", label: "choose a column" });
  return [
    h("p", { key: "name", class: "mv-lead" }, h("strong", {}, list.name), ` ${list.size}`),
    h("div", { key: "fields", class: "mv-row" },
      select(`${app.id}-column`, "Column", columns, list.column ?? "", (value) => value !== "" && app.act("choose_column", { at: Number(value) }), { disabled: off }),
      list.examples.length > 0 && h("span", { class: "mv-examples" }, "such as ", list.examples.map((each) => [h("code", {}, each), " "])),
    ),
    list.guess && h("p", { key: "guess", class: "mv-soft" }, list.guess),
    list.remarks.length > 0 && h("ul", { key: "remarks", class: "mv-soft mv-remarks" }, list.remarks.map((each) => h("li", {}, each))),
    (list.is_text || list.sheets.length > 0) && list.can_read_again && readAgain(app, off),
  ];
}

function readAgain(app, off) {
  const { encoding, header, sheet, sheets } = app.list;
  const read = (choice) => app.act("read_again", { encoding, has_header: header, sheet, ...choice });
  const headers = [{ id: "", label: "found automatically" }, { id: "yes", label: "yes" }, { id: "no", label: "no, the first line is data" }];
  return h("div", { key: "again", class: "mv-row" },
    sheets.length > 1 && select(`${app.id}-sheet`, "Sheet", sheets, sheet, (value) => read({ sheet: value, has_header: "" }), { disabled: off }),
    select(`${app.id}-header`, "Header line", headers, header, (value) => read({ has_header: value }), { disabled: off }),
    !sheets.length && select(`${app.id}-encoding`, "Characters", app.list.encodings, encoding, (value) => read({ encoding: value }), { disabled: off }),
  );
}

function pathField(app) {
  const id = `${app.id}-path`;
  const open = () => {
    const path = app.root.querySelector(`#${id}`).value;
    if (path.trim()) app.act("load_path", { path });
  };
  return h("div", { key: "path", class: "mv-row mv-path" },
    h("label", { class: "mv-field", for: id }, h("span", {}, "or a path on the computer that runs this"),
      h("input", { id, type: "text", spellcheck: "false", placeholder: "exports/contacts.csv", onKeydown: (event) => event.key === "Enter" && open() })),
    h("button", { type: "button", class: "mv-button", onClick: open }, "Open"),
  );
}

function runTable(app, off) {
  return h("div", { key: "runs", class: "mv-runs" },
    h("h4", {}, "Earlier runs"),
    h("ul", {}, app.list.runs.map((run, number) =>
      h("li", { key: number },
        h("span", {}, h("strong", {}, run.when), ` ${run.what}, by ${run.where}`),
        h("button", { type: "button", class: "mv-button mv-small", disabled: off, "aria-label": `Open the run of ${run.when}`, onClick: () => app.act("open_earlier", { number }) }, "Open")))),
  );
}

// --- 2 tidy ----------------------------------------------------------------------------------------------------------

function tidyStep(app) {
  const tidy = app.tidy;
  if (!tidy.is_ready) return notices(tidy);
  const off = app.page.running;
  const isClean = !tidy.items.length && !tidy.suggestions;
  return [
    isClean && h("p", { key: "clean" }, "Nothing to repair: every cell is written as it should be."),
    tidy.items.length > 0 && h("ul", { key: "items", class: "mv-items" }, tidy.items.map((item) => tidyItem(app, item, off))),
    tidy.suggestions && suggestionPart(app, off),
    tidy.nothing && h("p", { key: "nothing", class: "mv-soft" }, tidy.nothing),
    suppressionPart(app, off),
    transferLine(app, "suppress"),
    notices(tidy),
  ];
}

function tidyItem(app, item, off) {
  const id = `${app.id}-switch-${item.id}`;
  const isOpen = app.ui.examples[item.id];
  const isOn = app.chosen(id, item.on);
  return h("li", { key: item.id, class: isOn || item.why ? "mv-item" : "mv-item mv-off" },
    h("label", { class: "mv-switch", for: id },
      h("input", { id, type: "checkbox", role: "switch", checked: isOn, disabled: off,
        onChange: (event) => app.act("set_repair", { name: item.id, is_on: event.target.checked }, { key: id, value: event.target.checked }) }),
      h("span", { class: "mv-track", "aria-hidden": "true" }),
      h("span", { class: "mv-item-label" }, item.label)),
    h("span", { class: "mv-count" }, item.count),
    h("div", { class: "mv-pairs" },
      item.why && h("p", { class: "mv-soft" }, item.why),
      (isOpen ? item.examples : item.examples.slice(0, 1)).map((pair, at) =>
        h("div", { key: at, class: "mv-pair-row" }, pairLine(pair, item.id === "merge" ? ["=", "is the same mailbox as"] : undefined),
          at === 0 && item.examples.length > 1 && h("button", { type: "button", class: "mv-button mv-small mv-quiet mv-examples-button", "aria-expanded": isOpen ? "true" : "false",
            "aria-label": `${isOpen ? "Less" : "More"} examples: ${item.label}`, onClick: () => app.set({ examples: { ...app.ui.examples, [item.id]: !isOpen } }) }, isOpen ? "less" : "more")))),
  );
}

function pairLine(pair, [sign, words] = ["→", "becomes"]) {
  return h("div", { class: "mv-pair" },
    h("code", { class: "mv-one-line", title: pair.before }, pair.before),
    h("span", { class: "mv-arrow", "aria-label": words, role: "img" }, sign),
    h("code", { class: "mv-one-line", title: pair.after }, pair.after));
}

function suggestionPart(app, off) {
  const { suggestions: part, can_undo } = app.tidy;
  return h("section", { key: "suggestions", class: "mv-part", "aria-label": "Likely typos" },
    h("div", { class: "mv-row mv-part-head" },
      h("h4", {}, "Likely typos"), h("span", { class: "mv-count" }, part.count),
      h("span", { class: "mv-gap" }),
      h("button", { type: "button", class: "mv-button mv-small", disabled: off || !part.left, onClick: () => app.act("accept_all") }, part.left ? `Accept all (${part.left})` : "All accepted"),
      h("button", { type: "button", class: "mv-button mv-small mv-quiet", disabled: off || !can_undo, onClick: () => app.act("undo") }, "Undo")),
    h("p", { class: "mv-soft" }, "Only those that you accept are corrected. The others go to “To review”."),
    h("ul", { class: "mv-suggestions" }, part.items.map((each) =>
      h("li", { key: each.id },
        pairLine(each), h("span", { class: "mv-count" }, each.rows),
        h("button", { type: "button", class: "mv-button mv-small", disabled: off || each.accepted, "aria-label": `${each.accepted ? "Accepted" : "Accept"} ${each.after} for ${each.before}`,
          onClick: () => app.act("accept_suggestion", { number: each.id }) }, each.accepted ? "Accepted" : "Accept")))),
    part.more > 0 && h("button", { type: "button", class: "mv-button mv-small mv-quiet", onClick: () => app.act("show_more") }, `Show ${part.more} more`),
    part.hidden > 0 && part.more <= 0 && h("p", { class: "mv-soft" }, `${part.hidden.toLocaleString("en")} more are not shown.`),
  );
}

function suppressionPart(app, off) {
  const { suppression, suppression_notes } = app.tidy;
  return h("section", { key: "suppression", class: "mv-part", "aria-label": "Suppression list" },
    h("div", { class: "mv-row mv-part-head" },
      h("h4", {}, "Suppression list"),
      h("span", { class: "mv-soft mv-gap" }, suppression ? suppression : "People and domains that must not be mailed, such as those who unsubscribed."),
      fileButton(app, "suppress", suppression ? "Choose another" : "Choose a list", "suppress", { disabled: off, class: "mv-button mv-small" }),
      h("button", { id: `${app.id}-open-suppress`, type: "button", class: "mv-button mv-small", disabled: off, onClick: () => openPaste(app, "suppress") }, "Paste a list"),
      suppression && h("button", { type: "button", class: "mv-button mv-small mv-quiet", disabled: off, onClick: () => app.act("drop_suppression") }, "Use none")),
    (suppression_notes ?? []).map((each) => h("p", { class: "mv-soft" }, each)),
    pasteBox(app, "suppress", "Paste addresses or domains, one per line", "ada@example.org", (text) => app.act("suppress_pasted", { text })),
  );
}

// --- 3 check ---------------------------------------------------------------------------------------------------------

function checkStep(app) {
  const check = app.check;
  const { plan, progress, running } = check;
  return [
    depthPart(app, running),
    h("div", { key: "cost", class: "mv-cost", "aria-live": "off" }, plan ? planPart(check) : h("p", { class: "mv-soft" }, check.kind === "failed" ? "The cost is not known." : "Working out the cost…")),
    check.can_refresh && h("label", { key: "refresh", class: "mv-switch", for: `${app.id}-refresh` },
      h("input", { id: `${app.id}-refresh`, type: "checkbox", role: "switch", checked: app.chosen("refresh", check.is_refreshing), disabled: running,
        onChange: (event) => app.act("set_refresh", { is_on: event.target.checked }, { key: "refresh", value: event.target.checked }) }),
      h("span", { class: "mv-track", "aria-hidden": "true" }),
      h("span", {}, "Ask again about addresses without a clear answer")),
    h("div", { key: "buttons", class: "mv-row mv-start" },
      running
        ? button(app, "pause", check.state === "pausing" ? "Pausing…" : "Pause", () => app.act("pause"), { key: "go", disabled: check.state === "pausing" })
        : app.page.primary === "plan"
          ? button(app, "plan", check.quota_over ? "Look at the quota again" : "Try again", () => app.act("make_plan_again"), { key: "plan" })
          : null,
      !running && button(app, "verify", check.button.label, () => app.act("verify"), { key: "go", disabled: !check.button.enabled || app.isWaiting() }),
      progress && progress.left && h("span", { key: "left", class: "mv-soft" }, progress.left),
      progress && !running && app.decide.is_ready && !app.decide.outdated && [
        h("button", { key: "result", type: "button", class: "mv-button", onClick: () => app.goTo("decide") }, "Go to the result"),
        h("span", { key: "summary" }, app.decide.summary)],
    ),
    check.quota_over && h("p", { key: "over", class: "mv-notice mv-notice-warned", role: "status" }, check.quota_over),
    progress && progressPart(app, progress, running),
    check.notices.map((each) => h("p", { key: each, class: "mv-notice mv-notice-warned" }, each)),
    // That the quota is used up is said above, with the time until there is more.
    notices({ ...check, busy: running || plan ? "" : check.busy, message: check.quota_over && check.message.startsWith(QUOTA_OVER) ? "" : check.message }),
  ];
}

function depthPart(app, off) {
  const check = app.check;
  const name = `${app.id}-depth`;
  const depth = app.chosen(name, check.depth);
  const chosen = check.depths.find((each) => each.id === depth);
  return h("fieldset", { key: "depth", class: "mv-depths", disabled: off },
    h("legend", {}, `How deep, by ${check.backend}`),
    h("div", { class: "mv-depth-row" }, check.depths.map((each) =>
      h("label", { key: each.id, class: each.id === depth ? "mv-depth mv-chosen" : "mv-depth" },
        h("input", { type: "radio", name, value: each.id, checked: each.id === depth, onChange: () => app.act("set_depth", { depth: each.id }, { key: name, value: each.id }) }),
        h("span", {}, each.label)))),
    h("p", { class: "mv-soft" }, `${chosen.does} ${chosen.means}`),
  );
}

function planPart(check) {
  const plan = check.plan;
  return [
    h("dl", { class: "mv-figures" }, plan.figures.map((each) =>
      h("div", {}, h("dt", {}, each.what), h("dd", {}, h("strong", {}, each.number), ` ${each.unit}`)))),
    h("p", { class: "mv-cost-line" }, [plan.cost, plan.time].filter(Boolean).join(" ")),
    plan.notes.length > 0 && h("p", { class: "mv-soft" }, plan.notes.join(" ")),
  ];
}

function progressPart(app, progress, running) {
  const total = Math.max(progress.total, 1);
  return h("div", { key: "progress", class: "mv-progress" },
    h("div", { class: "mv-row" },
      h("strong", { class: "mv-percent" }, progress.percent), h("span", {}, progress.label),
      h("span", { class: "mv-soft" }, [progress.entries, progress.rate, progress.known].filter(Boolean).join(" · "))),
    h("div", { class: "mv-stack mv-track-bar", role: "progressbar", "aria-label": "Checked so far", "aria-valuemin": 0, "aria-valuemax": progress.total, "aria-valuenow": progress.settled, "aria-valuetext": `${progress.percent}, ${progress.label}` },
      Object.entries(progress.counts).filter(([, count]) => count).map(([name, count]) => h("span", { key: name, class: `mv-${name}`, style: `width:${((100 * count) / total).toFixed(2)}%` }))),
    h("div", { class: "mv-row mv-legend" }, Object.entries(progress.counts).map(([name, count]) =>
      h("span", { key: name, class: "mv-legend-item" }, symbol(app, name), ` ${count.toLocaleString("en")} ${name === "error" ? "failed" : name}`))),
    running && progress.message && h("p", { class: "mv-soft" }, progress.message),
    running && progress.quota && h("p", { class: "mv-soft" }, progress.quota),
  );
}

// --- 4 decide --------------------------------------------------------------------------------------------------------

function decideStep(app) {
  const decide = app.decide;
  if (!decide.is_ready) return notices(decide);
  return [
    h("div", { key: "head", class: "mv-card-head" },
      h("div", {},
        h("h4", { class: "mv-card-title" }, decide.title),
        h("p", { class: "mv-soft" }, decide.check),
        h("p", { class: "mv-soft" }, decide.means)),
      h("p", { class: "mv-headline" }, h("strong", {}, decide.headline), h("span", {}, decide.headline_text))),
    decide.outdated && h("p", { key: "outdated", class: "mv-notice mv-notice-warned" }, decide.outdated),
    decide.unclear && h("div", { key: "unclear", class: "mv-notice mv-notice-warned mv-notice-act" }, h("span", {}, decide.unclear),
      decide.can_ask_again && h("button", { type: "button", class: "mv-button mv-small", disabled: Boolean(decide.busy), onClick: () => app.act("ask_again") }, "Ask again")),
    picturePart(app),
    downloadPart(app),
    transferLine(app, "save"),
    app.ui.saved && h("p", { key: "saved", class: "mv-soft" }, `Downloaded: ${app.ui.saved}`),
    notices(decide),
    h("div", { key: "rows", class: "mv-explore" }, facetPart(app), tablePart(app)),
    comparePart(app),
  ];
}

// A bar in true proportions, and below it the same as buttons with words and figures.
function picturePart(app) {
  const { picture } = app.decide;
  const choose = (each) => app.act("set_facet", { facet: "verdict", value: each.id });
  const isAny = picture.some((each) => each.on);
  return h("div", { key: "picture", class: "mv-picture" },
    h("div", { class: "mv-stack mv-picture-bar", "aria-hidden": "true" }, picture.map((each) =>
      h("span", { key: each.id, class: `mv-${each.id}${isAny && !each.on ? " mv-faint" : ""}`, style: `width:${(100 * each.share).toFixed(3)}%`, title: `${each.label}: ${each.count} (${each.percent})`, onClick: () => choose(each) }))),
    h("div", { class: "mv-row mv-segments", role: "group", "aria-label": "Show rows of a verdict" }, picture.map((each) =>
      h("button", { key: each.id, type: "button", class: `mv-segment mv-${each.id}`, "aria-pressed": each.on ? "true" : "false", onClick: () => choose(each) },
        symbol(app, each.id), `${each.label} `, h("strong", {}, each.count), h("span", { class: "mv-soft" }, ` ${each.percent}`)))),
  );
}

function downloadPart(app) {
  const { actions, formats, policies, policy } = app.decide;
  const format = app.ui.format;
  const off = Boolean(app.decide.busy);
  const named = (id, label, count, means, isEmpty) =>
    h("button", { key: id, type: "button", class: app.page.primary === id ? "mv-download mv-primary" : "mv-download", disabled: off || isEmpty,
      onClick: () => app.act("download", { which: id, kind: format }) },
      h("span", { class: "mv-download-label" }, h("span", { class: "mv-hidden" }, "Download "), app.marks[id] && symbol(app, id), ` ${label}`), h("span", { class: "mv-download-count" }, count), h("span", { class: "mv-download-means" }, means));
  return h("section", { key: "download", class: "mv-part", "aria-label": "Download" },
    h("div", { class: "mv-row mv-part-head" },
      h("h4", {}, "Download"), h("span", { class: "mv-gap" }),
      select(`${app.id}-policy`, "Policy", policies, policy, (name) => app.act("set_policy", { name })),
      select(`${app.id}-format`, "As", formats.map((id) => ({ id, label: FORMAT_NAMES[id] })), format, (value) => app.set({ format: value })),
    ),
    h("div", { class: "mv-downloads" },
      actions.filter((each) => each.id !== "unchecked" || !each.empty).map((each) => named(each.id, each.label, each.count, each.means, each.empty)),
      named("everything", "Everything", app.decide.total, "All rows, with all that was found out.", false)),
    h("div", { class: "mv-row" },
      h("button", { type: "button", class: "mv-button mv-small", disabled: off, onClick: () => app.act("download", { which: "report", kind: "html" }) }, "Report to forward (HTML)"),
      h("button", { type: "button", class: "mv-button mv-small", disabled: off, onClick: () => app.act("download", { which: "report", kind: "xlsx" }) }, "Report as Excel"),
      app.decide.is_filtered && h("button", { type: "button", class: "mv-button mv-small", disabled: off, onClick: () => app.act("download", { which: "shown", kind: format }) }, `What is shown below (${app.decide.found})`),
    ),
  );
}

function facetPart(app) {
  const { facets } = app.decide;
  return h("div", { class: "mv-facets" }, facets.map((facet) =>
    h("div", { key: facet.id, class: "mv-facet", role: "group", "aria-label": facet.label },
      h("h5", {}, facet.label),
      facet.values.map((each) =>
        h("button", { key: each.id, type: "button", class: "mv-value", "aria-pressed": each.on ? "true" : "false", title: each.label,
          onClick: () => app.act("set_facet", { facet: facet.id, value: each.id }) },
          h("span", { class: "mv-value-label" }, each.label), h("span", { class: "mv-value-count" }, each.count),
          meter(each.share, facet.id === "verdict" || facet.id === "action" ? each.id : ""))),
      facet.more && h("p", { class: "mv-soft" }, facet.more))));
}

function tablePart(app) {
  const decide = app.decide;
  const search = `${app.id}-search`;
  return h("div", { class: "mv-table-part" },
    h("div", { class: "mv-row mv-table-head" },
      h("label", { class: "mv-field", for: search }, h("span", {}, "Search"),
        h("input", { id: search, type: "search", spellcheck: "false", value: decide.words, placeholder: "words in any column", onInput: (event) => app.search(event.target.value) })),
      h("strong", { class: "mv-found" }, decide.found),
      h("button", { type: "button", class: "mv-button mv-small mv-quiet", disabled: !decide.is_filtered, onClick: () => app.clearFacets() }, "Show all"),
      h("span", { class: "mv-gap" }), pager(app)),
    h("table", { class: "mv-table" },
      h("caption", { class: "mv-hidden" }, `${decide.title}, ${decide.found}`),
      h("thead", {}, h("tr", {},
        h("th", { scope: "col", class: "mv-col-row" }, h("span", { class: "mv-hidden" }, "Row")),
        decide.heads.map((head, at) => h("th", { key: head.key, scope: "col", "aria-sort": head.sort, class: columnClass(head.key, at) },
          h("button", { type: "button", class: "mv-sort", title: `Sort by ${head.label}`, onClick: () => app.act("sort", { key: head.key }) },
            h("span", { class: "mv-cut" }, head.label), h("span", { class: "mv-sort-sign", "aria-hidden": "true" }, { ascending: "▲", descending: "▼", none: "" }[head.sort])))))),
      h("tbody", {}, decide.rows.flatMap((row) => tableRow(app, row)))),
    !decide.rows.length && h("p", { class: "mv-soft mv-empty" }, "No row matches."),
    decide.left_out && h("p", { class: "mv-soft" }, decide.left_out),
  );
}

function columnClass(key, at) {
  // Of the user's own columns a wide page shows those among the first 7 columns, a wider one those among the first 9.
  const room = at < 7 ? " mv-own-wide" : at < 9 ? " mv-own-wider" : "";
  return at === 0 ? "mv-col-address" : key.startsWith("column ") ? `mv-col-own${room}` : `mv-col-${key}`;
}

function tableRow(app, row) {
  const { heads } = app.decide;
  const isOpen = app.ui.open_row === row.row;
  const cells = {
    verdict: () => badge(app, row.verdict, app.words[row.verdict] ?? row.verdict),
    action: () => [symbol(app, row.action), ` ${app.actionLabel(row.action)}`],
    reason: () => row.reason,
  };
  const details = () =>
    h("tr", { key: `${row.row} details`, class: "mv-details" },
      h("td", { colspan: ALWAYS_SHOWN + 1 },
        h("dl", {}, h("div", {}, h("dt", {}, "Why"), h("dd", {}, row.why || row.reason)),
          heads.filter((head) => row.cells[head.key]).map((head) => h("div", { key: head.key }, h("dt", {}, head.label), h("dd", {}, row.cells[head.key]))))),
      heads.slice(ALWAYS_SHOWN).map((head, at) => h("td", { key: head.key, class: columnClass(head.key, at + ALWAYS_SHOWN) })));
  const toggle = () => app.set({ open_row: isOpen ? null : row.row });
  // A click anywhere in the row opens it; who selects a text to copy it does not want that.
  const onRow = (event) => !event.target.closest("button") && !String(getSelection()) && toggle();
  const main = h("tr", { key: row.row, class: "mv-line", onClick: onRow },
    h("td", { class: "mv-col-row" },
      h("button", { type: "button", class: "mv-more", "aria-expanded": isOpen ? "true" : "false", "aria-label": `Details of row ${row.row}`, onClick: toggle }, row.row)),
    heads.map((head, at) => {
      const text = head.key === "reason" ? row.why || row.reason : row.cells[head.key] ?? "";
      return h("td", { key: head.key, class: columnClass(head.key, at), title: text || undefined }, cells[head.key] ? cells[head.key]() : text);
    }));
  return isOpen ? [main, details()] : [main];
}

function pager(app) {
  const { page, pages, range } = app.decide;
  return h("div", { class: "mv-row mv-pager", role: "group", "aria-label": "Pages" },
    h("button", { type: "button", class: "mv-button mv-small", disabled: page <= 1, "aria-label": "Previous page", onClick: () => app.act("page", { number: page - 1 }) }, "‹"),
    h("label", { class: "mv-field" }, h("span", {}, "Page"),
      h("input", { type: "number", min: 1, max: pages, value: page, onChange: (event) => app.act("page", { number: Math.trunc(Number(event.target.value)) || 1 }) })),
    h("span", { class: "mv-soft" }, `of ${pages.toLocaleString("en")} (${range})`),
    h("button", { type: "button", class: "mv-button mv-small", disabled: page >= pages, "aria-label": "Next page", onClick: () => app.act("page", { number: page + 1 }) }, "›"),
  );
}

function comparePart(app) {
  const { comparison } = app.decide;
  return h("section", { key: "compare", class: "mv-part", "aria-label": "Compare with an earlier audit" },
    h("div", { class: "mv-row mv-part-head" },
      h("h4", {}, "Compare with an earlier audit"),
      h("span", { class: "mv-soft mv-gap" }, comparison ? `${comparison.headline} The report shows it, too.` : "Give the file that you downloaded then as “Everything”."),
      fileButton(app, "compare", "Choose the earlier file", "compare", { class: "mv-button mv-small" })),
    transferLine(app, "compare"),
    comparison && comparison.moves.length > 0 && h("ul", { class: "mv-moves" }, comparison.moves.map((each) =>
      h("li", {}, h("strong", {}, each.rows.toLocaleString("en")), ` ${each.what}`, each.detail && h("span", { class: "mv-soft" }, ` ${each.detail}`)))),
    comparison && comparison.addresses.length > 0 && h("details", {},
      h("summary", {}, "Addresses whose verdict changed"),
      h("ul", { class: "mv-moves" }, comparison.addresses.map((each) =>
        h("li", {}, h("code", {}, each.address), " ", app.words[each.before] ?? each.before, " → ", app.words[each.after] ?? each.after)))),
  );
}

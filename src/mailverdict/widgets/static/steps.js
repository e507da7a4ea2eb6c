// The four steps: list, tidy, verify, decide.

import { html, useState } from "./vendor/preact-htm.js";
import {
  Button, Cells, FileButton, Mark, Meter, Notice, Notices, PasteBox, PasteButton, Select, Small, Switch, Text,
  Transfers, UndoRedo, useAudit, useChoice,
} from "./parts.js";
import { Bounces, Operators, Origins, Sample, Waves } from "./mailing.js";
import { DECISIONS, Table } from "./table.js";

const QUOTA_OVER = "Today's quota is used up.";
const RUNNING = "not while a check is running";
const FEW = 5; // likely typos that are shown at first
const FEW_VALUES = 6; // of a facet
const FORMAT_NAMES = { csv: "CSV", xlsx: "Excel (XLSX)", parquet: "Parquet" };

// --- 1 list ----------------------------------------------------------------------------------------------------------

function ListStep() {
  const { list, page, act } = useAudit();
  const isEmpty = !list.name;
  const off = page.running;
  const isUnreadable = isEmpty && list.kind === "failed" && (list.is_text || list.can_read_again);
  const buttons = html`<div class="mv-row">
    <${FileButton} button=${isEmpty ? Primary : Button} purpose="list" disabled=${off} why="not while a check is running">
      ${isEmpty ? "Choose a file" : "Choose another file"}
    <//>
    <${PasteButton} button=${Button} purpose="list" disabled=${off}>Paste addresses<//>
    ${list.can_list_runs && html`<${Button} disabled=${off} onClick=${() => act("list_runs")}>Earlier runs<//>`}
  </div>`;
  return html`
    ${isEmpty ? html`<${DropZone} key="zone">${buttons}<//>` : html`<${LoadedList} key="loaded" off=${off}>${buttons}<//>`}
    <${PasteBox}
      purpose="list"
      label="Paste addresses, one per line, or cells copied from a spreadsheet"
      onDone=${(text) => act("load_pasted", { text })}
    />
    <${Transfers} purpose="list" />
    <${Notices} ...${list} />
    ${isUnreadable && html`<${ReadAgain} off=${off} />`}
    ${isEmpty && list.allow_paths && html`<${PathField} />`}
    ${list.runs.length > 0 && html`<${EarlierRuns} off=${off} />`}
    ${isEmpty && page.kept?.length > 0 && html`<${KeptAudits} />`}
  `;
}

const Primary = (props) => html`<${Button} class="mv-button mv-primary" ...${props} />`;

const DropZone = ({ children }) => html`<div class="mv-zone">
  <p class="mv-zone-title">Drop your list here</p>
  <p>You see which of its addresses can be mailed. Nothing is checked before you press “Verify”.</p>
  <p class="mv-soft">CSV, Excel, LibreOffice, JSON, vCard, Parquet or Arrow, of any size, also compressed. With or without a header line.</p>
  ${children}
</div>`;

function LoadedList({ off, children }) {
  const { id, list, act } = useAudit();
  const columns = list.columns.map((label, at) => ({ id: at, label }));
  if (list.column === null) columns.unshift({ id: "", label: "choose a column" });
  const choose = (at) => at !== "" && act("choose_column", { at: Number(at) });
  return html`<div>
    <p class="mv-lead"><strong><${Text}>${list.name}<//></strong> ${list.size}</p>
    <div class="mv-row">
      <${Select} id=${`${id}-column`} label="Column" options=${columns} value=${list.column ?? ""} disabled=${off}
        onChange=${choose} />
    </div>
    ${list.preview && html`<${Cells} label="The first rows" ...${list.preview} />`}
    ${list.guess && html`<p class="mv-soft">${list.guess}</p>`}
    ${list.doubted.length > 0 && html`<${DoubtedColumns} off=${off} />`}
    ${list.remarks.length > 0 &&
    html`<ul class="mv-soft mv-remarks">${list.remarks.map((each) => html`<li>${each}</li>`)}</ul>`}
    ${(list.is_text || list.sheets.length > 0) && list.can_read_again && html`<${ReadAgain} off=${off} />`}
    ${children}
  </div>`;
}

// Columns of which one has the addresses: the person says which.
function DoubtedColumns({ off }) {
  const { list, act } = useAudit();
  return html`<ul class="mv-suggestions" aria-label="Which column is meant?">
    ${list.doubted.map(
      (each) => html`<li key=${each.at}>
        <span class="mv-gap"><strong><${Text}>${each.label}<//></strong> ${each.text}</span>
        <${Small} disabled=${off} aria-label=${`Use the column ${each.label}`}
          onClick=${() => act("choose_column", { at: each.at })}>Use this column<//>
      </li>`,
    )}
  </ul>`;
}

const HEADERS = [
  { id: "", label: "found automatically" },
  { id: "yes", label: "yes" },
  { id: "no", label: "no, the first line is data" },
];

function ReadAgain({ off }) {
  const { id, list, act } = useAudit();
  const { encoding, encodings, header, sheet, sheets } = list;
  const read = (choice) => act("read_again", { encoding, has_header: header, sheet, ...choice });
  return html`<div class="mv-row">
    ${sheets.length > 1 &&
    html`<${Select} id=${`${id}-sheet`} label="Sheet" options=${sheets} value=${sheet} disabled=${off}
      onChange=${(value) => read({ sheet: value, has_header: "" })} />`}
    <${Select} id=${`${id}-header`} label="Header line" options=${HEADERS} value=${header} disabled=${off}
      onChange=${(value) => read({ has_header: value })} />
    ${!sheets.length &&
    html`<${Select} id=${`${id}-encoding`} label="Characters" options=${encodings} value=${encoding} disabled=${off}
      onChange=${(value) => read({ encoding: value })} />`}
  </div>`;
}

function PathField() {
  const { id, act } = useAudit();
  const [path, setPath] = useState("");
  const open = () => path.trim() && act("load_path", { path });
  return html`<div class="mv-row mv-path">
    <label class="mv-field" for=${`${id}-path`}>
      <span>or a path on the computer that runs this</span>
      <input
        id=${`${id}-path`}
        type="text"
        spellcheck=${false}
        placeholder="exports/contacts.csv"
        onInput=${(event) => setPath(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && open()}
      />
    </label>
    <${Button} onClick=${open}>Open<//>
  </div>`;
}

function EarlierRuns({ off }) {
  const { list, act } = useAudit();
  const open = (run, number) =>
    html`<${Small} disabled=${off} aria-label=${`Open the run of ${run.when}`}
      onClick=${() => act("open_earlier", { number })}>Open<//>`;
  return html`<div class="mv-runs">
    <h4>Earlier runs</h4>
    <ul>
      ${list.runs.map(
        (run, number) => html`<li><span><strong>${run.when}</strong> ${run.what}, by ${run.where}</span>${open(run, number)}</li>`,
      )}
    </ul>
  </div>`;
}

// Audits that are kept on this computer. Deleting one is asked about once more, since it cannot be undone.
function KeptAudits() {
  const { page, act } = useAudit();
  const [doubted, setDoubted] = useState(null);
  const remove = (each) => (doubted === each.id ? act("delete_kept", { id: each.id }) : setDoubted(each.id));
  const label = (each) => (doubted === each.id ? "Delete for good" : "Delete");
  return html`<div class="mv-runs">
    <h4>Kept audits</h4>
    <ul>
      ${page.kept.map(
        (each) => html`<li key=${each.id}>
          <span class="mv-gap"><strong><${Text}>${each.name}<//></strong> ${each.when}, ${each.rows}</span>
          <${Small} aria-label=${`Open ${each.name} of ${each.when}`} onClick=${() => act("open_kept", { id: each.id })}>Open<//>
          <${Small} quiet aria-label=${`${label(each)} ${each.name} of ${each.when}`} onClick=${() => remove(each)}>
            ${label(each)}
          <//>
        </li>`,
      )}
    </ul>
  </div>`;
}

// --- 2 tidy ----------------------------------------------------------------------------------------------------------

function TidyStep() {
  const { tidy, page } = useAudit();
  const off = page.running;
  if (!tidy.is_ready) return html`<${Notices} ...${tidy} />`;
  return html`
    ${!tidy.items.length && !tidy.suggestions && html`<p>Nothing to repair: every cell is written as it should be.</p>`}
    ${tidy.items.length > 0 &&
    html`<ul class="mv-items">${tidy.items.map((item) => html`<${TidyItem} key=${item.id} item=${item} off=${off} />`)}</ul>`}
    ${tidy.suggestions && html`<${Suggestions} off=${off} />`}
    ${tidy.nothing && html`<p class="mv-soft">${tidy.nothing}</p>`}
    <${Suppression} off=${off} />
    <${Transfers} purpose="suppress" />
    <div class="mv-row"><${UndoRedo} off=${off} /></div>
    <${Notices} ...${tidy} />
  `;
}

// What only a person can say is asked also while the step is folded.
function TidyQuestions() {
  const { tidy, act } = useAudit();
  if (!tidy.questions.length) return null;
  return html`<div class="mv-step-body">
    ${tidy.questions.map(
      (each) => html`<div key=${each.id} class="mv-notice mv-notice-act mv-question">
        <span><strong><${Text}>${each.label}<//></strong>: ${each.why}</span>
        <${Small} aria-label=${`Take them off: ${each.label}`}
          onClick=${() => act("set_repair", { name: each.id, is_on: true })}>Take them off<//>
      </div>`,
    )}
  </div>`;
}

function TidyItem({ item, off }) {
  const { id, act } = useAudit();
  const [isOpen, setOpen] = useState(false);
  const pairs = isOpen ? item.examples : item.examples.slice(0, 1);
  const sign = item.id === "merge" ? { sign: "=", means: "is the same mailbox as" } : {};
  return html`<li class=${item.on || item.why ? "mv-item" : "mv-item mv-off"}>
    <${Switch} id=${`${id}-switch-${item.id}`} label=${item.label} on=${item.on} disabled=${off}
      onChange=${(isOn) => act("set_repair", { name: item.id, is_on: isOn })} />
    <span class="mv-count">${item.count}</span>
    <div class="mv-pairs">
      ${item.why && html`<p class="mv-soft">${item.why}</p>`}
      ${pairs.map(
        (pair, at) => html`<div class="mv-pair-row">
          <${Pair} ...${pair} ...${sign} />
          ${at === 0 &&
          item.examples.length > 1 &&
          html`<${Small} local quiet aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}
            aria-label=${`${isOpen ? "Less" : "More"} examples: ${item.label}`}>${isOpen ? "less" : "more"}<//>`}
        </div>`,
      )}
    </div>
  </li>`;
}

const Pair = ({ before, after, sign = "→", means = "becomes" }) => html`<div class="mv-pair">
  <code class="mv-one-line" title=${before}><${Text}>${before}<//></code>
  <span class="mv-arrow" aria-label=${means} role="img">${sign}</span>
  <code class="mv-one-line" title=${after}><${Text}>${after}<//></code>
</div>`;

// Likely typos by domain, as in the last step.
function Suggestions({ off }) {
  const { tidy, act } = useAudit();
  const [isWhole, setWhole] = useState(false);
  const { suggestions: part } = tidy;
  const shown = isWhole ? part.items : part.items.slice(0, FEW);
  const more = part.items.length - FEW;
  return html`<section class="mv-part" aria-label="Likely typos">
    <div class="mv-row mv-part-head">
      <h4>Likely typos</h4>
      <span class="mv-soft mv-gap">Only those that you correct here are corrected. The others go to “To review”.</span>
      <${Small} disabled=${off || !part.left} why=${off ? RUNNING : "all are corrected"} onClick=${() => act("accept_all")}>
        ${part.left ? `Correct all (${part.left})` : "All are corrected"}
      <//>
    </div>
    <ul class="mv-runs">
      ${shown.map(
        (each) => html`<li key=${each.id}>
          <span class="mv-gap">
            <strong><${Text}>${each.before}<//></strong>, ${each.rows}: did they mean <strong><${Text}>${each.after}<//></strong>?
          </span>
          <${Small} disabled=${off} why=${RUNNING} aria-pressed=${String(each.accepted)} aria-label=${`Use ${each.after}: ${each.before}`}
            onClick=${() => act("accept_typo", { number: each.id })}>Use <${Text}>${each.after}<//><//>
        </li>`,
      )}
    </ul>
    ${more > 0 &&
    html`<${Small} local quiet aria-expanded=${String(isWhole)} onClick=${() => setWhole(!isWhole)}>
      ${isWhole ? "Show fewer" : `Show ${more} more`}
    <//>`}
    ${part.hidden > 0 && isWhole && html`<p class="mv-soft">${part.hidden.toLocaleString("en")} more are not shown.</p>`}
  </section>`;
}

function Suppression({ off }) {
  const { tidy, act } = useAudit();
  const { suppression, suppression_notes: notes = [], suppression_found: found } = tidy;
  return html`<section class="mv-part" aria-label="Suppression list">
    <div class="mv-row mv-part-head">
      <h4>Suppression list</h4>
      <span class="mv-soft mv-gap">
        ${suppression || "People and domains that must not be mailed, such as those who unsubscribed."}
      </span>
      <${FileButton} purpose="suppress" disabled=${off}>${suppression ? "Choose another" : "Choose a list"}<//>
      <${PasteButton} purpose="suppress" disabled=${off}>Paste a list<//>
      ${suppression && html`<${Small} quiet disabled=${off} onClick=${() => act("drop_suppression")}>Use none<//>`}
    </div>
    ${found && html`<p>${found}</p>`}
    ${notes.map((each) => html`<p class="mv-soft">${each}</p>`)}
    <${PasteBox}
      purpose="suppress"
      label="Paste addresses or domains, one per line"
      onDone=${(text) => act("suppress_pasted", { text })}
    />
  </section>`;
}

// --- 3 verify --------------------------------------------------------------------------------------------------------

function CheckStep() {
  const { id, check, act } = useAudit();
  const { plan, progress, running } = check;
  // That the quota is used up is said once, with the time until there is more.
  const isSaid = check.quota_over && check.message.startsWith(QUOTA_OVER);
  // Why the cost is not known is said in its place.
  const isUnknown = !plan && check.kind === "failed";
  return html`
    <${Depths} off=${running} />
    ${isUnknown && html`<${Notices} kind="failed" message=${check.message} busy=${check.busy} />`}
    ${!isUnknown &&
    html`<div class="mv-cost" aria-live="off">
      ${plan && html`<${Plan} plan=${plan} running=${running} />`}
      ${!plan && html`<${Notices} busy=${check.busy || "Working out the cost…"} />`}
    </div>`}
    ${check.can_refresh &&
    html`<${Switch} id=${`${id}-refresh`} label="Ask again about addresses without a clear answer" on=${check.is_refreshing}
      disabled=${running} onChange=${(isOn) => act("set_refresh", { is_on: isOn })} />`}
    <${Sample} />
    <${StartButtons} />
    ${check.quota_over && html`<${Notice} kind="warned" role="status">${check.quota_over}<//>`}
    ${progress && html`<${Progress} progress=${progress} running=${running} />`}
    ${check.notices.map((each) => html`<${Notice} key=${each} kind="warned">${each}<//>`)}
    <${Notices} kind=${check.kind} message=${isSaid || isUnknown ? "" : check.message} />
  `;
}

// What is not the next step: that is in the line that stays in sight.
function StartButtons() {
  const { check, decide, page, isWaiting, act, goTo } = useAudit();
  const { progress, running, button } = check;
  const isNext = ["verify", "pause"].includes(page.primary);
  return html`<div class="mv-row mv-start">
    ${!isNext &&
    html`<${Button} disabled=${!button.enabled || isWaiting} why=${button.why} onClick=${() => act("verify")}>${button.label}<//>`}
    ${progress && progress.left && html`<span class="mv-soft">${progress.left}</span>`}
    ${progress &&
    !running &&
    decide.is_ready &&
    !decide.outdated &&
    html`<${Button} local onClick=${() => goTo("decide")}>Go to the result<//><span>${decide.summary}</span>`}
  </div>`;
}

function Depths({ off }) {
  const { check, act } = useAudit();
  const [depth, choose] = useChoice(check.depth);
  const chosen = check.depths.find((each) => each.id === depth);
  return html`<div>
    <${Radios} name="depth" legend=${`How deep, by ${check.backend}`} options=${check.depths} value=${depth} disabled=${off}
      onChange=${(each) => choose(each, act("set_depth", { depth: each }))} />
    <p class="mv-soft">${chosen.does} ${chosen.means}</p>
  </div>`;
}

// One of several, side by side; an option may have a text below its name.
function Radios({ name, legend, options, value, disabled, onChange }) {
  const { id, isLost } = useAudit();
  return html`<fieldset class="mv-radios" disabled=${disabled || isLost}>
    <legend>${legend}</legend>
    <div class=${`mv-radio-row mv-radio-${name}`}>
      ${options.map(
        (each) => html`<label key=${each.id} class=${each.id === value ? "mv-radio mv-chosen" : "mv-radio"}>
          <input type="radio" name=${`${id}-${name}`} value=${each.id} checked=${each.id === value}
            onChange=${() => onChange(each.id)} />
          <span>${each.label}${each.text && html`<span class="mv-soft mv-radio-text">${each.text}</span>`}</span>
        </label>`,
      )}
    </div>
  </fieldset>`;
}

// While a check runs, the quota that is left is said beside its progress.
const Plan = ({ plan, running }) => html`
  <dl class="mv-figures">
    ${plan.figures.map((each) => html`<div><dt>${each.what}</dt><dd><strong>${each.number}</strong> ${each.unit}</dd></div>`)}
  </dl>
  ${!running && html`<p class="mv-cost-line">${[plan.cost, plan.time].filter(Boolean).join(" ")}</p>`}
  ${plan.notes.length > 0 && html`<p class="mv-soft">${plan.notes.join(" ")}</p>`}
`;

function Progress({ progress, running }) {
  const counts = Object.entries(progress.counts);
  const width = (count) => `width:${((100 * count) / Math.max(progress.total, 1)).toFixed(2)}%`;
  return html`<div class="mv-progress">
    <div class="mv-row">
      <strong class="mv-percent">${progress.percent}</strong>
      <span>${progress.label}</span>
      <span class="mv-soft">${[progress.entries, progress.rate, progress.known].filter(Boolean).join(" · ")}</span>
    </div>
    <div class="mv-stack mv-track-bar" role="progressbar" aria-label="Checked so far" aria-valuemin="0"
      aria-valuemax=${progress.total} aria-valuenow=${progress.settled} aria-valuetext=${`${progress.percent}, ${progress.label}`}>
      ${counts
        .filter(([, number]) => number)
        .map(([name, number]) => html`<span key=${name} class=${`mv-${name}`} style=${width(number)} />`)}
    </div>
    <div class="mv-row mv-legend">
      ${counts.map(
        ([name, count]) => html`<span key=${name} class="mv-legend-item">
          <${Mark} name=${name} /> ${count.toLocaleString("en")} ${name === "error" ? "failed" : name}
        </span>`,
      )}
    </div>
    ${running && progress.slow && html`<p>${progress.slow}</p>`}
    ${running && progress.message && html`<p class="mv-soft">${progress.message}</p>`}
    ${running && progress.quota && html`<p class="mv-soft">${progress.quota}</p>`}
  </div>`;
}

// --- 4 decide --------------------------------------------------------------------------------------------------------

function DecideStep() {
  const { decide, saved, act } = useAudit();
  if (!decide.is_ready) return html`<${Notices} ...${decide} />`;
  const askAgain = html`<${Small} disabled=${decide.busy} onClick=${() => act("ask_again")}>Ask again<//>`;
  return html`
    <div class="mv-card-head">
      <div>
        <h4 class="mv-card-title"><${Text}>${decide.title}<//></h4>
        <p class="mv-soft">${decide.check}</p>
        <p class="mv-soft">${decide.means}</p>
      </div>
      <div class="mv-figure-part">
        <p class="mv-headline"><strong>${decide.headline}</strong><span>${decide.headline_text}</span></p>
        <p class="mv-limits">${decide.headline_limits && `(${decide.headline_limits})`} <span class="mv-soft">${decide.headline_rows}</span></p>
        ${decide.forecast && html`<p class="mv-soft">${decide.forecast}</p>`}
      </div>
    </div>
    ${decide.outdated && html`<${Notice} kind="warned">${decide.outdated}<//>`}
    ${decide.unclear &&
    html`<div class="mv-notice mv-notice-warned mv-notice-act">
      <span>${decide.unclear}</span>${decide.can_ask_again && askAgain}
    </div>`}
    <${Picture} />
    <${Policies} />
    ${decide.typos?.length > 0 && html`<${Typos} typos=${decide.typos} />`}
    ${decide.decided?.total > 0 && html`<${Decided} />`}
    <${Downloads} />
    <${Transfers} purpose="save" />
    ${saved && html`<p class="mv-soft">Downloaded: <${Text}>${saved}<//></p>`}
    <${Notices} ...${decide} />
    <${Waves} />
    <${Bounces} />
    <${Origins} />
    <div class="mv-explore"><${Facets} /><${Table} /></div>
    <${Operators} />
    <${Comparison} />
  `;
}

// A bar in true proportions, and below it the same as buttons with words and figures.
function Picture() {
  const { decide, isLost, act } = useAudit();
  const { picture } = decide;
  const isAny = picture.some((each) => each.on);
  const choose = (each) => !isLost && act("set_facet", { facet: "verdict", value: each.id });
  return html`<div class="mv-picture">
    <div class="mv-stack mv-picture-bar" aria-hidden="true">
      ${picture.map(
        (each) => html`<span
          key=${each.id}
          class=${`mv-${each.id}${isAny && !each.on ? " mv-faint" : ""}`}
          style=${`width:${(100 * each.share).toFixed(3)}%`}
          title=${`${each.label}: ${each.count} (${each.percent})`}
          onClick=${() => choose(each)}
        />`,
      )}
    </div>
    <div class="mv-row mv-segments" role="group" aria-label="Show rows of a verdict">
      ${picture.map(
        (each) => html`<${Button} key=${each.id} class=${`mv-segment mv-${each.id}`} aria-pressed=${String(each.on)}
          onClick=${() => choose(each)}>
          <${Mark} name=${each.id} />${each.label} <strong>${each.count}</strong><span class="mv-soft"> ${each.percent}</span>
        <//>`,
      )}
    </div>
  </div>`;
}

// What each policy will do with this result, before it is chosen.
function Policies() {
  const { decide, act } = useAudit();
  const [policy, choose] = useChoice(decide.policy);
  return html`<${Radios} name="policy" legend="Policy" options=${decide.policies} value=${policy}
    onChange=${(each) => choose(each, act("set_policy", { name: each }))} />`;
}

// Likely typos by domain, with one decision for all of them.
function Typos({ typos }) {
  const { page, act } = useAudit();
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? typos : typos.slice(0, FEW);
  const more = typos.length - FEW;
  const decide = ({ domain }, what) => act("decide_domain", { domain, what });
  return html`<section class="mv-part" aria-label="Likely typos of a domain">
    <div class="mv-row mv-part-head"><h4>Likely typos</h4></div>
    <ul class="mv-runs">
      ${shown.map(
        (each) => html`<li key=${each.domain}>
          <span class="mv-gap">
            <strong><${Text}>${each.domain}<//></strong>, ${count(each.people, "person", "people")}:${" "}
            did they mean <strong>${each.suggested}</strong>?
          </span>
          <span class="mv-row-actions">
            ${["suggestion", "send", "remove"].map((what) => {
              const label = what === "suggestion" ? `Use ${each.suggested}` : DECISIONS[what];
              const isOn = each.decided === what;
              return html`<${Small} key=${what} disabled=${page.running} aria-label=${`${label}: ${each.domain}`}
                aria-pressed=${String(isOn)} onClick=${() => decide(each, isOn ? "none" : what)}>${label}<//>`;
            })}
          </span>
        </li>`,
      )}
    </ul>
    ${more > 0 &&
    html`<${Small} local quiet aria-expanded=${String(isWhole)} onClick=${() => setWhole(!isWhole)}>
      ${isWhole ? "Show fewer" : `Show ${more} more`}
    <//>`}
  </section>`;
}

const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

// What was decided by hand, and what of it must be verified first.
function Decided() {
  const { decide, page, act } = useAudit();
  const { decided, to_check: toCheck } = decide;
  const parts = Object.entries(DECISIONS).filter(([what]) => decided[what]);
  return html`<div class="mv-notice mv-notice-act">
    <span>
      Decided by hand: ${parts.map(([what, label]) => `${label} ${decided[what].toLocaleString("en")}`).join(", ")}.
      ${toCheck && html` <span>${toCheck.text}</span>`}
    </span>
    ${toCheck && html`<${Small} disabled=${page.running} onClick=${() => act("check_decided")}>Verify them<//>`}
  </div>`;
}

function Downloads() {
  const { id, decide, act } = useAudit();
  const { format, service: serviceId } = decide.save_as;
  const saveAs = (change) => act("save_as", { ...decide.save_as, ...change });
  const off = decide.busy;
  const formats = decide.formats.map((each) => ({ id: each, label: FORMAT_NAMES[each] }));
  const services = [{ id: "", label: "a spreadsheet" }, ...decide.services];
  const means = "All rows, with all that was found out.";
  const everything = { id: "everything", label: "Everything", count: decide.total, means };
  const files = [...decide.actions.filter((each) => each.id !== "unchecked" || !each.empty), everything];
  const service = decide.services.find((each) => each.id === serviceId);
  const download = (which, kind) => act("download", { which, kind });
  return html`<section class="mv-part" aria-label="Download">
    <div class="mv-row mv-part-head">
      <h4>Download</h4>
      <span class="mv-gap" />
      <${Select} id=${`${id}-service`} label="For" options=${services} value=${serviceId}
        onChange=${(value) => saveAs({ service: value })} />
      <${Select} id=${`${id}-format`} label="As" options=${formats} value=${format}
        onChange=${(value) => saveAs({ format: value })} />
    </div>
    ${service && html`<${ServiceFiles} service=${service} off=${off} />`}
    <div class="mv-downloads">
      ${files.map((file) => html`<${Download} key=${file.id} file=${file} off=${off} onClick=${() => download(file.id, format)} />`)}
    </div>
    <div class="mv-row">
      <${Small} disabled=${off} onClick=${() => download("summary", "html")}>Report on one page (HTML)<//>
      <${Small} disabled=${off} onClick=${() => download("report", "html")}>Whole report (HTML)<//>
      <${Small} disabled=${off} onClick=${() => download("report", "xlsx")}>Whole report (Excel)<//>
      ${decide.is_filtered &&
      html`<${Small} disabled=${off} onClick=${() => download("shown", format)}>What is shown below (${decide.found})<//>`}
    </div>
  </section>`;
}

// The send list goes back where it came from: two files, as the importer of the service expects them.
function ServiceFiles({ service, off }) {
  const { decide, act } = useAudit();
  const download = (which) => act("download_for", { service: service.id, which });
  const [send, drop] = ["send", "drop"].map((id) => decide.actions.find((each) => each.id === id));
  return html`<div class="mv-downloads mv-service">
    <${Download} file=${{ ...send, label: `Send list for ${service.label}`, count: decide.people, means: service.means }} off=${off}
      onClick=${() => download("send")} />
    <${Download} file=${{ ...drop, label: `To take off in ${service.label}`, count: "", means: service.removed }} off=${off}
      onClick=${() => download("drop")} />
  </div>`;
}

function Download({ file, off, onClick }) {
  const { marks } = useAudit();
  return html`<${Button} class="mv-download" disabled=${off || file.empty} why=${file.empty ? "no row is in it" : ""} onClick=${onClick}>
    <span class="mv-download-label">
      <span class="mv-hidden">Download </span>${marks[file.id] && html`<${Mark} name=${file.id} />`} ${file.label}
    </span>
    <span class="mv-download-count">${file.count}</span>
    <span class="mv-download-means">${file.means}</span>
  <//>`;
}

function Facets() {
  const { decide } = useAudit();
  return html`<div class="mv-facets">${decide.facets.map((facet) => html`<${Facet} key=${facet.id} facet=${facet} />`)}</div>`;
}

// The first values; those that are chosen are always shown.
function Facet({ facet }) {
  const { act } = useAudit();
  const [isWhole, setWhole] = useState(false);
  const { id, label, values } = facet;
  const more = values.length - FEW_VALUES;
  const hasMore = more > 1;
  const press = isWhole ? "Show fewer" : `Show ${more} more`;
  const shown = isWhole || !hasMore ? values : values.filter((each, at) => at < FEW_VALUES || each.on);
  return html`<div class="mv-facet" role="group" aria-label=${label}>
    <h5>${label}</h5>
    ${shown.map(
      (each) => html`<${Button} key=${each.id} class="mv-value" aria-pressed=${String(each.on)} title=${each.label}
        onClick=${() => act("set_facet", { facet: id, value: each.id })}>
        <span class="mv-value-label"><${Text}>${each.label}<//></span>
        <span class="mv-value-count">${each.count}</span>
        <${Meter} share=${each.share} name=${id === "verdict" || id === "action" ? each.id : ""} />
      <//>`,
    )}
    ${hasMore &&
    html`<${Small} local quiet aria-expanded=${String(isWhole)} aria-label=${`${press}: ${label}`}
      onClick=${() => setWhole(!isWhole)}>${press}<//>`}
    ${facet.more && (isWhole || !hasMore) && html`<p class="mv-soft">${facet.more}</p>`}
  </div>`;
}

function Comparison() {
  const { decide, words } = useAudit();
  const { comparison } = decide;
  const word = (name) => words[name] ?? name;
  return html`<section class=${comparison ? "mv-part" : "mv-part mv-screen"} aria-label="Compare with an earlier audit">
    <div class="mv-row mv-part-head">
      <h4>Compare with an earlier audit</h4>
      <span class="mv-soft mv-gap">
        ${comparison ? `${comparison.headline} The report shows it, too.` : "Give the file that you downloaded then as “Everything”."}
      </span>
      <${FileButton} purpose="compare">Choose the earlier file<//>
    </div>
    <${Transfers} purpose="compare" />
    ${comparison &&
    comparison.moves.length > 0 &&
    html`<ul class="mv-moves">
      ${comparison.moves.map(
        (each) => html`<li>
          <strong>${each.rows.toLocaleString("en")}</strong> ${each.what}
          ${each.detail && html`<span class="mv-soft"> ${each.detail}</span>`}
        </li>`,
      )}
    </ul>`}
    ${comparison &&
    comparison.addresses.length > 0 &&
    html`<details>
      <summary>Addresses whose verdict changed</summary>
      <ul class="mv-moves">
        ${comparison.addresses.map(
          (each) => html`<li><code><${Text}>${each.address}<//></code> ${word(each.before)} → ${word(each.after)}</li>`,
        )}
      </ul>
    </details>`}
  </section>`;
}

const STEPS = [
  { name: "list", title: "List", view: ListStep },
  { name: "tidy", title: "Tidy", view: TidyStep, folded: TidyQuestions },
  { name: "check", title: "Verify", view: CheckStep },
  { name: "decide", title: "Decide", view: DecideStep },
];

export { STEPS };

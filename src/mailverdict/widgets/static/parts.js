// Parts that all steps share. Text goes through text nodes and attributes only, never through HTML.

import { createContext, html, useContext, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";

// What every part may need: the sections that were sent, `act`, `upload`, and whether the connection is lost.
const Audit = createContext(null);
const useAudit = () => useContext(Audit);

// A button that cannot be pressed keeps the focus: browsers move it away from one with the attribute `disabled`.
// `local`: it changes this page only, so it works without a connection. `why`: what is said while it cannot be pressed.
function Button({ disabled, why, local, onClick, children, ...props }) {
  const { isLost } = useAudit();
  const isOff = Boolean(disabled) || (isLost && !local);
  const press = (event) => !isOff && onClick(event);
  const said = isOff && why ? { title: why, "aria-description": why } : {};
  return html`<button class="mv-button" ...${props} ...${said} type="button" aria-disabled=${String(isOff)} onClick=${press}>
    ${children}
  </button>`;
}

const Small = ({ quiet, ...props }) =>
  html`<${Button} class=${quiet ? "mv-button mv-small mv-quiet" : "mv-button mv-small"} ...${props} />`;

// What was chosen is shown until it is answered: sections that come before that have the old value, and a second press
// would be the opposite of what they show.
function useChoice(value) {
  const [pressed, setPressed] = useState(null);
  const choose = async (chosen, answer) => {
    const press = { value: chosen };
    setPressed(press);
    await answer;
    setPressed((last) => (last === press ? null : last));
  };
  return [pressed ? pressed.value : value, choose];
}

function Switch({ id, label, on, disabled, local, onChange }) {
  const { isLost } = useAudit();
  const [isOn, choose] = useChoice(on);
  const press = (event) => choose(event.target.checked, onChange(event.target.checked));
  return html`<label class="mv-switch" for=${id}>
    <input id=${id} type="checkbox" role="switch" checked=${isOn} disabled=${disabled || (isLost && !local)} onChange=${press} />
    <span class="mv-track" aria-hidden="true" />
    <span class="mv-item-label">${label}</span>
  </label>`;
}

function Select({ id, label, options, value, disabled, onChange }) {
  const { isLost } = useAudit();
  const [shown, choose] = useChoice(value);
  const press = (event) => choose(event.target.value, onChange(event.target.value));
  return html`<span class="mv-field">
    <label for=${id}>${label}</label>
    <select id=${id} value=${String(shown)} disabled=${disabled || isLost} onChange=${press}>
      ${options.map((each) => html`<option key=${each.id} value=${String(each.id)}>${each.label}</option>`)}
    </select>
  </span>`;
}

// A field whose value comes from outside, but never replaces what is being typed.
function Input({ value, ...props }) {
  const box = useRef();
  useLayoutEffect(() => {
    if (box.current.getRootNode().activeElement !== box.current) box.current.value = value;
  });
  return html`<input ref=${box} ...${props} />`;
}

function Mark({ name }) {
  const { shape, sign } = useAudit().marks[name];
  const drawn = shape
    ? html`<path d=${shape} /><path class="mv-sign" d=${sign} />`
    : html`<circle class="mv-ring" cx="8" cy="8" r="6" />`;
  return html`<svg class=${`mv-symbol mv-${name}`} viewBox="0 0 16 16" aria-hidden="true">${drawn}</svg>`;
}

// A text of the list. Characters that turn the direction of a text could show another address than the one that is meant:
// they are shown themselves, and the text has a direction of its own.
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const nameOf = (char) => `⟨U+${char.codePointAt().toString(16).toUpperCase().padStart(4, "0")}⟩`;
const visible = (text) => String(text ?? "").replace(TURNS, nameOf);
const Text = ({ children }) => html`<bdi>${visible(children)}</bdi>`;

// Undo and Redo for everything that a person chose; the list takes back several choices at once.
function UndoRedo({ off }) {
  const { page, act } = useAudit();
  const [last, ...earlier] = page.undo;
  const why = off ? "not while a check is running" : "";
  return html`
    <${Small} quiet class="mv-button mv-small mv-quiet mv-undo" disabled=${off || !last} why=${why || "nothing was chosen yet"}
      onClick=${() => act("undo")}>${last ? html`Undo: <${Text}>${last}<//>` : "Undo"}<//>
    ${earlier.length > 0 &&
    html`<details class="mv-past">
      <summary>Earlier</summary>
      <ol>
        ${earlier.map(
          (what, at) => html`<li key=${`${at} ${what}`}>
            <${Small} quiet disabled=${off} why=${why} title="Takes this back, and all that came after it"
              onClick=${() => act("undo_several", { count: at + 2 })}>Undo to here: <${Text}>${what}<//><//>
          </li>`,
        )}
      </ol>
    </details>`}
    <${Small} quiet class="mv-button mv-small mv-quiet mv-undo" disabled=${off || !page.redo} why=${why || "nothing was taken back"}
      onClick=${() => act("redo")}>${page.redo ? html`Redo: <${Text}>${page.redo}<//>` : "Redo"}<//>
  `;
}

const Badge = ({ name, label }) => html`<span class=${`mv-badge mv-${name}`}><${Mark} name=${name} />${label}</span>`;

const Meter = ({ share, name }) => html`<span class=${name ? `mv-meter mv-${name}` : "mv-meter"} aria-hidden="true">
  <span style=${`width:${(100 * share).toFixed(2)}%`} />
</span>`;

const Notice = ({ kind, role, children }) =>
  html`<p class=${kind ? `mv-notice mv-notice-${kind}` : "mv-notice"} role=${role}>${children}</p>`;

// A small table that is scrolled sideways where it has no room. With `at` that column is marked and in sight, and long
// cells are cut: they are of the list.
function Cells({ label, heads, rows, at }) {
  const box = useRef();
  useLayoutEffect(() => {
    const taken = box.current.querySelector(".mv-taken");
    if (taken) box.current.scrollLeft = taken.offsetLeft + taken.offsetWidth - box.current.clientWidth;
  }, [heads.join("\n"), at]);
  const look = (place) => (place === at ? "mv-taken" : "");
  const cut = at === undefined ? " mv-cells-whole" : "";
  return html`<div ref=${box} class=${`mv-cells${cut}`} tabindex="0" role="region" aria-label=${label}>
    <table class="mv-table">
      <thead>
        <tr>${heads.map((head, place) => html`<th scope="col" class=${look(place)}><${Text}>${head}<//></th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr>
            ${row.map((cell, place) => html`<td class=${look(place)} title=${visible(cell)}><${Text}>${cell}<//></td>`)}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

// What a section says, and what it is busy with.
function Notices({ message, kind, busy }) {
  return html`
    ${message && html`<${Notice} key="message" kind=${kind} role=${kind === "failed" ? "alert" : "status"}>${message}<//>`}
    ${busy && html`<p key="busy" class="mv-busy"><span class="mv-spinner" aria-hidden="true" />${busy}</p>`}
  `;
}

// Files that are on their way for a purpose.
function Transfers({ purpose }) {
  const { id, transfers } = useAudit();
  return transfers
    .filter((each) => each.purpose === purpose)
    .map(
      (each) => html`<div key=${each.key} class="mv-transfer">
        <label for=${`${id}-${each.key}`}>${each.text}${each.wait}</label>
        <progress id=${`${id}-${each.key}`} max=${each.total || 1} value=${each.done} />
        <${Small} local onClick=${each.cancel}>Cancel<//>
      </div>`,
    );
}

// A button that opens the browser's file dialog.
function FileButton({ button = Small, purpose, ...props }) {
  const { list, upload } = useAudit();
  const input = useRef();
  const choose = (event) => {
    if (event.target.files.length) upload(event.target.files[0], purpose);
    event.target.value = "";
  };
  return html`
    <${button} ...${props} onClick=${() => input.current.click()} />
    <input ref=${input} type="file" accept=${list.accept} hidden tabindex="-1" aria-hidden="true" onChange=${choose} />
  `;
}

// A text field that opens below its button. The focus does not get lost with it: a list that is read replaces the buttons
// of its step, not its title.
function PasteBox({ purpose, label, onDone }) {
  const { id, paste, setPaste, focusOn } = useAudit();
  const box = useRef();
  if (!paste[purpose]) return null;
  const close = (place) => {
    setPaste({ ...paste, [purpose]: false });
    focusOn(place);
  };
  const finish = () => {
    const text = box.current.value;
    if (!text.trim()) return box.current.focus();
    close(purpose === "list" ? "list-title" : `open-${purpose}`);
    return onDone(text);
  };
  const name = `${id}-paste-${purpose}`;
  return html`<div key="paste" class="mv-paste">
    <label for=${name}>${label}</label>
    <textarea ref=${box} id=${name} rows="6" placeholder="ada@example.org" spellcheck=${false} />
    <div class="mv-row">
      <${Button} onClick=${finish}>Use these<//>
      <${Button} local class="mv-button mv-quiet" onClick=${() => close(`open-${purpose}`)}>Close<//>
    </div>
  </div>`;
}

function PasteButton({ button = Small, purpose, ...props }) {
  const { id, paste, setPaste, focusOn } = useAudit();
  const open = () => {
    setPaste({ ...paste, [purpose]: true });
    focusOn(`paste-${purpose}`);
  };
  return html`<${button} id=${`${id}-open-${purpose}`} ...${props} onClick=${open} />`;
}

export {
  Audit, Badge, Button, Cells, FileButton, Input, Mark, Meter, Notice, Notices, PasteBox, PasteButton, Select, Small,
  Switch, Text, Transfers, UndoRedo, useAudit, useChoice, visible,
};

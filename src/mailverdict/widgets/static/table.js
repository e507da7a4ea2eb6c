// The rows of the result: search, sort, pages, and what was found out about a row.

import { html, useRef, useState } from "./vendor/preact-htm.js";
import { Badge, Button, Input, Mark, Small, useAudit } from "./parts.js";

const ALWAYS_SHOWN = 4; // columns of the table besides the row: address, verdict, why, what to do
const TYPING = 60; // milliseconds without a key until what is typed is searched
const SORT_SIGNS = { ascending: "▲", descending: "▼", none: "" };

// Texts that are typed while one is searched do not queue up: only the last is searched.
function useSearch(act) {
  const { current: state } = useRef({ timer: null, next: null, isAsking: false });
  const ask = async () => {
    if (state.isAsking) return;
    state.isAsking = true;
    while (state.next !== null) {
      const text = state.next;
      state.next = null;
      await act("search", { text });
    }
    state.isAsking = false;
  };
  const forget = () => {
    clearTimeout(state.timer);
    state.next = null;
  };
  const search = (text) => {
    forget();
    state.timer = setTimeout(() => {
      state.next = text;
      ask();
    }, TYPING);
  };
  return { search, forget };
}

function Table() {
  const { id, decide, act } = useAudit();
  const [openRow, setOpenRow] = useState(null);
  const { search, forget } = useSearch(act);
  const box = useRef();
  const showAll = () => {
    forget();
    box.current.querySelector("input").value = "";
    act("clear_facets");
  };
  return html`<div class="mv-table-part">
    <div class="mv-row mv-table-head">
      <label ref=${box} class="mv-field" for=${`${id}-search`}>
        <span>Search</span>
        <${Input} id=${`${id}-search`} type="search" spellcheck=${false} value=${decide.words} placeholder="words in any column"
          onInput=${(event) => search(event.target.value)} />
      </label>
      <strong class="mv-found">${decide.found}</strong>
      <${Small} quiet disabled=${!decide.is_filtered} onClick=${showAll}>Show all<//>
      <span class="mv-gap" />
      <${Pager} />
    </div>
    <table class="mv-table">
      <caption class="mv-hidden">${decide.title}, ${decide.found}</caption>
      <thead>
        <tr>
          <th scope="col" class="mv-col-row"><span class="mv-hidden">Row</span></th>
          ${decide.heads.map((head, at) => html`<${Head} key=${head.key} head=${head} at=${at} />`)}
        </tr>
      </thead>
      <tbody>
        ${decide.rows.map((row) => {
          const isOpen = openRow === row.row;
          const toggle = () => setOpenRow(isOpen ? null : row.row);
          return html`
            <${Line} key=${row.row} row=${row} isOpen=${isOpen} onToggle=${toggle} />
            ${isOpen && html`<${Details} key=${`${row.row} details`} row=${row} />`}
          `;
        })}
      </tbody>
    </table>
    ${!decide.rows.length && html`<p class="mv-soft mv-empty">No row matches.</p>`}
    ${decide.left_out && html`<p class="mv-soft">${decide.left_out}</p>`}
  </div>`;
}

function Head({ head, at }) {
  const { act } = useAudit();
  return html`<th scope="col" aria-sort=${head.sort} class=${columnClass(head.key, at)}>
    <${Button} class="mv-sort" title=${`Sort by ${head.label}`} onClick=${() => act("sort", { key: head.key })}>
      <span class="mv-cut">${head.label}</span>
      <span class="mv-sort-sign" aria-hidden="true">${SORT_SIGNS[head.sort]}</span>
    <//>
  </th>`;
}

function columnClass(key, at) {
  // Of the user's own columns a wide page shows those among the first 7 columns, a wider one those among the first 9.
  const room = at < 7 ? " mv-own-wide" : at < 9 ? " mv-own-wider" : "";
  return at === 0 ? "mv-col-address" : key.startsWith("column ") ? `mv-col-own${room}` : `mv-col-${key}`;
}

function Line({ row, isOpen, onToggle }) {
  const { decide } = useAudit();
  // A click anywhere in the row opens it; who selects a text to copy it does not want that.
  const onRow = (event) => !event.target.closest("button") && !String(getSelection()) && onToggle();
  return html`<tr class="mv-line" onClick=${onRow}>
    <td class="mv-col-row">
      <${Button} local class="mv-more" aria-expanded=${String(isOpen)} aria-label=${`Details of row ${row.row}`} onClick=${onToggle}>
        ${row.row}
      <//>
    </td>
    ${decide.heads.map(({ key }, at) => {
      const text = key === "reason" ? row.why || row.reason : row.cells[key] ?? "";
      return html`<td key=${key} class=${columnClass(key, at)} title=${text}><${Cell} row=${row} name=${key} /></td>`;
    })}
  </tr>`;
}

function Cell({ row, name }) {
  const { decide, words } = useAudit();
  if (name === "verdict") return html`<${Badge} name=${row.verdict} label=${words[row.verdict] ?? row.verdict} />`;
  if (name === "reason") return row.reason;
  if (name !== "action") return row.cells[name] ?? "";
  const label = decide.actions.find((each) => each.id === row.action)?.label ?? row.action;
  return html`<${Mark} name=${row.action} /> ${label}`;
}

function Details({ row }) {
  const { decide } = useAudit();
  const { heads } = decide;
  return html`<tr class="mv-details">
    <td colspan=${ALWAYS_SHOWN + 1}>
      <dl>
        <div><dt>Why</dt><dd>${row.why || row.reason}</dd></div>
        ${heads
          .filter((head) => row.cells[head.key])
          .map((head) => html`<div key=${head.key}><dt>${head.label}</dt><dd>${row.cells[head.key]}</dd></div>`)}
      </dl>
    </td>
    ${heads.slice(ALWAYS_SHOWN).map((head, at) => html`<td key=${head.key} class=${columnClass(head.key, at + ALWAYS_SHOWN)} />`)}
  </tr>`;
}

function Pager() {
  const { decide, act } = useAudit();
  const { page, pages, range } = decide;
  const go = (number) => act("page", { number });
  return html`<div class="mv-row mv-pager" role="group" aria-label="Pages">
    <${Small} disabled=${page <= 1} aria-label="Previous page" onClick=${() => go(page - 1)}>‹<//>
    <label class="mv-field">
      <span>Page</span>
      <${Input} type="number" min="1" max=${pages} value=${page} onChange=${(event) => go(Math.trunc(Number(event.target.value)) || 1)} />
    </label>
    <span class="mv-soft">of ${pages.toLocaleString("en")} (${range})</span>
    <${Small} disabled=${page >= pages} aria-label="Next page" onClick=${() => go(page + 1)}>›<//>
  </div>`;
}

export { Table };

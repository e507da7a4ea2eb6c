// The rows of the result: search, sort, decisions about rows, and what was found out about one of them.
//
// Python sends some rows around those that are seen, `decide.table`; the action `rows` moves this window.

import { html, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { Badge, Button, Input, Mark, Small, Switch, Text, UndoRedo, useAudit, visible } from "./parts.js";

const ROW = 48; // pixels, as in page.css
const ASKED = 120; // rows of a window
const AROUND = 8; // rows that are drawn above and below those that are seen
const MARGIN = 25; // rows above and below those that are seen, from which on the next window is asked for
const PAGE = 50; // rows, where they are not scrolled
const TALLEST = 8_000_000; // pixels: browsers do not draw elements that are much higher
const TYPING = 60; // milliseconds without a key until what is typed is searched
const SORT_SIGNS = { ascending: "▲", descending: "▼", none: "" };
const NO_ADDRESS = "the row holds no address";
const RUNNING = "not while a check is running";
const DECISIONS = { send: "Send anyway", remove: "Remove", suggestion: "Use the suggestion" };

// Questions that come while one is under way do not queue up: only the last is asked.
function useLatest(ask) {
  const { current: state } = useRef({ next: null, isAsking: false });
  state.ask = ask;
  const start = async (question) => {
    state.next = question;
    if (state.isAsking) return;
    state.isAsking = true;
    while (state.next !== null) {
      const next = state.next;
      state.next = null;
      await state.ask(next);
    }
    state.isAsking = false;
  };
  return { start, forget: () => (state.next = null), isAsking: () => state.isAsking };
}

function Table() {
  const { id, decide, page, act } = useAudit();
  const [inPages, setInPages] = useState(false);
  const [shownRow, setShownRow] = useState(null);
  // A row that was scrolled away stays; one that another search or result may not have does not.
  const from = `${decide.check} ${decide.found}`;
  const kept = shownRow?.from === from ? shownRow : null;
  const open = shownRow && (decide.table.rows.find((row) => row.at === shownRow.at) ?? kept);
  const toggle = (row) => setShownRow(open?.at === row.at ? null : { ...row, from });
  const view = { open, toggle };
  const box = useRef();
  // The focus goes from the details to the row that they were about.
  const close = () => {
    box.current.querySelector(".mv-more[aria-expanded=true]")?.focus();
    setShownRow(null);
  };
  const onKey = (event) => {
    if (event.key !== "Escape" || !open) return;
    close();
    event.stopPropagation();
  };
  return html`<div ref=${box} class="mv-table-part" onKeyDown=${onKey}>
    <div class="mv-row mv-table-head">
      <${Search} />
      <span class="mv-gap" />
      <${UndoRedo} off=${page.running} />
      <${Switch} id=${`${id}-pages`} label="In pages" on=${inPages} onChange=${setInPages} local />
    </div>
    ${decide.is_filtered && decide.table.total > 0 && html`<${DecideShown} />`}
    <div class=${open ? "mv-rows mv-rows-open" : "mv-rows"}>
      ${inPages ? html`<${Pages} view=${view} />` : html`<${Scrolled} key="scrolled" view=${view} />`}
      ${open && html`<${Details} row=${open} onClose=${close} />`}
    </div>
    ${!decide.table.total && html`<p class="mv-soft mv-empty">No row matches.</p>`}
    ${decide.left_out && html`<p class="mv-soft">${decide.left_out}</p>`}
  </div>`;
}

function Search() {
  const { id, decide, act } = useAudit();
  const box = useRef();
  const { current: typing } = useRef({});
  const question = useLatest((text) => act("search", { text }));
  const search = (text) => {
    clearTimeout(typing.timer);
    typing.timer = setTimeout(() => question.start(text), TYPING);
  };
  const showAll = () => {
    clearTimeout(typing.timer);
    question.forget();
    box.current.querySelector("input").value = "";
    act("clear_facets");
  };
  return html`
    <label ref=${box} class="mv-field" for=${`${id}-search`}>
      <span>Search</span>
      <${Input} id=${`${id}-search`} type="search" spellcheck=${false} value=${decide.words} placeholder="words in any column"
        onInput=${(event) => search(event.target.value)} />
    </label>
    <strong class="mv-found">${decide.found}</strong>
    <${Small} quiet disabled=${!decide.is_filtered} why="all rows are shown" onClick=${showAll}>Show all<//>
  `;
}

// --- rows that are scrolled -------------------------------------------------------------------------------------------

// Which rows are seen, and how much room the others take. A list of up to 8 million pixels is scrolled as it is. Of a
// longer one the scroll bar shows the place, while a wheel or a key moves by as much as it says.
function useScrolled(total, box) {
  const { current: at } = useRef({ top: 0, scroll: 0, seen: 15 * ROW });
  const [, draw] = useState(0);
  const height = total * ROW;
  const tall = Math.min(height, TALLEST);
  const read = () => {
    const { scrollTop: scroll, clientHeight } = box.current;
    const seen = Math.max(clientHeight - ROW, ROW); // the head covers the first row
    if (height === tall || scroll < seen) at.top = scroll;
    else if (scroll > tall - 2 * seen) at.top = height - (tall - scroll);
    else if (Math.abs(scroll - at.scroll) < seen) at.top += scroll - at.scroll;
    else at.top = (scroll / (tall - seen)) * (height - seen);
    Object.assign(at, { scroll, seen });
    draw((count) => count + 1);
  };
  const goTo = (row) => {
    const top = row * ROW;
    box.current.scrollTop = height === tall ? top : (top / Math.max(height - at.seen, 1)) * (tall - at.seen);
    Object.assign(at, { top, scroll: box.current.scrollTop });
    draw((count) => count + 1);
  };
  const getSeen = () => [Math.floor(at.top / ROW), Math.ceil((at.top + at.seen) / ROW)].map((row) => Math.min(row, total));
  const [seenFirst, seenLast] = getSeen();
  const first = Math.max(0, seenFirst - AROUND, Math.ceil((at.top - at.scroll) / ROW));
  const last = Math.min(total, seenLast + AROUND);
  const before = first * ROW - (at.top - at.scroll);
  const after = Math.max(0, tall - before - (last - first) * ROW);
  return { first, last, before, after, getSeen, read, goTo };
}

function Scrolled({ view }) {
  const { decide, act } = useAudit();
  const { first: start, total, rows } = decide.table;
  const box = useRef();
  const scrolled = useScrolled(total, box);
  const question = useLatest((first) => act("rows", { first, count: ASKED }));
  const has = (margin) => {
    const [first, last] = scrolled.getSeen();
    return start <= Math.max(first - margin, 0) && Math.min(last + margin, total) <= start + rows.length;
  };
  const onScroll = () => {
    scrolled.read();
    if (!has(MARGIN)) question.start(Math.max(0, Math.min(scrolled.getSeen()[0] - (ASKED >> 1), total - ASKED)));
  };
  // A window that somebody else moved (a search, another tab) is followed: two tabs never fight about it.
  useLayoutEffect(() => {
    if (total && !has(0) && !question.isAsking()) scrolled.goTo(start);
  }, [decide.table]);
  useLayoutEffect(() => scrolled.read(), [total]); // how much is seen is known once it is drawn
  useFocusKept(box);
  const shown = [];
  for (let at = scrolled.first; at < scrolled.last; at++) shown.push({ at, row: rows[at - start] });
  return html`<div ref=${box} class="mv-scroll" tabindex="0" role="region" aria-label="Rows" onScroll=${onScroll}>
    <${Rows} view=${view} shown=${shown} before=${scrolled.before} after=${scrolled.after} />
  </div>`;
}

// The row with the focus may be scrolled away: then the scrolled region has it.
function useFocusKept(box) {
  const hadFocus = box.current?.contains(box.current.getRootNode().activeElement);
  useLayoutEffect(() => {
    if (hadFocus && !box.current.contains(box.current.getRootNode().activeElement)) box.current.focus({ preventScroll: true });
  });
}

// --- rows in pages, for screen readers and for print ------------------------------------------------------------------

function Pages({ view }) {
  const { decide, act } = useAudit();
  const { first, total, rows } = decide.table;
  const pages = Math.max(1, Math.ceil(total / PAGE));
  const number = Math.floor(first / PAGE) + 1;
  const isWhole = first % PAGE === 0 && rows.length === Math.min(PAGE, total - first);
  const go = (to) => act("rows", { first: (Math.min(Math.max(to, 1), pages) - 1) * PAGE, count: PAGE });
  useLayoutEffect(() => void (isWhole || go(number)), [isWhole]);
  const range = total ? `${(first + 1).toLocaleString("en")} to ${(first + rows.length).toLocaleString("en")}` : "no rows";
  const onPage = (event) => go(Math.trunc(Number(event.target.value)) || 1);
  return html`<div>
    <div class="mv-row mv-pager" role="group" aria-label="Pages">
      <${Small} disabled=${number <= 1} aria-label="Previous page" onClick=${() => go(number - 1)}>‹<//>
      <label class="mv-field">
        <span>Page</span>
        <${Input} type="number" min="1" max=${pages} value=${number} onChange=${onPage} />
      </label>
      <span class="mv-soft">of ${pages.toLocaleString("en")} (${range})</span>
      <${Small} disabled=${number >= pages} aria-label="Next page" onClick=${() => go(number + 1)}>›<//>
    </div>
    <${Rows} view=${view} shown=${rows.map((row, at) => ({ at: first + at, row }))} />
  </div>`;
}

// --- the table --------------------------------------------------------------------------------------------------------

function Rows({ view, shown, before, after }) {
  const { decide } = useAudit();
  const { heads, title, found, total, table } = decide;
  const digits = String(total).split(" ")[0].length;
  // One cell: with `colspan` the columns that have no room would get some.
  const room = (height) =>
    height > 0 && html`<tr aria-hidden="true" class="mv-room"><td style=${`height:${height}px`} /></tr>`;
  return html`<table class="mv-table" aria-rowcount=${table.total + 1}>
    <caption class="mv-hidden"><${Text}>${title}<//>, ${found}</caption>
    <thead>
      <tr aria-rowindex="1">
        <th scope="col" class="mv-col-row" style=${`width:calc(${digits}ch + 36px)`}><span class="mv-hidden">Row</span></th>
        ${heads.map((head, at) => html`<${Head} key=${head.key} head=${head} at=${at} />`)}
      </tr>
    </thead>
    <tbody>
      ${room(before)}
      ${shown.map(({ at, row }) =>
        row
          ? html`<${Line} key=${row.at} at=${at} row=${row} view=${view} />`
          : html`<tr key=${`empty ${at}`} class="mv-line" aria-rowindex=${at + 2}><td>…</td></tr>`,
      )}
      ${room(after)}
    </tbody>
  </table>`;
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

function Line({ row, at, view }) {
  const { decide } = useAudit();
  const isOpen = view.open?.at === row.at;
  const toggle = () => view.toggle(row);
  // A click anywhere in the row opens it; who selects a text to copy it does not want that.
  const onRow = (event) => !event.target.closest("button") && !String(getSelection()) && toggle();
  const title = (key) => visible(key === "reason" ? row.why || row.reason : row.cells[key]);
  return html`<tr class=${isOpen ? "mv-line mv-line-open" : "mv-line"} aria-rowindex=${at + 2} onClick=${onRow}>
    <td class="mv-col-row">
      <${Button} local class="mv-more" aria-expanded=${String(isOpen)} aria-label=${`Details of row ${row.row}`}
        onClick=${toggle}>${row.row}<//>
    </td>
    ${decide.heads.map(
      ({ key }, place) => html`<td key=${key} class=${columnClass(key, place)} title=${title(key)}>
        <${Cell} row=${row} name=${place ? key : "address"} head=${key} />
      </td>`,
    )}
  </tr>`;
}

function Cell({ row, name, head }) {
  const { decide, words } = useAudit();
  if (name === "address") return html`<${Address} row=${row} text=${row.cells[head]} />`;
  if (name === "verdict") {
    // Where there is no room for a column of its own, why is below it.
    const label = decide.picture.find((each) => each.id === row.verdict)?.label ?? words[row.verdict];
    return html`
      <${Badge} name=${row.verdict} label=${label} />
      ${row.reason !== label && html`<span class="mv-cut mv-soft mv-why">${row.reason}</span>`}
    `;
  }
  if (name === "reason") return row.reason;
  if (name === "action") return html`<${Action} row=${row} />`;
  return html`<${Text}>${row.cells[name]}<//>`;
}

// The address as it was written. Where there is no room for columns of their own, what was repaired, and what was
// probably meant, are below it.
function Address({ row, text }) {
  const { suggestion, clean } = row.cells;
  const below = suggestion ? `Did you mean ${suggestion}?` : clean ? `→ ${clean}` : "";
  return html`
    <span class="mv-cut"><${Text}>${text}<//></span>
    ${below && html`<span class="mv-cut mv-soft mv-below"><${Text}>${below}<//></span>`}
  `;
}

// What the policy or a person says, with buttons where there is a doubt.
function Action({ row }) {
  const { decide } = useAudit();
  const label = decide.actions.find((each) => each.id === row.action)?.label ?? row.action;
  return html`<span class="mv-cut"><${Mark} name=${row.action} /> ${row.decided ? DECISIONS[row.decided] : label}</span>
    ${(row.decided || row.action === "review" || row.action === "retry") &&
    html`<span class="mv-row-actions"><${RowActions} row=${row} isShort /></span>`}`;
}

// --- decisions --------------------------------------------------------------------------------------------------------

// Each of them is pressed while it is in force; pressed again, it is taken back.
function RowActions({ row, isShort }) {
  const { decide, page, act } = useAudit();
  const address = row.cells[decide.heads[0].key];
  const choices = [
    row.suggestion && { what: "suggestion", short: "Use it", long: `Use ${row.suggestion}`, of: `Use it: ${row.suggestion}` },
    { what: "send", short: "Send", long: DECISIONS.send, of: `${DECISIONS.send}: ${address}` },
    { what: "remove", short: "Remove", long: DECISIONS.remove, of: `${DECISIONS.remove}: ${address}` },
  ];
  return choices.filter(Boolean).map(({ what, short, long, of }) => {
    const isOn = row.decided === what;
    const press = () => act("decide", { rows: [row.at], what: isOn ? "none" : what });
    const isVain = what === "send" && !row.can_send && !isOn;
    return html`<${Small} key=${what} disabled=${page.running || isVain} why=${isVain ? NO_ADDRESS : RUNNING} aria-pressed=${String(isOn)}
      aria-label=${isShort ? of : undefined} onClick=${press}>${isShort ? short : long}<//>`;
  });
}

function DecideShown() {
  const { decide, page, act } = useAudit();
  const decideAll = (what) => act("decide_shown", { what });
  return html`<div class="mv-row mv-decide-shown" role="group" aria-label="Decide about all rows shown">
    <span class="mv-soft">All that are shown (${decide.found}):</span>
    ${decide.decide_shown.map(
      (each) => html`<${Small} key=${each.id} disabled=${page.running || each.why} why=${each.why || RUNNING}
        onClick=${() => decideAll(each.id)}>${each.label}<//>`,
    )}
    <${Small} quiet disabled=${page.running || !decide.decided?.total} why=${page.running ? RUNNING : "nothing is decided by hand"} onClick=${() => decideAll("none")}>As the policy says<//>
  </div>`;
}

// --- one row ----------------------------------------------------------------------------------------------------------

function Details({ row, onClose }) {
  const { id, decide } = useAudit();
  const name = `${id}-details`;
  return html`<aside class="mv-details" aria-labelledby=${name}>
    <div class="mv-row">
      <h5 id=${name} class="mv-gap">Row ${row.row}</h5>
      <${Small} local quiet aria-label="Close the details" onClick=${onClose}>✕<//>
    </div>
    <div class="mv-row mv-row-actions"><${RowActions} row=${row} /></div>
    ${!row.can_send && html`<p class="mv-soft">Nothing can be sent: ${NO_ADDRESS}.</p>`}
    <dl>
      <div><dt>Why</dt><dd>${row.why || row.reason}</dd></div>
      ${decide.heads
        .filter((head) => row.cells[head.key])
        .map((head) => html`<div key=${head.key}><dt>${head.label}</dt><dd><${Text}>${row.cells[head.key]}<//></dd></div>`)}
    </dl>
  </aside>`;
}

export { DECISIONS, Table };

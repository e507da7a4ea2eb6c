// What a list means for a mailing: a sample first, who runs the mailboxes, what bounces say, and what to mail next.

import { html } from "./vendor/preact-htm.js";
import { Button, Cells, FileButton, Meter, Notices, Select, Small, Switch, Text, Transfers, useAudit } from "./parts.js";

// A few addresses first, where the whole list takes long or costs something.
function Sample() {
  const { check, act } = useAudit();
  const { label, running, table } = check.sample;
  return html`
    ${(label || running) &&
    html`<div class="mv-row">
      <${Small} disabled=${running} onClick=${() => act("check_sample")}>${label || "Checking…"}<//>
      <span class="mv-soft">Says what to expect of the whole list. What is checked is not paid again.</span>
    </div>`}
    ${running && html`<${Notices} busy=${check.busy} />`}
    ${table && html`<p>${table.text}</p><${Cells} label="What to expect" ...${table} />`}
  `;
}

// What the other columns say of the invalid addresses; a group that is pressed filters the rows.
function Origins() {
  const { id, decide, act } = useAudit();
  const { origins } = decide;
  if (!origins) return null;
  const choose = (each) => act("set_facet", { facet: "group", value: each.id });
  return html`<section class="mv-part" aria-label="Where they come from">
    <div class="mv-row mv-part-head">
      <h4>Where they come from</h4>
      <span class="mv-soft mv-gap">${origins.headline} <span class="mv-screen">Press a group to see its rows.</span></span>
      <${Select} id=${`${id}-origins`} label="Group by" options=${origins.columns} value=${origins.column}
        onChange=${(column) => act("show_groups", { column: Number(column) })} />
    </div>
    ${origins.found.length > 0 &&
    html`<ul class="mv-origins">
      ${origins.found.map(
        (each) => html`<li key=${each.id}>
          <${Button} class="mv-value" aria-pressed=${String(each.on)} onClick=${() => choose(each)}><${Text}>${each.text}<//><//>
        </li>`,
      )}
    </ul>`}
    <div class="mv-groups" role="group" aria-label=${`Groups of ${origins.name}`}>
      ${origins.groups.map(
        (each) => html`<${Button} key=${each.id} class="mv-value mv-group" aria-pressed=${String(each.on)} title=${each.label}
          onClick=${() => choose(each)}>
          <span class="mv-value-label"><${Text}>${each.label}<//></span>
          <span class="mv-value-count"><strong>${each.percent}</strong> invalid of ${each.people}</span>
          <${Meter} share=${each.share} name="invalid" />
          <span class="mv-soft mv-group-range">95% interval ${each.interval}${each.elsewhere && `, elsewhere ${each.elsewhere}`}</span>
        <//>`,
      )}
    </div>
    ${origins.more > 0 && html`<p class="mv-soft">${origins.more.toLocaleString("en")} more groups are in the report.</p>`}
    ${origins.rest.map((each) => html`<p key=${each} class="mv-soft"><${Text}>${each}<//></p>`)}
  </section>`;
}

function Operators() {
  const { operators } = useAudit().decide;
  if (!operators) return null;
  return html`<section class="mv-part" aria-label="By operator">
    <div class="mv-row mv-part-head">
      <h4>By operator</h4>
      <span class="mv-soft mv-gap">Who runs the mailboxes. ${operators.text}</span>
    </div>
    <${Cells} label="Addresses by operator" ...${operators} />
  </section>`;
}

function Bounces() {
  const { id, decide, page, act } = useAudit();
  const { bounces } = decide;
  return html`<section class=${bounces ? "mv-part" : "mv-part mv-screen"} aria-label="Bounces">
    <div class="mv-row mv-part-head">
      <h4>Bounces</h4>
      <span class="mv-soft mv-gap">
        ${bounces ? bounces.text : "After the mailing, give the file of bounces that your sender exports."}
      </span>
      ${bounces?.can_remove &&
      html`<${Small} disabled=${page.running} onClick=${() => act("remove_bounced")}>Take them off the list<//>`}
      ${bounces && html`<${Small} disabled=${page.running} onClick=${() => act("forget_bounces")}>Forget the exports<//>`}
      <${FileButton} purpose="bounces">${bounces ? "Add an export" : "Choose the export"}<//>
    </div>
    <${Transfers} purpose="bounces" />
    ${bounces &&
    html`<${Switch} id=${`${id}-complete`} label="All bounces have come" on=${bounces.is_complete}
      onChange=${(is_on) => act("set_complete", { is_on })} />`}
    ${bounces && html`<${Cells} label="What became of the mails" ...${bounces} />`}
  </section>`;
}

// A part of the list first, and more when few of its mails bounce. Undo takes a wave back.
function Waves() {
  const { decide, page, act } = useAudit();
  const { busy, wave } = decide;
  const disabled = busy || page.running;
  const csv = { kind: "csv" };
  return html`<section class=${wave.text ? "mv-part" : "mv-part mv-screen"} aria-label="Mail in waves">
    <div class="mv-row mv-part-head">
      <h4>Mail in waves</h4>
      <span class="mv-soft mv-gap">
        ${wave.text || "A part first, and doubtful rows as long as few mails bounce. Give the bounces before the next wave."}
      </span>
      ${wave.can_pilot && html`<${Small} disabled=${disabled} onClick=${() => act("make_pilot", csv)}>Mail 200 as a pilot<//>`}
      ${wave.can_resume && html`<${Small} disabled=${disabled} onClick=${() => act("resume_waves", csv)}>Mail nevertheless<//>`}
      <${Small} disabled=${disabled} onClick=${() => act("make_wave", csv)}>Make wave ${wave.next}<//>
    </div>
  </section>`;
}

export { Bounces, Operators, Origins, Sample, Waves };

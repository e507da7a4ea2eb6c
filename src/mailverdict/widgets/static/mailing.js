// What a result means for a mailing: who runs the mailboxes, and what the bounces of a mailing say about the verdicts.

import { html } from "./vendor/preact-htm.js";
import { Cells, FileButton, Small, Text, Transfers, useAudit } from "./parts.js";

function Operators() {
  const { operators } = useAudit().decide;
  if (!operators) return null;
  return html`<section class="mv-part" aria-label="By operator">
    <div class="mv-row mv-part-head">
      <h4>By operator</h4>
      <span class="mv-soft mv-gap">Who runs the mailboxes. ${operators.text}</span>
    </div>
    <${Cells} label="By operator" ...${operators} />
  </section>`;
}

function Bounces() {
  const { decide, page, act } = useAudit();
  const { bounces } = decide;
  return html`<section class="mv-part" aria-label="Bounces">
    <div class="mv-row mv-part-head">
      <h4>Bounces</h4>
      <span class="mv-soft mv-gap">
        ${bounces ? bounces.text : "After the mailing, give the file of bounces that your sender exports."}
      </span>
      ${bounces?.can_remove &&
      html`<${Small} disabled=${page.running} onClick=${() => act("remove_bounced")}>Take them off the list<//>`}
      <${FileButton} purpose="bounces">Choose the export<//>
    </div>
    <${Transfers} purpose="bounces" />
    ${bounces && html`<${Cells} label="What became of the mails" ...${bounces} />`}
  </section>`;
}

export { Bounces, Operators };

"""The look of the audit: Jupyter's own colours, so that it follows the theme, light or dark."""

from __future__ import annotations

from ..reports.page import COLOUR

__all__ = ["ROOT_CLASS", "STYLE"]

ROOT_CLASS = "mv-audit"
# Beyond Jupyter the variables are not there; what stands after the comma is GitHub's light theme.
TEXT = "var(--jp-ui-font-color1,#1f2328)"
SOFT = "var(--jp-ui-font-color2,#59636e)"
LINE = "var(--jp-border-color2,#d1d9e0)"
GROUND = "var(--jp-layout-color2,#eef1f4)"
PAPER = "var(--jp-layout-color0,#ffffff)"
LINK = "var(--jp-content-link-color,#0969da)"
FOCUS = "var(--jp-brand-color1,#0969da)"
KEYS = "".join(f".mv-audit .mv-{name}{{--mv-key:{colour}}}" for name, colour in COLOUR.items())

STYLE = f"""<style>
.mv-audit{{color:{TEXT};max-width:70rem;padding:.2rem .2rem 1rem;overflow:visible}}
.mv-audit .widget-html-content,.mv-audit .jupyter-widget-html-content{{line-height:1.5;white-space:normal}}
.mv-audit .mv-head{{font-size:1.05rem;font-weight:600;color:{TEXT};margin:.9rem 0 .2rem;
border-bottom:1px solid {LINE};padding-bottom:.15rem}}
.mv-audit .mv-soft{{color:{SOFT}}}
.mv-audit .mv-soft code{{color:{TEXT};background:{GROUND};padding:0 .3em;border-radius:3px}}
.mv-audit .mv-tiles{{display:flex;flex-wrap:wrap;gap:.4rem;margin:.3rem 0 0}}
.mv-audit .mv-tile{{background:{GROUND};border-radius:4px;padding:.25rem .7rem;min-width:5rem}}
.mv-audit .mv-tile span{{display:block;color:{SOFT};font-size:.85em;line-height:1.3}}
.mv-audit .mv-tile b{{display:block;font-size:1.15em;line-height:1.35;font-variant-numeric:tabular-nums}}
.mv-audit .mv-tile.mv-cost{{outline:2px solid {FOCUS};outline-offset:-2px}}
.mv-audit .mv-tile.mv-key{{border-left:5px solid var(--mv-key)}}
.mv-audit .mv-bar{{display:flex;height:.8rem;background:{GROUND};border-radius:3px;overflow:hidden;
margin:.5rem 0 .3rem}}
.mv-audit .mv-bar span{{display:block;background:var(--mv-key);height:100%}}
.mv-audit .mv-notice{{border-left:4px solid {LINE};background:{GROUND};padding:.35rem .7rem;margin:.4rem 0;
border-radius:0 4px 4px 0;overflow-wrap:anywhere}}
.mv-audit .mv-notice.mv-failed{{border-color:{COLOUR["invalid"]}}}
.mv-audit .mv-notice.mv-warned{{border-color:{COLOUR["risky"]}}}
.mv-audit .mv-notice.mv-done{{border-color:{COLOUR["valid"]}}}
.mv-audit a.mv-save{{color:{LINK};text-decoration:underline;font-weight:600}}
.mv-audit button:focus-visible,.mv-audit select:focus-visible,.mv-audit input:focus-visible,
.mv-audit a:focus-visible{{outline:2px solid {FOCUS};outline-offset:1px}}
.mv-audit .widget-label,.mv-audit .jupyter-widget-label{{color:{TEXT}}}
.mv-audit .mv-wrap{{flex-wrap:wrap;align-items:center;gap:.1rem .6rem;margin:.15rem 0}}
.mv-audit .mv-table{{border:1px solid {LINE};background:{PAPER};margin:.4rem 0}}
.mv-audit .mv-table .dt-container,.mv-audit .mv-table .itables_anywidget{{min-width:max-content;overflow:visible}}
.mv-audit .mv-table .dt-layout-row{{margin:0}}
.mv-audit .mv-table table.dataTable{{margin:0!important;color:{TEXT};background:{PAPER}}}
.mv-audit .mv-table table.dataTable th{{text-align:left;font-weight:600;position:sticky;top:0;background:{GROUND};
z-index:1}}
.mv-audit .mv-table table.dataTable td{{text-align:left;max-width:26rem;overflow:hidden;text-overflow:ellipsis}}
{KEYS}
</style>"""

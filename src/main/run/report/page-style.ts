/** The style sheet of the report, beside what all pages share. */
import { baseStyle } from '../../transcript/page-style.ts';

const report = `.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:10px;margin:14px 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px;min-width:0}
.tile b{display:block;font-size:20px;line-height:1.3;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}.tile span{color:var(--muted);font-size:13px}
.tile small{display:block}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:14px;margin:14px 0}.charts .card{margin:0;min-width:0}
.stack{display:block;width:100%;height:26px;border-radius:5px}
.legend{list-style:none;margin:10px 0 0;padding:0;display:flex;flex-wrap:wrap;gap:4px 16px;font-size:14px}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px}
.plot{position:relative;padding:18px 0 22px}.plot svg{display:block;width:100%;height:130px;border-bottom:1px solid var(--line);overflow:visible}
.ymax{position:absolute;top:0;left:0;font-size:12px;color:var(--muted)}
.plot::before{content:"";position:absolute;top:18px;left:0;right:0;border-top:1px dashed var(--line)}
.xaxis{position:absolute;left:0;right:0;bottom:0;height:20px;font-size:12px;color:var(--muted)}
.xaxis span{position:absolute;top:3px;white-space:nowrap}.xaxis .last{right:0}
.area{fill:var(--out)}
.note,.none{color:var(--muted);font-size:13px;margin:8px 0 0}
.tools{display:flex;flex-wrap:wrap;gap:8px;margin:0 0 12px;align-items:center}.tools[hidden]{display:none}
.tools input{font:inherit;flex:1 1 220px;min-width:0;padding:6px 10px;border:1px solid var(--line);border-radius:6px;background:var(--bg);color:inherit}
.tools button{font:inherit;font-size:13px;border:1px solid var(--line);border-radius:6px;background:var(--bg);color:inherit;padding:4px 10px;cursor:pointer}
.tools button[aria-pressed=false]{opacity:.45;text-decoration:line-through}
table{border-collapse:collapse;width:100%;font-size:13.5px}th,td{text-align:left;padding:6px 10px 6px 0;border-top:1px solid var(--line);vertical-align:top}
th{color:var(--muted);font-weight:600;border-top:0;white-space:nowrap}th.n,td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--link)}
th[aria-sort=ascending] button::after{content:" ▲"}th[aria-sort=descending] button::after{content:" ▼"}
td.job{min-width:130px;max-width:260px;overflow-wrap:anywhere}td.x{min-width:220px;max-width:360px;overflow-wrap:anywhere;color:var(--muted)}
@media (max-width:820px){table,tbody,tr,td{display:block;width:auto}thead{display:none}
tr{border-top:1px solid var(--line);padding:10px 0;content-visibility:auto;contain-intrinsic-size:auto 130px}
tr[hidden]{display:none}td,td.x,td.job{border:0;padding:1px 0;min-width:0;max-width:none;text-align:left}td.n{display:inline-block;text-align:left;margin-right:16px}
td.job{font-weight:600}td:empty{display:none}td[data-l]:not([data-l=""],[data-l=status],[data-l=labels])::before{content:attr(data-l) " ";color:var(--muted);font-size:12px}}`;

/** Of the report. */
export const reportStyle = [baseStyle, report].join('\n');

/** The style sheet of the report and of its job pages: light and dark, wide and narrow, nothing from elsewhere. */

const colors = `:root{color-scheme:light dark;--bg:#f7f7f5;--card:#fff;--fg:#1d2025;--muted:#626973;--line:#dfe2e6;--soft:#f1f2f3;--link:#1d5fbf;
--passed:#2b9a57;--completed:#2f87b5;--failed:#d04343;--budget:#d0911a;--error:#8a57bd;--cancelled:#8b929b;--notrun:#cfd3d8;--out:#2f6db5;
--add:#e3f4e8;--addfg:#17632f;--del:#fbe6e6;--delfg:#8c2020;--mark:#fff0b8}
@media (prefers-color-scheme:dark){:root{--bg:#141619;--card:#1c1f23;--fg:#e4e6e9;--muted:#9ba3ad;--line:#33383f;--soft:#24282d;--link:#7fb2ff;
--passed:#43b572;--completed:#4aa9d4;--failed:#ec6a6a;--budget:#dcab45;--error:#b488e0;--cancelled:#7c838c;--notrun:#444a52;--out:#78aff0;
--add:#16331f;--addfg:#9fe0b4;--del:#3d1d1f;--delfg:#f3aeae;--mark:#5a4a12}}`;

const base = `*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1240px;margin:0 auto;padding:20px 16px 60px}
h1{font-size:22px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:16px;margin:0 0 10px}h3{font-size:15px;margin:0}
a{color:var(--link)}p{margin:0 0 8px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:0}dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere;min-width:0}
small,.muted{color:var(--muted);font-size:13px}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 16px;margin:14px 0}
pre,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12.5px;line-height:1.45}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}
.c{background:var(--mark);color:inherit;font-weight:600;border-radius:3px;padding:0 2px;font-size:.9em}
.chip{--k:var(--muted);display:inline-block;border-radius:10px;padding:1px 9px;font-size:12.5px;font-weight:600;white-space:nowrap;
color:color-mix(in srgb,var(--k) 72%,var(--fg));background:color-mix(in srgb,var(--k) 17%,transparent)}
.label{display:inline-block;background:var(--soft);border:1px solid var(--line);border-radius:4px;padding:0 5px;font-size:12px;overflow-wrap:anywhere}`;

const statusNames = ['passed', 'completed', 'failed', 'budget', 'error', 'cancelled', 'notrun'];
const statusRules = statusNames
  .map((name) => `.s-${name}{--k:var(--${name})}.f-${name}{fill:var(--${name})}.b-${name}{background:var(--${name})}`)
  .join('\n');

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

const transcript = `.turn{border-top:2px solid var(--line);margin:26px 0 0;padding:12px 0 0;display:flex;flex-wrap:wrap;gap:4px 14px;align-items:baseline}
.item{margin:12px 0}.who{color:var(--muted);font-size:12.5px;font-weight:600;margin:0 0 2px}
.user{background:var(--soft);border-left:3px solid var(--link);border-radius:4px;padding:8px 12px}
.text{white-space:pre-wrap;overflow-wrap:anywhere}
.step{color:var(--muted);font-size:12.5px;margin:18px 0 0;font-variant-numeric:tabular-nums}
.event{color:var(--muted);font-size:13px;margin:8px 0;overflow-wrap:anywhere}.event.bad{color:var(--failed)}
details>summary{cursor:pointer;color:var(--muted);font-size:13px}details>pre,details>.text{margin-top:6px}
.tool{background:var(--card);border:1px solid var(--line);border-radius:6px;margin:10px 0;overflow:hidden}
.tool>header{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline;padding:7px 12px;background:var(--soft);border-bottom:1px solid var(--line)}
.tool>header b{overflow-wrap:anywhere;min-width:0}.tool .body{padding:8px 12px}.tool .body>*+*{margin-top:8px}.tool .rule{font-size:12.5px;color:var(--muted);overflow-wrap:anywhere}
.out{max-height:460px;overflow:auto}.cmd{font-weight:600}
.bad-chip{--k:var(--failed)}.ok-chip{--k:var(--passed)}.warn-chip{--k:var(--budget)}
.diff{border:1px solid var(--line);border-radius:4px;overflow:hidden}.diff>div{padding:3px 8px;background:var(--soft);font-size:12.5px;overflow-wrap:anywhere}
.diff pre{max-height:560px;overflow:auto}.diff ins,.diff del,.diff span,.diff i{display:block;text-decoration:none;font-style:normal;padding:0 8px;min-height:1.45em}
.diff ins{background:var(--add);color:var(--addfg)}.diff del{background:var(--del);color:var(--delfg)}.diff i{color:var(--muted);background:var(--soft)}
.tool dl{font-size:13px}
.todo{list-style:none;padding:0;margin:0}.todo .done{color:var(--muted);text-decoration:line-through}
nav{margin:0 0 14px;font-size:14px}`;

/** Of the report. */
export const reportStyle = [colors, base, statusRules, report].join('\n');

/** Of a job's page. */
export const transcriptStyle = [colors, base, statusRules, transcript].join('\n');

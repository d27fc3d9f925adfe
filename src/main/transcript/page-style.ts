/** The style sheets of pages: light and dark, wide and narrow, nothing from elsewhere. */

const colors = `:root{color-scheme:light dark;--bg:#f7f7f5;--card:#fff;--fg:#1d2025;--muted:#626973;--line:#dfe2e6;--soft:#f1f2f3;--link:#1d5fbf;
--passed:#2b9a57;--completed:#2f87b5;--failed:#d04343;--budget:#d0911a;--error:#8a57bd;--cancelled:#8b929b;--notrun:#cfd3d8;--out:#2f6db5;
--add:#e3f4e8;--addfg:#17632f;--del:#fbe6e6;--delfg:#8c2020;--mark:#fff0b8;
--term:#20242b;--termfg:#dfe3e8;--termcmd:#9ecbff;--termbad:#ff9d94}
@media (prefers-color-scheme:dark){:root{--bg:#141619;--card:#1c1f23;--fg:#e4e6e9;--muted:#9ba3ad;--line:#33383f;--soft:#24282d;--link:#7fb2ff;
--passed:#43b572;--completed:#4aa9d4;--failed:#ec6a6a;--budget:#dcab45;--error:#b488e0;--cancelled:#7c838c;--notrun:#444a52;--out:#78aff0;
--add:#16331f;--addfg:#9fe0b4;--del:#3d1d1f;--delfg:#f3aeae;--mark:#5a4a12;
--term:#0d0f12;--termfg:#d5dae0;--termcmd:#8fc1ff;--termbad:#ff8d85}}`;

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

const transcript = `.turn{border-top:1px solid var(--line);margin:34px 0 0;padding:14px 0 0;display:flex;flex-wrap:wrap;gap:4px 14px;align-items:baseline}
.item{margin:12px 0}.who{color:var(--muted);font-size:12px;font-weight:600;letter-spacing:.03em;margin:0 0 3px}
.user{background:var(--soft);border-left:3px solid var(--link);border-radius:4px;padding:8px 12px}
.user>.text+.text{margin-top:8px}.command .answer{border-top:1px solid var(--line);margin-top:8px;padding-top:8px}
.text{white-space:pre-wrap;overflow-wrap:anywhere}
.step{color:var(--muted);font-size:12px;margin:20px 0 0;font-variant-numeric:tabular-nums}
.event{color:var(--muted);font-size:13px;margin:8px 0;overflow-wrap:anywhere}.event.bad,.bad>.muted{color:var(--failed)}
.event.end{border-top:1px solid var(--line);margin:18px 0 0;padding-top:8px;font-variant-numeric:tabular-nums}.event.cut{text-align:center;margin:28px 0}
details>summary{cursor:pointer;color:var(--muted);font-size:13px}details>pre,details>.text{margin-top:6px}
.thought>.text{border-left:2px solid var(--line);padding-left:12px}
.tool{background:var(--card);border:1px solid var(--line);border-radius:7px;margin:10px 0;overflow:hidden}
.tool>header{display:flex;flex-wrap:wrap;gap:3px 9px;align-items:center;padding:7px 12px}
.tool>header>b{font-weight:600;font-size:14px;overflow-wrap:anywhere;min-width:0}.tool>header>small{font-size:12px}.tool>header>.chip{margin-left:auto}
.icon{width:16px;height:16px;flex:none;fill:none;stroke:var(--muted);stroke-width:1.25;stroke-linecap:round;stroke-linejoin:round}
.tool .body{padding:9px 12px;border-top:1px solid var(--line)}.tool .body>*+*{margin-top:8px}
.tool .rule{font-size:12.5px;color:var(--muted);overflow-wrap:anywhere}.tool .rule.bad{color:var(--failed)}
.out{max-height:460px;overflow:auto}.cmd{font-weight:600}
.term{background:var(--term);color:var(--termfg);border-radius:5px;padding:9px 12px}.term pre,.term i{display:block;font-style:normal}
.term pre{max-height:460px;overflow:auto}.term i{opacity:.6;font-size:12.5px}.term .cmd{color:var(--termcmd);margin-bottom:5px;overflow:visible;max-height:none}
.term>div{font-size:12px;margin-top:6px;opacity:.85}.term .bad{color:var(--termbad);opacity:1}
.bad-chip{--k:var(--failed)}.ok-chip{--k:var(--passed)}.warn-chip{--k:var(--budget)}
.diff{border:1px solid var(--line);border-radius:5px;overflow:hidden}.diff>div{padding:3px 10px;background:var(--soft);font-size:12.5px;overflow-wrap:anywhere}
.diff pre{max-height:560px;overflow:auto}.diff ins,.diff del,.diff span,.diff i{display:block;text-decoration:none;font-style:normal;padding:0 10px;min-height:1.45em}
.diff ins{background:var(--add);color:var(--addfg)}.diff del{background:var(--del);color:var(--delfg)}.diff i{color:var(--muted);background:var(--soft)}
.tool dl{font-size:13px}
.plan,.undo{background:var(--card);border:1px solid var(--line);border-radius:7px;padding:9px 12px}
.todo{list-style:none;padding:0;margin:0}.todo .done span:first-of-type{color:var(--muted);text-decoration:line-through}.todo .now{font-weight:600}
.p-high{--k:var(--failed);font-size:11px;padding:0 7px}.p-low{font-size:11px;padding:0 7px}
figure{margin:8px 0 0}figure img{display:block;max-width:min(100%,520px);max-height:420px;border:1px solid var(--line);border-radius:5px;margin-bottom:3px}
.facts{margin:14px 0 0}nav{margin:0 0 14px;font-size:14px}
@media (max-width:560px){main{padding:14px 10px 40px}.tool>header,.tool .body,.term{padding-left:9px;padding-right:9px}dl{gap:3px 10px}}
@media print{.out,.term pre,.diff pre{max-height:none}}`;

/** Of every page. */
export const baseStyle = [colors, base, statusRules].join('\n');

/** Of a page that shows a session. */
export const transcriptStyle = [baseStyle, transcript].join('\n');

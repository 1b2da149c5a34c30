"""The style of the doctor's report: one block, for light and dark, for print, for narrow windows."""

from __future__ import annotations

STYLE = """
.lkd{--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--ground:#fff;--panel:#f6f8fa;--found:#b3400a;--found-ground:#fdf1ea;
--clear:#12703f;--clear-ground:#e8f6ee;--open:#8a5a00;--open-ground:#fdf5e2;--unseen:#57606a;--unseen-ground:#eff1f3;
--minus:#ffebe9;--plus:#dafbe1;--mark:#fff4c2;color:var(--ink);background:var(--ground);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;max-width:58rem}
.lkd code,.lkd pre{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.88em;
background:none;color:inherit;padding:0;border:0}
.lkd p{margin:.45em 0}
.lkd .soft{color:var(--soft);font-weight:400}
.lkd header{border-bottom:1px solid var(--line);padding-bottom:.9em;margin-bottom:1.2em}
.lkd .kicker{margin:0;color:var(--soft);font-size:.8em;letter-spacing:.06em;text-transform:uppercase}
.lkd .title{margin:.1em 0 .25em;font-size:1.55em;line-height:1.25;font-weight:650;overflow-wrap:anywhere}
.lkd .title code{font-size:.95em}
.lkd .facts{color:var(--soft);margin:.2em 0 .7em}
.lkd .tally{display:flex;flex-wrap:wrap;gap:.5em;list-style:none;margin:0;padding:0}
.lkd .chip{display:inline-block;border-radius:999px;padding:.08em .7em;font-size:.87em;white-space:nowrap;
background:var(--unseen-ground);color:var(--unseen);margin:0}
.lkd .chip.found{background:var(--found-ground);color:var(--found);font-weight:600}
.lkd .chip.clear{background:var(--clear-ground);color:var(--clear)}
.lkd .chip.inconclusive{background:var(--open-ground);color:var(--open)}
.lkd section>h2,.lkd section>h4{font-size:1.12em;margin:1.6em 0 .6em;font-weight:650}
.lkd .finding{border:1px solid var(--line);border-left:5px solid var(--found);border-radius:6px;padding:.8em 1.1em .7em;
margin:0 0 1em;break-inside:avoid}
.lkd .question{display:flex;gap:.6em;align-items:baseline;margin:0 0 .35em;font-size:1.05em;font-weight:650;line-height:1.35}
.lkd .number{flex:none;display:inline-block;min-width:1.5em;text-align:center;border-radius:999px;background:var(--found);
color:var(--ground);font-size:.8em;font-weight:650;line-height:1.5em}
.lkd .waste{margin-left:auto;flex:none;color:var(--found);font-weight:600;font-size:.9em}
.lkd .bar{height:4px;border-radius:2px;background:var(--unseen-ground);margin:.1em 0 .6em;overflow:hidden}
.lkd .bar i{display:block;height:100%;background:var(--found)}
.lkd figure{margin:.7em 0;border:1px solid var(--line);border-radius:5px;overflow:hidden}
.lkd figcaption{background:var(--panel);border-bottom:1px solid var(--line);padding:.2em .8em;color:var(--soft);
font-size:.93em;overflow-wrap:anywhere}
.lkd pre{margin:0;padding:.45em 0;overflow-x:auto;line-height:1.5;background:var(--ground);color:var(--ink)}
.lkd .line{display:block;padding:0 .8em;white-space:pre;width:max-content;min-width:100%;box-sizing:border-box}
.lkd .no{display:inline-block;color:var(--soft);padding-right:1.1em;user-select:none;white-space:pre}
.lkd .here{background:var(--mark);font-weight:600}
.lkd .aside{color:var(--soft);font-weight:400;padding-left:1em;user-select:none}
.lkd .place code{color:var(--soft)}
.lkd .fix b{color:var(--clear)}
.lkd .evidence{display:flex;flex-wrap:wrap;gap:.15em 1.6em;margin:.6em 0 .3em;color:var(--soft);font-size:.88em}
.lkd .evidence dt{float:none;display:inline;width:auto;margin:0;font-weight:400;padding:0}
.lkd .evidence dd{display:inline;margin:0 0 0 .45em;color:var(--ink);font-variant-numeric:tabular-nums;padding:0}
.lkd details{margin:.45em 0 .1em}
.lkd summary{cursor:pointer;color:var(--soft);font-size:.92em}
.lkd .diff{border:1px solid var(--line);border-radius:5px;margin:.5em 0}
.lkd .minus{background:var(--minus)}.lkd .plus{background:var(--plus)}
.lkd .open{padding-left:1.2em;margin:0}.lkd .open li{margin:.35em 0}
.lkd table{border-collapse:collapse;width:100%;font-size:.92em;margin:.3em 0 .8em;border:0;table-layout:auto}
.lkd td,.lkd th{text-align:left;vertical-align:top;padding:.32em .8em .32em 0;border:0;background:none;max-width:none;
white-space:normal}
.lkd td{border-top:1px solid var(--line)}
.lkd td code{color:var(--soft);white-space:nowrap}
.lkd td:first-child{white-space:nowrap}
.lkd thead th{color:var(--soft);font-weight:400;font-size:.9em}
.lkd .list td:first-child{width:8.5em}.lkd .list td:nth-child(2){width:50%}
.lkd .list td:last-child{color:var(--soft)}
.lkd tbody th{padding-top:1em;font-weight:650}
.lkd footer{border-top:1px solid var(--line);margin-top:1.6em;padding-top:.7em;color:var(--soft);font-size:.85em}
.lkd :focus-visible{outline:2px solid var(--clear);outline-offset:2px}
@media (prefers-color-scheme:dark){.lkd{--ink:#e6edf3;--soft:#9aa5b1;--line:#30363d;--ground:#0d1117;--panel:#161b22;
--found:#ff9b6a;--found-ground:#3a1d10;--clear:#56d38a;--clear-ground:#10301f;--open:#f0c05a;--open-ground:#33270c;
--unseen:#9aa5b1;--unseen-ground:#1c2128;--minus:#49181a;--plus:#12361f;--mark:#3b3212}}
@media (max-width:40rem){.lkd .question{flex-wrap:wrap}.lkd .waste{margin-left:2.1em;flex-basis:100%}
.lkd table,.lkd thead,.lkd tbody,.lkd tr,.lkd td,.lkd tbody th{display:block}.lkd thead{display:none}
.lkd .list td,.lkd .list td:first-child,.lkd .list td:nth-child(2){width:auto}.lkd td{border:0;padding:.1em 0}
.lkd tr{border-top:1px solid var(--line);padding:.35em 0}}
@media print{.lkd{font-size:12px}.lkd details{display:none}}
""".replace("\n", "")

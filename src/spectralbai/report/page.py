"""The web page of a report: its HTML frame and style, and its pictures."""

from __future__ import annotations

from base64 import b64encode
from html import escape

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="spectralbai">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; margin-bottom: .5rem; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ddd; overflow-wrap: anywhere; }}
p, figcaption, .pairs {{ max-width: 50rem; overflow-wrap: anywhere; }}
.answer {{ max-width: none; padding: .8rem 1rem; border-left: .4rem solid #0072B2; background: #f2f7fb;
font-size: 1.1rem; overflow-wrap: anywhere; }}
.answer.decided {{ border-color: #009E73; background: #eff8f5; }}
.answer.inconsistent {{ border-color: #D55E00; background: #fdf3ec; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2rem .8rem .2rem 0; vertical-align: top; }}
th {{ font-weight: 600; }}
.pairs th {{ min-width: 6rem; max-width: 14rem; }}
.numbers {{ font-size: .9rem; }}
.numbers th, .numbers td {{ border-bottom: 1px solid #eee; white-space: nowrap; }}
.numbers thead th {{ position: sticky; top: 0; background: white; }}
.numbers th:first-child, .numbers td:first-child {{ position: sticky; left: 0; background: white; white-space: normal;
min-width: 7rem; max-width: min(28rem, 40vw); overflow-wrap: anywhere; }}
.numbers th:first-child {{ z-index: 1; }}
.box {{ max-height: 40rem; }}
.paged .box {{ max-height: none; }}
.controls {{ display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; margin: .8rem 0; }}
.controls[hidden] {{ display: none; }}
.controls label {{ display: flex; gap: .5rem; align-items: center; min-width: 0; max-width: 100%; }}
.controls input, .controls select, .controls button {{ font: inherit; padding: .3rem .6rem; min-width: 0; }}
.controls select {{ max-width: 16rem; }}
.where {{ color: #666; font-size: .9rem; font-variant-numeric: tabular-nums; }}
.box + p, .paged + p, figcaption, footer {{ color: #666; font-size: .9rem; }}
.pictures {{ display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; }}
figure {{ margin: 1rem 0; flex: 1 1 30rem; max-width: 36rem; min-width: 0; }}
img {{ max-width: 100%; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; background: #f7f7f7; padding: .8rem; }}
@media print {{ body {{ margin: 0; max-width: none; }} .box {{ max-height: none; }} .controls {{ display: none; }} }}
@media print {{ figure, tr {{ break-inside: avoid; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="answer {state}">{answer}</p>
{categories}<h2>Arms</h2>
{arms}
{compared}
<div class="pictures">
{pictures}</div>
<h2>What is known</h2>
{known}
<h2>What was asked</h2>
{asked}
<h2>How it came about</h2>
{came}
<h2>Software</h2>
{software}
<details><summary>{whole}</summary><pre>{definition}</pre></details>
<footer>spectralbai, {time}</footer>
{script}</body>
</html>
"""


def figure(png: bytes, caption: str) -> str:
    """Returns a picture with its caption as HTML; the PNG is embedded."""
    words, data = escape(caption), b64encode(png).decode()
    image = f'<img alt="{words}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}<figcaption>{words}</figcaption></figure>\n"

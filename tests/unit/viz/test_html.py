"""The page: what is written, and what a browser makes of it."""

import html.parser
import json
import pathlib
import shutil
import subprocess
from typing import Any

import pytest

from seqtools.viz.heatmap import Attention, Heatmap
from seqtools.viz.html import UNIT, end, entry, start

CHROMIUM = shutil.which("chromium")
EVIL = [
    "</script><script>document.title='broken'</script>",
    "<!--",
    "<b>&amp;",
    "\x1b[31m",
    "\n",
    "",
]


class Page(html.parser.HTMLParser):
    """Tags, texts and embedded data of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data: list[Any] = []
        self.links: list[list[str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "a":
            self.links.append([])
        if tag not in ("meta", "input"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script" and data.startswith("{"):
            self.data.append(json.loads(data))
        elif "a" in self._open:
            self.links[-1].append(data)


def page(*entries: str) -> str:
    return start() + "".join(entries) + end()


def attention(rows: list[str], columns: list[str], layers: int = 1, heads: int = 1) -> Attention:
    matrix = [[1 / len(columns)] * len(columns) for _ in rows]
    return Attention("cross", rows, columns, [[matrix] * heads] * layers)


def test_weights_are_whole_numbers() -> None:
    heatmap = Heatmap("cross", ["x", "y"], ["a", "b"], [[0.25, 0.75], [1.0, 0.00004]])
    (data,) = Page(page(entry(7, heatmap, name="id"))).data
    assert data == {
        "kind": "cross",
        "rows": ["x", "y"],
        "columns": ["a", "b"],
        "weights": [[[UNIT // 4, UNIT * 3 // 4, UNIT, 0]]],
        "odd": [[{}]],
    }


def test_layers_and_heads_are_kept_apart() -> None:
    two = Attention("cross", ["x"], ["a"], [[[[1.0]], [[0.5]]], [[[0.25]], [[0.0]]]])
    (data,) = Page(page(entry(1, two))).data
    assert data["weights"] == [[[10000], [5000]], [[2500], [0]]]
    assert data["odd"] == [[{}, {"0": "0.5"}], [{"0": "0.25"}, {"0": "0"}]]


def test_the_list_shows_number_id_source_and_output() -> None:
    parsed = Page(page(entry(3, attention(["y", "</s>"], ["a b", "中"]), name="id 3")))
    assert parsed.links == [["3", " ", "id 3", "a␣b 中", "y </s>"]]


def test_tokens_cannot_break_out() -> None:
    text = page(entry(1, attention(EVIL, EVIL), name=EVIL[0]), entry(2, attention(["x"], ["y"])))
    parsed = Page(text)
    assert [data["rows"] for data in parsed.data] == [
        [*EVIL[:3], "\\x1b[31m", "\\n", '""'],
        ["x"],
    ]
    # the page's own script and one for each record
    assert sum(tag == "script" for tag, _ in parsed.tags) == 3
    assert "\x1b" not in text


def test_the_title_is_text() -> None:
    assert "<title>a &lt;b&gt; &amp; c</title>" in start("a <b> & c")


def test_nothing_is_fetched() -> None:
    text = page(entry(1, attention(["x"], ["y"])))
    parsed = Page(text)
    assert "http:" not in text
    assert "https:" not in text
    assert not [tag for tag, _ in parsed.tags if tag in ("link", "img", "iframe")]
    assert not [attributes for _, attributes in parsed.tags if "src" in attributes]
    policies = [a["content"] for _, a in parsed.tags if a.get("http-equiv")]
    assert [policy for policy in policies if policy and "default-src 'none'" in policy]


PROBE = """<script>
const root = document.documentElement;
root.dataset.errors = "";
const note = (text) => { root.dataset.errors += text + ";"; };
addEventListener("error", (event) => note(event.message));
addEventListener("securitypolicyviolation", (event) => note(event.violatedDirective));
addEventListener("load", () => {
  const cells = [...document.querySelectorAll("td[data-row]")];
  cells[0].focus();
  cells[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  root.dataset.keyboard = document.getElementById("readout").textContent;
  cells[3].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
  root.dataset.hover = document.getElementById("readout").textContent;
  root.dataset.now = [...document.querySelectorAll("th.now")].map((th) => th.textContent).join(" ");
  const search = document.getElementById("search");
  search.value = "MÄRZ";
  search.dispatchEvent(new Event("input"));
  root.dataset.found = document.getElementById("count").textContent;
});
</script>"""


def browse(tmp_path: pathlib.Path, text: str, fragment: str = "") -> "Dom":
    """The page's document after its script has run."""
    file = tmp_path / "page.html"
    file.write_text(text.replace("</head>", f"{PROBE}</head>"), "utf-8")
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=3000", "--dump-dom", f"{file.as_uri()}{fragment}",
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )  # fmt: skip
    return Dom(done.stdout.decode("utf-8"))


class Dom(html.parser.HTMLParser):
    """The table that was drawn, and what the probe noted."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root: dict[str, str | None] = {}
        self.columns: list[str] = []
        self.rows: list[str] = []
        self.cells: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._cell: dict[str, str | None] = {}
        self._id = ""
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "html":
            self.root = attributes
        if attributes.get("scope") == "col":
            self.columns.append("")
            self._in = "column"
        elif attributes.get("scope") == "row":
            self.rows.append("")
            self._in = "row"
        elif "data-row" in attributes:
            self._cell, self._in = attributes, "cell"
        self._id = attributes.get("id") or self._id

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in = ""

    def handle_data(self, data: str) -> None:
        self.texts[self._id] = self.texts.get(self._id, "") + data
        if self._in == "column":
            self.columns[-1] += data
        elif self._in == "row":
            self.rows[-1] += data
        elif self._in == "cell":
            self.cells.append((data, self._cell))


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_browser_draws_it(tmp_path: pathlib.Path) -> None:
    chinese = Heatmap("cross", ["5", "</s>"], ["三月", "五日"], [[0.1, 0.9], [0.8, 0.4]])
    dom = browse(
        tmp_path,
        page(
            entry(1, attention(EVIL, ["x"])),
            entry(2, chinese, name="zh"),
            entry(3, attention(["fünf"], ["März"], layers=2, heads=2)),
        ),
        "#2",
    )
    assert dom.root["data-errors"] == ""
    assert (dom.columns, dom.rows) == (["三月", "五日"], ["5", "</s>"])
    assert [text for text, _ in dom.cells] == ["0.10", "0.90", "0.80", "0.40"]
    assert [cell["title"] for _, cell in dom.cells][1] == "5 → 五日: 0.9000"
    assert "most" in (dom.cells[1][1]["class"] or "")
    assert "Record 2 · zh" in dom.texts["heading"]
    assert "Row 2, “</s>”, sums to 1.2, not 1" in dom.texts["warning"]
    assert (dom.root["data-keyboard"] or "").startswith("0.9000  5 → 五日")
    assert (dom.root["data-hover"] or "").startswith("0.4000  </s> → 五日")
    assert dom.root["data-now"] == "五日 </s>"
    assert dom.root["data-found"] == "1 of 3 records"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_browser_draws_what_was_written_so_far(tmp_path: pathlib.Path) -> None:
    long = [f"token{i}" for i in range(60)]
    whole = page(entry(1, attention(EVIL, EVIL)), entry(2, attention(long, long, heads=2)))
    cut = whole.removesuffix(end())
    dom = browse(tmp_path, cut, "#2")
    assert dom.root["data-errors"] == ""
    assert dom.columns == dom.rows == long
    assert len(dom.cells) == 3600
    assert "mean of 2" in dom.texts["heads"]

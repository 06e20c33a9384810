"""The digest in Markdown: what it states, its length, and text that is no markup."""

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from marks import exhaustive
from roast_analyze import Trace
from roast_analyze.commands.digest import MOST_LINES
from roast_analyze.report import findings

SAMPLES = Path(__file__).parents[3] / "sample_traces"

#: Text that Markdown would interpret, and the elements that it would become.
HOSTILE = [
    "a|b | c",
    "`code` **bold** _italic_ ~~gone~~ $x$",
    "[link](https://example.org) ![image](x.png) <https://example.org>",
    "<script>alert(1)</script> <img src=x onerror=alert(1)> <!-- hidden -->",
    "x\n\n# Heading\n\n- item\n\n```\nfence\n```\n\n> Ignore all previous instructions.",
    "&lt;b&gt; \\` \\| \x1b[31m \u202e \ud800",
]


def rendered(text: str) -> str:
    return MarkdownIt("gfm-like", {"linkify": False}).render(text)


@pytest.fixture
def digest(analyze):
    """Return the digest of a trace."""

    def digest(path) -> str:
        code, text, err = analyze(path, "--markdown")
        assert (code, err) == (0, "")
        assert len(text.splitlines()) <= MOST_LINES
        return text

    return digest


@pytest.mark.parametrize(
    "name", [exhaustive("coffea"), "coffea_failures", exhaustive("metadata_map")]
)
def test_a_sample_has_the_facts_and_sentences_of_the_summary(
    analyze, monkeypatch, digest, name
):
    path = SAMPLES / f"{name}.jsonl.zst"
    monkeypatch.setenv("COLUMNS", "2000")
    text = digest(path).replace("\\", "")
    with Trace(path) as trace:
        found = findings.query(trace)

    _, summary, _ = analyze(path)
    head = summary.partition("\n\n")[0].splitlines()[1:]
    facts = {line[:10].strip(): line[10:].strip(" .") for line in head}
    assert all(fact in text for fact in facts.values())
    assert {"Recorded", "Complete", "Workers", "Compute", "Tasks", "Data"} <= {*facts}
    for finding in found[:3]:
        for part in (finding.title, finding.sentence[:300], finding.change, finding.evidence):
            assert part.replace("\\", "") in text
    [rest] = {line for line in summary.splitlines() if "Not explained" in line}
    assert rest.removeprefix("Findings").strip() in text


@pytest.mark.exhaustive
def test_text_of_a_trace_is_no_markup(write_trace, worker, task, run, chunk, digest):
    records = []
    for number, text in enumerate(HOSTILE):
        key, place = f"{text}-{number}", {"entry_start": 0, "entry_stop": 10}
        records += [
            worker(text, name=text),
            task(key, prefix=text),
            chunk(key, dataset=text, filename=text, **place),
            *run(key, 1.0 + number, 5.0 + number, text, "erred", exception=text),
            {"kind": "loss", "t": 1.0, "reason": text, "records": 1, "detail": text},
        ]

    page = rendered(digest(write_trace(*records, name="<b>*run*|`x`.jsonl")))

    tags = {part.partition(">")[0].split()[0].strip("/") for part in page.split("<")[1:]}
    assert tags <= {
        "h3",
        "h4",
        "p",
        "ul",
        "li",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    # Each heading and each row is one of the digest.
    assert page.count("<h3>") == 1
    assert page.count("<h4>") == 3
    assert "&lt;b&gt;*run*|`x`.jsonl" in page
    assert "**bold** _italic_ ~~gone~~ $x$" in page
    assert "[link](https://example.org) ![image](x.png)" in page
    assert "Ignore all previous instructions." in page


def test_an_empty_trace(write_trace, digest):
    text = digest(write_trace())

    assert "No task ran during the 1" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "- Possible savings cannot be judged: no task ran." in text
    assert "- Complete: yes" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--json"], "leave out --html, --json and --all"),
        (["--html"], "leave out --html, --json and --all"),
        (["other.jsonl"], "the digest of one trace: name one"),
    ],
)
def test_one_trace_and_one_output(analyze, monkeypatch, tmp_path, write_trace, words, message):
    monkeypatch.chdir(tmp_path)
    write_trace(name="trace.jsonl")
    write_trace(name="other.jsonl", trace_id="U")

    code, text, err = analyze("trace.jsonl", *words, "--markdown")

    assert (code, text) == (2, "")
    assert message in err

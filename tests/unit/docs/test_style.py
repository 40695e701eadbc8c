"""Hand-written Markdown follows docs/STYLE.md: short sentences and lines, the field's words, nouns over columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GENERATED = {"docs/stores.md", "docs/sql/functions.md"}
PLACES = ("*.md", "docs/**/*.md", "examples/**/*.md", "bench/*.md", "provider-schema/*.md")
PAGES = sorted({p.relative_to(ROOT).as_posix() for place in PLACES for p in ROOT.glob(place)} - GENERATED)

MOST_WORDS = 25
LONGEST_LINE = 120
NO_NOUNS = {
    *("is", "is at", "does", "has", "holds", "means", "takes", "gives", "become"),
    *("write", "not", "tried", "retried", "counted", "instead"),
}

# Banned words in the code of each package: docstrings, comments and messages. The numbers only
# fall; what is left of the API is in its connectors.
CODE = {"api": 98, "spark_jobs": 0, "provider-schema": 0, "cdktf-constructs": 0}


def prose(text: str) -> str:
    """The text without code blocks and comments; every line keeps its place."""
    blank = re.compile(r"^```.*?^```|<!--.*?-->", re.MULTILINE | re.DOTALL)
    return blank.sub(lambda block: "\n" * block[0].count("\n"), text)


def plain(text: str) -> str:
    """The text as a reader counts it: a link is its words, a span of code is one word."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"``.+?``|`[^`]+`", "CODE", text, flags=re.DOTALL)
    return re.sub(r"[\[\]*]", "", text)


def passages(text: str) -> Iterator[tuple[int, str]]:
    """Each paragraph, list item and table cell, with the line where it begins."""
    begins, lines = 0, list[str]()
    for number, line in enumerate([*prose(text).splitlines(), ""], 1):
        table, heading = line.startswith("|"), line.startswith("#")
        if not line.strip() or table or heading or re.match(r"\s*([-*]|\d+\.) ", line):
            if lines:
                yield begins, " ".join(lines)
            lines = []
        if table:
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        elif line.strip() and not heading:
            begins = begins if lines else number
            lines.append(re.sub(r"^\s*([-*]|\d+\.) ", "", line).strip())


def sentences(passage: str) -> list[str]:
    """Its sentences, plain."""
    return re.split(r"(?<=[.!?])\s+(?=[A-Z0-9])", plain(passage))


def banned_words() -> re.Pattern[str]:
    """The right column of the table of words in docs/STYLE.md."""
    table = (ROOT / "docs" / "STYLE.md").read_text(encoding="utf-8").split("## Words")[1].split("\n## ")[0]
    words = [
        word
        for row in re.findall(r"^\| [^|]+ \| ([^|]+) \|$", table, re.MULTILINE)[1:]
        for word in row.split(", ")
    ]
    return re.compile(rf"\b(?:{'|'.join(sorted(words, key=len, reverse=True))})\b", re.IGNORECASE)


def faults(text: str, banned: re.Pattern[str]) -> Iterator[str]:
    """What a page has against the style, each with its line."""
    lines = prose(text).splitlines()
    for number, line in enumerate(lines, 1):
        length = len(re.sub(r"\]\([^)]*\)", "]", line))
        if length > LONGEST_LINE and not line.startswith("|"):
            yield f"{number}: a line of {length} characters"
        if line.startswith("|") and re.match(r"\|[-:| ]+$", (*lines, "")[number]):
            heads = {head.strip().lower() for head in line.split("|")}
            yield from (
                f"{number}: the column '{head}' has no noun as its heading" for head in heads & NO_NOUNS
            )
    for number, passage in passages(text):
        for sentence in sentences(passage):
            if (count := len(sentence.split())) > MOST_WORDS:
                yield f"{number}: a sentence of {count} words: {sentence[:60]}…"
        yield from (f"{number}: '{word}'" for word in banned.findall(plain(passage)))


@pytest.mark.parametrize("page", PAGES)
def test_style(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    if page == "docs/STYLE.md":
        text = text.replace(text.split("## Words")[1].split("\n## ")[0], "\n")
    found = list(faults(text, banned_words()))
    assert not found, found


def test_the_changelog_of_the_first_release_is_short() -> None:
    """What users gain, not a diary."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert len(text.encode()) <= 6 * 1024
    assert text.count("\n## ") == 1


@pytest.mark.parametrize("package", CODE)
def test_banned_words_in_code(package: str) -> None:
    modules = (p for p in (ROOT / package).rglob("*.py") if "/l1/" not in p.as_posix())
    found = [
        f"{p}: {word}" for p in modules for word in banned_words().findall(p.read_text(encoding="utf-8"))
    ]
    assert len(found) <= CODE[package], found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("wd " * 26, "1: a sentence of 26 words"),
        ("- short\n- " + "wd " * 26, "2: a sentence of 26 words"),
        ("| name |\n|---|\n| " + "wd " * 26 + "|", "3: a sentence of 26 words"),
        ("\nThe log tells why.", "2: 'tells'"),
        ("It begins\nanew.", "1: 'anew'"),
        ("x" * 121, "1: a line of 121 characters"),
        ("| name | is |\n|---|---|\n", "1: the column 'is' has no noun"),
    ],
)
def test_a_fault_is_found(text: str, fault: str) -> None:
    (found,) = faults(text, banned_words())
    assert found.startswith(fault)


@pytest.mark.parametrize(
    "text",
    [
        "wd " * 25,
        f"{'wd ' * 19}. {'Wd ' * 19}.",
        "```\n" + "x" * 121 + " anew\n```",
        "`tells` is a column.",
        f"See [the page]({'x' * 121}).",
    ],
)
def test_no_fault_is_invented(text: str) -> None:
    assert list(faults(text, banned_words())) == []

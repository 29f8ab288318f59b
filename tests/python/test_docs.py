"""What the documentation shows runs: every Python block, every doctest, and the README's Rust."""

from __future__ import annotations

import ast
import doctest
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import WATCHDOG

import duetime

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PACKAGE = Path(duetime.__file__).parent
MODULES = sorted([*PACKAGE.glob("*.py"), *PACKAGE.glob("*.pyi")])
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    """The fenced blocks of a language, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, found.start(1)) + 1, found[1]


def doctests(path: Path) -> Iterator[doctest.DocTest]:
    """The examples in the docstrings of a module or a stub, read from its text."""
    parser = doctest.DocTestParser()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node, clean=False)):
            name = f"{path.name}:{getattr(node, 'name', 'module')}"
            test = parser.get_doctest(text, {}, name, str(path), node.body[0].lineno - 1)
            if test.examples:
                yield test


BLOCKS = [
    pytest.param(page, line, code, id=f"{page.name}:{line}")
    for page in PAGES
    for line, code in blocks(page, "python")
]
DOCTESTS = [
    pytest.param(test, id=f"{test.name}:{test.lineno}")
    for path in MODULES
    for test in doctests(path)
]


def test_there_is_something_to_run() -> None:
    assert {page.name for page in PAGES} >= {"README.md", "guide.md"}
    assert {"__init__.py", "_native.pyi", "testing.py"} <= {path.name for path in MODULES}
    assert len(BLOCKS) >= 6
    assert len(DOCTESTS) >= 30


@pytest.mark.parametrize(("page", "line", "code"), BLOCKS)
def test_a_block_of_a_page_runs(page: Path, line: int, code: str) -> None:
    # Padded, so that a traceback names the line of the page.
    exec(compile("\n" * (line - 1) + code, page, "exec"), {"__name__": "__docs__"})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_a_program_runs_until_a_signal(page: str, number: signal.Signals) -> None:
    [(_, code)] = blocks(ROOT / page, "python until-signal")
    command = [sys.executable, "-W", "error", "-u", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "tick\n"
            program.send_signal(number)
            assert program.stdout.read() == ""
            assert program.wait(WATCHDOG) == 0
        finally:
            program.kill()


def test_the_recipe_for_failures_logs_them(caplog: pytest.LogCaptureFixture) -> None:
    guide = blocks(ROOT / "docs" / "guide.md", "python")
    [code] = [code for _, code in guide if "import logging" in code]
    exec(code, {"__name__": "__docs__"})
    records = [record for record in caplog.records if record.name == "jobs"]
    told = [record.getMessage() for record in records]
    assert told == ["task 'ratio' failed: again at 65.0 s", "task 'ratio' failed: given up"]
    for record in records:
        assert record.exc_info is not None and record.exc_info[0] is ZeroDivisionError


@pytest.mark.parametrize("test", DOCTESTS)
def test_a_doctest_passes(test: doctest.DocTest) -> None:
    report: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert outcome.failed == 0, "".join(report)


def test_the_rust_of_the_readme_is_the_example_that_is_compiled() -> None:
    [(_, shown)] = blocks(ROOT / "README.md", "rust")
    example = (ROOT / "examples" / "first.rs").read_text(encoding="utf-8")
    assert example.partition("\n\n")[2] == shown


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md"], ids=lambda page: page.name)
def test_a_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def section(page: Path, title: str) -> str:
    """What stands below a heading, as far as the next."""
    text = page.read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_column(table: str) -> list[str]:
    """What a table has in backticks in its first column."""
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_the_page_on_security_names_every_file_with_unsafe() -> None:
    unsafe = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src").rglob("*.rs")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bunsafe\b", line.partition("//")[0])
    ]
    named = first_column(section(ROOT / "docs" / "security.md", "`unsafe`"))
    assert len(unsafe) >= 5
    assert sorted(set(unsafe)) == sorted(named)


def test_the_readme_says_what_each_dependency_is_for() -> None:
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    sections = re.findall(
        r"^\[(?:target\..*\.)?dependencies\]\n(.*?)(?=^\[|\Z)", manifest, re.DOTALL | re.MULTILINE
    )
    needed = re.findall(r"^([\w-]+) = ", "".join(sections), re.MULTILINE)
    assert sorted(needed) == sorted(first_column(section(ROOT / "README.md", "Dependencies")))
    assert "\ndependencies = []\n" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_readme_and_the_pages_name_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+)(?: [a-z-]+)*:", makefile, re.MULTILINE))
    for page in (*PAGES, *(ROOT / name / "README.md" for name in ("fuzz", "proof"))):
        named = set(re.findall(r"(?:^ *|`)make ([a-z-]+)", code_of(page), re.MULTILINE))
        assert named <= targets, page.name


def code_of(page: Path) -> str:
    """All that a page shows as code."""
    text = page.read_text(encoding="utf-8")
    return "\n".join(
        re.findall(r"^```sh\n.*?^```$|^    .*$|`[^`\n]+`", text, re.DOTALL | re.MULTILINE)
    )


def test_the_picture_of_the_rooms_is_true() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    # The names are in the first 32 columns, what they are for is behind them.
    _, lib, rest = page.partition("\n lib ")
    lines = (lib + rest).partition("```")[0].strip("\n").splitlines()
    ranks = {name: rank for rank, line in enumerate(lines) for name in line[:32].split()}
    files = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "src").glob("*.rs")}
    assert set(files) == set(ranks)
    imports = {
        (name, used)
        for name, text in files.items()
        for line in text.splitlines()
        if not line.lstrip().startswith("//")
        for used in re.findall(r"\bcrate::(\w+)", line)
        if used in ranks
    }
    assert {edge for edge in imports if ranks[edge[0]] > ranks[edge[1]]} == {("job", "run")}

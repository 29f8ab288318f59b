"""The table in README.md is true: each line has tests, each test exists, and each has its line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TABLE = (HERE / "README.md").read_text(encoding="utf-8")
#: (reports, where, tests) of each line.
LINES = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in TABLE.splitlines()
    if line.startswith("|") and not line.startswith(("| line |", "|---"))
]
NAMED = [(line, name) for line in LINES for name in re.findall(r"`((?:\w+::)?\w+)`", line[2])]


def functions(path: Path) -> dict[str, str]:
    """The tests of a file, with their docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name.removeprefix("test_"): ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


TESTS = {path.stem: functions(path) for path in HERE.glob("test_fault_*.py")}


def reports(line: tuple[str, ...]) -> list[str]:
    """What the line's tests may cite: `project#1, #2` are two reports of one project."""
    project, found = "", []
    for report in line[0].split(", "):
        project = report.partition("#")[0] or project
        found.append(project + report[len(report.partition("#")[0]) :])
    return found


def test_there_is_a_table() -> None:
    assert len(LINES) > 80
    assert len(NAMED) > 120


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_a_line_has_its_tests(line: tuple[str, ...]) -> None:
    names = [name for other, name in NAMED if other == line]
    if line[1].startswith("`"):  # a whole file
        assert (HERE / line[1].strip("`")).exists()
    else:
        assert names
    for name in names:
        if "::" in name:
            room, _, function = name.partition("::")
            rust = (ROOT / "tests" / f"{room}.rs").read_text(encoding="utf-8")
            assert f"#[test]\nfn {function}()" in rust
            continue
        [text] = [
            TESTS[f"test_fault_{where}"][name]
            for where in line[1].split(", ")
            if name in TESTS[f"test_fault_{where}"]
        ]
        cites = "#" not in line[0] or any(report in text for report in reports(line))
        assert cites, f"{name} cites none of {reports(line)}"


@pytest.mark.parametrize("file", TESTS)
def test_a_test_has_its_line(file: str) -> None:
    where = file.removeprefix("test_fault_")
    listed = {name for line, name in NAMED if where in line[1].split(", ")}
    # That one is about the scene of others.
    assert set(TESTS[file]) - listed <= {"everything_makes_events_of_all_kinds"}

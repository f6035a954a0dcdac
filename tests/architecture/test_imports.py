"""The shape of the source: imports point one way, decisions are pure, pieces stay small.

Reads the files with ast and imports nothing. Only imports that run when a module is loaded count: those
inside a function are lazy by intent, those under TYPE_CHECKING never run. `millpond/__init__.py` is the shop
window and may name anything.
"""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "millpond"

# A row may import itself and every row above it in this list. A new module needs a place here first.
ROWS = (
    {
        "config",
        "disclosure",
        "errors",
        "events",
        "ids",
        "job",
        "options",
        "payload",
        "pool_settings",
        "redaction",
        "shown_text",
        "system",
        "units",
    },
    {"rules"},
    {"pool", "store"},
    {
        "app",
        "handle",
        "job_runner",
        "pickling",
        "recurring",
        "settlement",
        "task",
        "task_context",
        "tracing",
        "workflows",
    },
    {"orchestrator"},
    {"node"},
    {"testing", "api", "simulate"},
    {"web", "cli", "tui", "__main__"},
)
ROW_OF = {name: row for row, names in enumerate(ROWS) for name in names}
STRANGERS = {("pool", "store"), ("store", "pool")}

# What a decision may be made of: nothing that reads a clock, the machine, or chance.
PURE = {
    "__future__", "abc", "bisect", "collections", "cronsim", "dataclasses", "datetime", "enum", "fractions",
    "functools", "graphlib", "hashlib", "heapq", "ipaddress", "itertools", "math", "millpond", "msgspec",
    "numbers", "operator", "re", "statistics", "string", "types", "typing", "zoneinfo",
}  # fmt: skip
CLOCKS = {"now", "utcnow", "today"}

VAGUE_NAMES = {"util", "utils", "common", "helper", "helpers", "manager", "base"}


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {_module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
PACKAGES = {_module_name(path) for path in FILES if path.name == "__init__.py"}


def _loaded(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement that runs when the module is loaded."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        skipped = "body" if _is_type_checking(statement) else None
        for branch in {"body", "handlers", "orelse", "finalbody"} - {skipped}:
            yield from _loaded(getattr(statement, branch, []))


def _is_type_checking(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING")


def _imported(module: str, statement: ast.AST) -> Iterator[str]:
    """The full names a statement imports; `from a import b` is a.b when that is a module, else a."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        package = module.split(".") if module in PACKAGES else module.split(".")[:-1]
        start = package[: len(package) - statement.level + 1] if statement.level else []
        origin = ".".join([*start, *filter(None, [statement.module])])
        for alias in statement.names:
            yield f"{origin}.{alias.name}" if f"{origin}.{alias.name}" in TREES else origin


def _graph() -> dict[str, set[str]]:
    return {
        module: {name for statement in _loaded(tree.body) for name in _imported(module, statement)}
        for module, tree in TREES.items()
    }


def _inside(names: set[str]) -> set[str]:
    return {name for name in names if name.split(".")[0] == "millpond"}


GRAPH = {module: _inside(names) for module, names in _graph().items()}
INNER = sorted(module for module in TREES if module != "millpond")


def _part(module: str) -> str:
    return module.split(".")[1]


@pytest.mark.parametrize("module", INNER)
def test_imports_point_one_way(module):
    assert _part(module) in ROW_OF, f"give {_part(module)!r} a place in ROWS"
    assert "millpond" not in GRAPH[module], "import a public name from the module that defines it"
    upward = {name for name in GRAPH[module] if ROW_OF[_part(name)] > ROW_OF[_part(module)]}
    assert not upward, f"{module} must not know {sorted(upward)}"


@pytest.mark.parametrize("module", INNER)
def test_pool_and_store_do_not_know_each_other(module):
    assert not [name for name in GRAPH[module] - {"millpond"} if (_part(module), _part(name)) in STRANGERS]


def test_no_modules_import_each_other_in_a_circle():
    try:
        TopologicalSorter({module: GRAPH[module] for module in INNER}).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " <- ".join(error.args[1]))


@pytest.mark.parametrize("module", [module for module in INNER if _part(module) == "rules"])
def test_a_rule_is_made_of_values_only(module):
    nodes = list(ast.walk(TREES[module]))  # inside functions too: a lazy import of a clock is still a clock
    imported = {name.split(".")[0] for node in nodes for name in _imported(module, node)}
    assert imported <= PURE, f"{module} decides, so it must not use {sorted(imported - PURE)}"
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    clocks = {func.attr for func in calls if isinstance(func, ast.Attribute)} & CLOCKS
    assert not clocks, f"{module} must be told the time, not ask for it: {sorted(clocks)}"


def test_no_module_is_longer_than_600_lines():
    lengths = {_module_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert not {name: length for name, length in lengths.items() if length > 600}


@pytest.mark.parametrize("module", TREES)
def test_no_function_is_longer_than_50_lines(module):
    functions = [n for n in ast.walk(TREES[module]) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {f"{f.name} in line {f.lineno}": (f.end_lineno or f.lineno) - f.lineno + 1 for f in functions}
    assert not {name: length for name, length in lengths.items() if length > 50}


def test_no_module_has_a_name_that_says_nothing():
    assert not [module for module in TREES if VAGUE_NAMES & set(module.split("."))]


def test_only_imports_that_run_at_load_time_are_counted():
    source = """
import errno
if TYPE_CHECKING:
    import unseen
else:
    import seen_else
try:
    import seen_try
except ImportError:
    import seen_except
class Seen:
    import seen_class
    def method(self):
        import unseen
"""
    names = {n for s in _loaded(ast.parse(source).body) for n in _imported("millpond.x", s)}
    assert names == {"errno", "seen_else", "seen_try", "seen_except", "seen_class"}

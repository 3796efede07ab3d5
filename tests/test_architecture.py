"""architecture: who may import whom, and how large anything may grow. Read from the syntax tree, not by importing.

Each test lists everything that breaks its rule, so that one run shows all of it.
"""

import ast
import graphlib
import sys
from functools import cache
from pathlib import Path

import pytest

from harness.records import Identity, Role, identity_fields

ROOT = Path(__file__).resolve().parent.parent
HARNESS = ROOT / "harness"
WORKFLOW = ROOT / "workflow"
#: Operators, written to the protocol of a foreign corpus (design, section 4): no part of the layers.
BUILTIN = HARNESS / "providers" / "builtin"

#: Every part of the harness has one place; imports go down, or sideways without a cycle. Plugins stand beside.
LEVELS = (
    {"records", "decoding", "codec", "stages", "locations", "elf", "compilations"},
    {"backends", "providers", "samplers"},
    {"config", "manifest", "plan", "caliber", "fingerprint", "pairing", "exact", "findings"}
    | {"statistics", "moderation", "power"},
    {"verdict", "screening", "decision", "rules", "margin", "noise", "notes", "corpus"}
    | {"report", "verdict_sections", "evidence_sections", "summary", "grid", "occupancy", "occupancy_section"}
    | {"explain", "derivation_sections"}
    | {"store", "seal", "progress", "process", "outcome", "preflight", "lease", "handover", "telemetry", "doctor"}
    | {"judging", "control", "receipts", "verify", "difference", "accounting", "reaccount"}
    | {"report_data", "report_schema", "ci", "junit", "html"},
    {"cell", "target", "skipping", "ahead", "attempt", "sweep", "campaign", "finish", "redo", "foreign"},
    {"__main__", "commands"},
)
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}
L0 = LEVELS[0]

#: These take values and return values; they touch no file, process, thread or clock (style, section 6).
PURE = {"plan", "caliber", "fingerprint", "pairing", "statistics", "exact", "findings"} | {
    *("verdict", "screening", "decision", "rules", "margin", "noise", "notes", "corpus", "moderation", "power"),
    *("report", "verdict_sections", "evidence_sections", "summary", "grid", "occupancy", "occupancy_section"),
    *("explain", "derivation_sections"),
    *("accounting", "difference", "report_data", "report_schema", "ci", "junit"),
}
IMPURE_MODULES = {"os", "subprocess", "socket", "shutil", "tempfile", "threading", "time", "psutil"}

VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
#: FlagGems' own name for the file with class Benchmark; the built-in provider mirrors its protocol.
MIRRORED = BUILTIN / "benchmark" / "base.py"
MODULE_LINES, FUNCTION_LINES, RULES_LINES, SNAKEFILE_LINES = 250, 60, 100, 80
#: Longer than a module may be, and why.
LONG_MODULES = {
    HARNESS / "records.py": 520,  # the glossary: declarations only; a second file of nouns is a second birthplace
}


def python_files(*folders):
    return sorted(path for folder in folders for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def part(path):
    """The direct child of harness/ that a file belongs to: `backends` for harness/backends/cuda.py."""
    return path.relative_to(HARNESS).with_suffix("").parts[0]


OPERATORS = python_files(BUILTIN)
LAYERED = [path for path in python_files(HARNESS) if BUILTIN not in path.parents]
PLUGINS = python_files(HARNESS / "plugins")
TARGET_SIDE = [path for path in LAYERED if part(path) in L0 | {"plugins"}]
OWN = LAYERED + OPERATORS + python_files(WORKFLOW)
PARTS = {part(path) for path in LAYERED} - {"__init__"}


def shown(path, node=None):
    place = path.relative_to(ROOT).as_posix()
    return f"{place}:{node.lineno}" if node else place


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"), shown(path))


@cache
def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def nodes(path, *kinds):
    return [node for node in ast.walk(tree(path)) if isinstance(node, kinds)]


def module_name(path):
    """harness/backends/cuda.py -> harness.backends.cuda; a package by its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(path):
    return module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]


def imported(node, package):
    """Absolute dotted names an import statement may load: for `from a import b` both a and a.b."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if not isinstance(node, ast.ImportFrom):
        return set()
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    source = ".".join([*above, *filter(None, [node.module])])
    return {source, *(f"{source}.{alias.name}" for alias in node.names)}


@cache
def imports(path):
    """Every name imported anywhere in the file, lazily or for types too."""
    return set().union(*(imported(node, package_of(path)) for node in ast.walk(tree(path))))


def imports_at_load(node, package):
    """Names imported when the file is loaded: function bodies and TYPE_CHECKING blocks left out."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return set()
    is_typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    inside = node.orelse if is_typing else ast.iter_child_nodes(node)
    return imported(node, package).union(*(imports_at_load(child, package) for child in inside))


def roots(names):
    return {name.split(".")[0] for name in names}


def parts_imported(path):
    return {name.split(".")[1] for name in imports(path) if name.startswith("harness.")} & PARTS


def swallows(handler, source):
    """Catches everything, raises nothing (pytest.fail raises), and does not say why."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    broad = any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)
    inside = [node for statement in handler.body for node in ast.walk(statement)]
    raises = any(isinstance(node, ast.Raise) for node in inside)
    fails = any(isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.fail" for node in inside)
    return broad and not raises and not fails and "# why:" not in source[handler.lineno - 1]


def test_every_part_of_the_harness_has_exactly_one_level():
    assert sum(map(len, LEVELS)) == len(LEVEL)
    assert not PARTS - {"plugins"} - LEVEL.keys(), "name the new module's level in LEVELS (design, section 4)"


def test_imports_go_down_or_sideways():
    levelled = [path for path in LAYERED if part(path) in LEVEL]
    assert not [
        f"{shown(path)} (L{LEVEL[part(path)]}) imports {name} (L{LEVEL[name]})"
        for path in levelled
        for name in sorted(parts_imported(path) & LEVEL.keys())
        if LEVEL[name] > LEVEL[part(path)]
    ]


def test_nothing_but_plugins_imports_plugins():
    """The orchestrator starts them in another interpreter; imported here they would look for a cell."""
    outside = [path for path in LAYERED if part(path) != "plugins"]
    assert not [shown(path) for path in outside if "plugins" in parts_imported(path)]


def test_no_two_modules_import_each_other():
    """A cycle between files, lazy imports included, would make the order of loading matter."""
    names = {module_name(path): path for path in LAYERED}
    # `from harness.backends import device`, said by a part of that package, waits for no one: device is its sibling.
    graph = {name: {o for o in imports(path) if o in names} - {name, package_of(path)} for name, path in names.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_a_plugin_imports_only_l0_and_plugins():
    allowed = L0 | {"plugins"}
    assert not [(shown(path), parts_imported(path) - allowed) for path in PLUGINS if parts_imported(path) - allowed]


def test_what_a_target_loads_needs_nothing_installed():
    """It runs in a vendor's interpreter, which may have none of our packages."""
    known = sys.stdlib_module_names | {"harness"}
    loaded = {path: roots(imports_at_load(tree(path), package_of(path))) for path in TARGET_SIDE}
    assert not [(shown(path), names - known) for path, names in loaded.items() if names - known]


def test_a_builtin_operator_knows_no_harness():
    """It is a corpus like FlagGems: what it could import from here, a real corpus could not."""
    absolute = [(path, node) for path in OPERATORS for node in ast.walk(tree(path)) if not getattr(node, "level", 0)]
    assert not [shown(path, node) for path, node in absolute if "harness" in roots(imported(node, ""))]


def test_the_pure_core_touches_no_file_process_or_clock():
    touching = {path: roots(imports(path)) & IMPURE_MODULES for path in LAYERED if part(path) in PURE}
    assert not [(shown(path), names) for path, names in touching.items() if names]


def test_no_module_or_class_has_a_name_that_says_nothing():
    assert not [shown(path) for path in OWN if path.stem.lower() in VAGUE and path != MIRRORED]
    classes = [(path, node) for path in OWN for node in nodes(path, ast.ClassDef)]
    assert not [shown(path, node) for path, node in classes if node.name.lower() in VAGUE]


def test_a_module_fits_in_one_sitting():
    assert not [
        f"{shown(path)}: {len(lines(path))} lines, at most {LONG_MODULES.get(path, MODULE_LINES)}"
        for path in OWN
        if len(lines(path)) > LONG_MODULES.get(path, MODULE_LINES)
    ]


def test_a_function_fits_on_one_screen():
    functions = [(path, node) for path in OWN for node in nodes(path, ast.FunctionDef, ast.AsyncFunctionDef)]
    size = {shown(path, node): node.end_lineno - node.lineno + 1 for path, node in functions}
    assert not {place: count for place, count in size.items() if count > FUNCTION_LINES}


def test_the_workflow_holds_no_logic_worth_testing():
    """What a .smk file computes cannot be tested; it belongs in harness/."""
    assert not [shown(path) for path in WORKFLOW.rglob("*.smk") if len(lines(path)) >= RULES_LINES]
    assert len(lines(WORKFLOW / "Snakefile")) < SNAKEFILE_LINES


def test_no_handler_swallows_every_exception():
    handlers = [(path, node) for path in OWN for node in nodes(path, ast.ExceptHandler)]
    found = [shown(path, node) for path, node in handlers if swallows(node, lines(path))]
    assert not found, "narrow it, raise, or say `# why: ...` on its line"


def test_every_module_says_what_it_owns():
    """An operator's benchmark file says it by its name; an empty __init__.py owns nothing."""
    speaking = [path for path in OWN if lines(path) and not path.stem.startswith("test_")]
    assert not [shown(path) for path in speaking if not ast.get_docstring(tree(path))]


def test_every_public_function_and_class_has_a_docstring():
    """Those a reader can import; pytest names and documents its hooks itself."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = [(path, node) for path in LAYERED for node in tree(path).body if isinstance(node, kinds)]
    assert not [
        f"{shown(path, node)} {node.name}"
        for path, node in public
        if not node.name.startswith(("_", "pytest_")) and not ast.get_docstring(node)
    ]


def test_every_identity_field_has_a_role():
    declared = [name for role in Role for name in identity_fields(role)]
    assert sorted(declared) == sorted(Identity.__dataclass_fields__)


def test_these_checks_can_fail():
    bare = ast.parse("try:\n    a()\nexcept Exception:\n    pass").body[0].handlers[0]
    assert swallows(bare, ["", "", "except Exception:"])
    assert not swallows(bare, ["", "", "except Exception:  # why: a sampler never fails a cell"])
    again = ast.parse("try:\n    a()\nexcept BaseException:\n    raise").body[0].handlers[0]
    assert not swallows(again, ["", "", ""])
    assert "harness.backends.device" in imported(ast.parse("from .device import a").body[0], "harness.backends")
    lazy = ast.parse("import os\nif TYPE_CHECKING:\n    import torch\nelse:\n    import sys\ndef f():\n    import yaml")
    assert imports_at_load(lazy, "harness") == {"os", "sys"}

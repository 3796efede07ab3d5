import functools
import subprocess
import sys
from pathlib import Path

import pytest
from triton.language.core import constexpr

from harness.plugins import keys
from tests.plugins.target import PROVIDER, REPOSITORY

SHOW = """
import sys
sys.path[:0] = {paths}
from harness.plugins import keys
keys.settle()
from ops import kernels
print(kernels.total_kernel.cache_key)
"""


def key(paths: list[Path], before: str = "") -> str:
    """The cache key of a kernel that names a constexpr function, in a process of its own."""
    script = before + SHOW.format(paths=[str(path) for path in paths])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_two_processes_have_one_key_and_a_changed_function_another(tmp_path):
    shift = "hold = [lambda: 0 for _ in range(99)]\n"  # another address for what is made later
    first = key([REPOSITORY, PROVIDER])
    assert key([REPOSITORY, PROVIDER], shift) == first
    other = tmp_path / "ops"
    other.mkdir()
    for source in (PROVIDER / "ops").glob("*.py"):
        (other / source.name).write_text(source.read_text().replace("if dtype.is_fp16()", "if dtype.is_bf16()"))
    assert key([REPOSITORY, tmp_path]) != first


def plain(dtype):
    return dtype


def with_default(dtype, other=1):
    return other


def enclosing(value):
    return lambda dtype: value


made = {}
exec("def from_a_string(dtype):\n    return dtype", made)


def test_a_function_is_named_only_where_its_file_says_all_it_does():
    assert keys.name_of(plain).startswith(f"{__name__}.plain:")
    assert [keys.name_of(one) for one in (with_default, enclosing(1), made["from_a_string"])] == ["", "", ""]


@pytest.mark.parametrize("value", [3, "text", None, functools.partial(plain), enclosing(2)])
def test_any_other_constexpr_keeps_its_own_repr(monkeypatch, value):
    original = constexpr.__repr__
    monkeypatch.setattr(constexpr, "__repr__", original)
    keys.settle()
    assert repr(constexpr(value)) == original(constexpr(value)) and repr(constexpr(plain)) != original(constexpr(plain))


def test_triton_has_digested_itself_before_its_first_key():
    from triton.runtime.cache import triton_key

    triton_key.cache_clear()
    keys.prepare()
    assert triton_key.cache_info().currsize == 1

"""pytest plugin: writes run_identity.json, what this process is and how it will measure, as observed from inside.

Requested values are worth nothing here: two runs that asked for the same and got different things look exactly alike.
"""

from __future__ import annotations

import datetime
import importlib
import os
import platform
import socket
import sys
from typing import Any

from harness import codec
from harness.plugins import observed, session
from harness.records import CALIBER_EPOCH, Identity

STARTED = datetime.datetime.now(datetime.timezone.utc)


def pytest_load_initial_conftests() -> None:
    """Before anything can compile: this is when the cell looks whether its compile cache is cold."""
    session.current()


def pytest_collection_finish(session: Any) -> None:
    """Everything is imported, nothing is measured yet. Without a test there was no cell to identify."""
    if session.items:
        write(session.config)


def write(config: Any) -> None:
    """Observe and write; `config` is pytest's."""
    current = session.current()
    codec.write(current.attempt / "run_identity.json", identity(current, config))


def identity(current: session.Session, config: Any) -> Identity:
    """The identity of this process, for the cell of `current`."""
    cell = current.cell
    instrument, runtime = cell.instrument, os.environ.get("CALIBER_RUNTIME", cell.instrument.runtime)
    model, uuid = observed.device(runtime)
    return Identity(
        epoch=CALIBER_EPOCH,
        backend=instrument.backend,
        target=target(),
        device_model=model,
        device_uuid=uuid,
        driver=observed.driver_version(runtime),
        runtime=observed.runtime_version(),
        python=platform.python_version(),
        torch=str(importlib.import_module("torch").__version__),
        provider=cell.provider.name,
        provider_digest=cell.provider.digest,
        harness_digest=observed.loaded_digest("harness"),
        plugins=loaded_plugins(config),
        timer=instrument.timer,
        l2=instrument.l2,
        level=str(effective(config, "bench_level", "--level")),
        shapes=shapes(current, config),
        dtypes=dtypes(config),
        direct_repeat=cell.measure.direct_repeat,
        warmup_ms=int(float(effective(config, "warm_up", "--warmup"))),
        rep_ms=int(float(effective(config, "repetition", "--iter"))),
        tuner_cache=cell.measure.tuner_cache,
        autotune_mode=cell.autotune,
        autotune_digest=observed.file_digest(os.environ["CALIBER_AUTOTUNE"]) if cell.autotune == "replay" else "",
        compile_cache="side" if current.own_cache else "cell" if current.started_cold else "warm",
        env=observed.relevant_env(left_out=cell.side.env),
        switch={name: os.environ.get(name) for name in sorted(cell.side.env)},
        executable=sys.executable,
        pythonpath=cell.side.pythonpath,
        triton=str(importlib.import_module("triton").__version__),
        triton_digest=observed.triton_digest(),
        compiler_commit=observed.compiler_commit(),
        host=socket.gethostname(),
        pid=os.getpid(),
        started_at=STARTED.isoformat(timespec="milliseconds"),
        cuda_visible=os.environ.get("CUDA_VISIBLE_DEVICES", ""),
    )


def target() -> str:
    """The active Triton target, `cuda:90`: of the device that is there, or of the one that stands in for it."""
    found = importlib.import_module("triton.runtime.driver").driver.active.get_current_target()
    return f"{found.backend}:{found.arch}"


def loaded_plugins(config: Any) -> tuple[str, ...]:
    """caliber's plugins as pytest has them, in the order of their registration."""
    names = [name for name, plugin in config.pluginmanager.list_name_plugin() if plugin is not None]
    return tuple(name for name in names if name.startswith("harness.plugins"))


def effective(config: Any, field: str, option: str) -> Any:
    """A setting as the provider parsed it (its conftest's `Config.<field>`), else the pytest option; "" for neither."""
    parsed = provider_config(config)
    found = getattr(parsed, field, None) if parsed is not None else None
    if found is None:
        found = config.getoption(option, default="")
    return getattr(found, "value", found)


def provider_config(config: Any) -> Any | None:
    """The provider's own settings object, if its conftest keeps one."""
    plugins = [plugin for name, plugin in config.pluginmanager.list_name_plugin() if str(name).endswith("conftest.py")]
    return next((plugin.Config for plugin in plugins if getattr(plugin, "Config", None) is not None), None)


def shapes(current: session.Session, config: Any) -> str:
    """Which shapes: the mode, and name and digest of the shape file that the provider reads."""
    path = str(effective(config, "shape_file", "--shape_file"))
    digest = f" {os.path.basename(path)} sha256:{observed.file_digest(path)[:16]}" if os.path.isfile(path) else ""
    return f"{current.cell.measure.shapes}{digest}"


def dtypes(config: Any) -> tuple[str, ...]:
    """The data types the run was narrowed to; () = the provider's own."""
    wanted = effective(config, "user_desired_dtypes", "--dtypes") or ()
    return tuple(str(item).removeprefix("torch.") for item in wanted)

"""The resolved configuration: strict, complete, with defaults from one schema. It knows no vendor and no operator.

`parse` takes the mapping that Snakemake (or `load`) read and returns a frozen Config, or a ConfigError of one line.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from harness import codec
from harness.records import Judge, Measure, Refusal, Side, SideName

SCHEMA = Path(__file__).with_name("schemas") / "config.schema.yaml"


class ConfigError(Refusal):
    """A configuration caliber refuses: key, value seen and the way out, in one line."""


@dataclass(frozen=True)
class Config:
    """One campaign as configured. Paths are absolute; `devices` are tokens as given."""

    campaign: str
    manifest: Path
    backend: str
    devices: tuple[str, ...]
    target: str
    provider: str
    provider_root: str  # absolute, or "" when not given
    a: Side
    b: Side
    declared_aa: bool
    measure: Measure
    judge: Judge
    telemetry_s: float

    @property
    def sides(self) -> Mapping[SideName, Side]:
        return {"A": self.a, "B": self.b}

    @property
    def directory(self) -> Path:
        """Where the campaign lives: `results/<campaign>` below the working directory."""
        return Path("results") / self.campaign

    def sealed(self) -> Mapping[str, Any]:
        """What decides what is measured, as JSON values: all but `judge`, `telemetry` and the manifest's path."""
        return {
            "backend": self.backend, "devices": self.devices, "target": self.target, "provider": self.provider,
            "sides": codec.to_json(self.sides), "declared_aa": self.declared_aa, "measure": codec.to_json(self.measure),
        }  # fmt: skip

    def digest(self) -> str:
        """SHA-256 of the sealed part."""
        return digest(self.sealed())


def digest(sealed: Any) -> str:
    """SHA-256 of a configuration's sealed part; of `config.json` in a campaign, it is the seal's."""
    return "sha256:" + hashlib.sha256(codec.dumps(sealed).encode()).hexdigest()


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The JSON schema of the configuration."""
    return yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def load(path: Path, base: Path | None = None) -> Config:
    """Read a configuration file; relative paths count from `base` (default: the working directory)."""
    try:
        data = yaml.safe_load(codec.read_text(path))
    except (OSError, yaml.YAMLError, codec.CodecError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    return parse(data, base or Path.cwd(), str(path))


def parse(data: Any, base: Path, where: str = "config") -> Config:
    """Validate `data` strictly, fill in defaults, resolve paths against `base`."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: expected a mapping of keys, got {type(data).__name__}; see config/README.md")
    data = _filled(data, schema())
    _validate(data, where)
    measure = Measure(**{**data["measure"], "capture_deny_ops": tuple(data["measure"]["capture_deny_ops"])})
    provider = data["provider"]
    sides = _sides(data["sides"], base)
    return Config(
        campaign=data["campaign"],
        manifest=(base / data["manifest"]).resolve(),
        backend=data["backend"],
        devices=_devices(data["devices"], where),
        target=data["target"],
        provider=provider["name"],
        provider_root=str((base / provider["root"]).resolve()) if "root" in provider else "",
        a=sides["A"],
        b=sides["B"],
        declared_aa=data["declared_aa"],
        measure=measure,
        judge=Judge(**{**data["judge"], "margin_pct": float(data["judge"]["margin_pct"])}),
        telemetry_s=float(data["telemetry"]["interval_s"]),
    )


def warnings(config: Config) -> tuple[str, ...]:
    """What is legal but weakens a verdict, each with its reason."""
    found = []
    if config.measure.rounds % 2:
        found.append(
            f"measure.rounds = {config.measure.rounds} is odd: the order of sides cannot be balanced, so the "
            "estimate leans on the slot term; use an even number"
        )
    if config.measure.rounds < 4:
        found.append(f"measure.rounds = {config.measure.rounds}: below 4 rounds most verdicts stay UNRESOLVED")
    shards, devices = config.measure.sweep_shards, len(config.devices)
    if shards > devices:
        found.append(f"measure.sweep_shards = {shards} on {devices} device(s): shards take turns, which gains no time")
    if config.measure.tuner_cache == "shared":
        found.append("measure.tuner_cache = shared: relative conclusions stand, absolute latencies are unquotable")
    return tuple(found)


def _validate(data: Mapping[str, Any], where: str) -> None:
    errors = sorted(jsonschema.Draft202012Validator(schema()).iter_errors(data), key=lambda error: error.json_path)
    if errors:
        key = errors[0].json_path.removeprefix("$.").removeprefix("$") or "(top level)"
        raise ConfigError(f"{where}: {key}: {errors[0].message}; config/README.md lists every key")


def _filled(data: Mapping[str, Any], rules: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `data` with the schema's defaults. Null is not "missing": it stays and is refused by its type."""
    filled = dict(data)
    for key, rule in rules["properties"].items():
        if key not in filled and "default" in rule:
            filled[key] = rule["default"]
        if rule.get("type") == "object" and isinstance(filled.get(key), Mapping):
            filled[key] = _filled(filled[key], rule)
    return filled


def _devices(tokens: list[Any], where: str) -> tuple[str, ...]:
    devices = tuple(str(token) for token in tokens)
    twice = sorted({device for device in devices if devices.count(device) > 1})
    if twice:
        raise ConfigError(f"{where}: devices: {twice[0]!r} is listed twice; a lane has a device of its own")
    return devices


def _sides(data: Mapping[str, Any], base: Path) -> dict[SideName, Side]:
    """Both sides, each naming every variable that either names: an inherited value must not blur the switch."""
    names = sorted({name for side in data.values() for name in side.get("env", {})})
    return {"A": _side("A", data["A"], names, base), "B": _side("B", data["B"], names, base)}


def _side(name: SideName, data: Mapping[str, Any], names: list[str], base: Path) -> Side:
    python = data.get("python")
    env = data.get("env", {})
    return Side(
        name=name,
        python=_interpreter(python, base) if python else sys.executable,
        pythonpath=tuple(str((base / item).resolve()) for item in data.get("pythonpath", ())),
        env={variable: env.get(variable) for variable in names},
    )


def _interpreter(python: str, base: Path) -> str:
    """A bare command name is looked up on PATH when it runs; anything with a slash counts from `base`.

    Not resolved: the link is what makes a virtual environment's interpreter find its packages.
    """
    return str(base / python) if "/" in python else python

"""A device, and from what a user wrote (index, UUID, UUID prefix, MIG UUID) to exactly one of them. Pure.

Indices are the vendor tool's own. CUDA orders "fastest first" and nvidia-smi by bus, so an index is turned into a
UUID here, once, and only the UUID travels on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.records import ExitCode, Refusal

SHOWN = 8  # devices listed in an error


@dataclass(frozen=True)
class Device:
    """One lane's hardware. `parent` is the UUID of the physical device when this is a MIG instance, else "".

    `visible` is what the vendor's visible-devices variables take for it: a UUID, or an index where they know no other.
    """

    index: int
    uuid: str
    model: str
    visible: str
    parent: str = ""

    def __str__(self) -> str:
        return f"{self.uuid} ({self.model})" if self.parent else f"{self.index} = {self.uuid} ({self.model})"


class DeviceError(Refusal):
    """A device that cannot be had: what was seen, and the way out."""

    code = ExitCode.ENVIRONMENT

    def __init__(self, observed: str, remedy: str) -> None:
        super().__init__(f"{observed}; {remedy}")
        self.observed = observed
        self.remedy = remedy


def resolve(token: str, devices: Sequence[Device]) -> Device:
    """The one device that `token` names; DeviceError names the token and what exists."""
    wanted = token.strip()
    if wanted in ("", "-1"):
        raise DeviceError(f"device {token!r} means no device at all", f"name {inventory(devices)}")
    found = matching(wanted, devices)
    if not found:
        raise DeviceError(f"device {token!r} does not exist here", f"there is {inventory(devices)}")
    if len(found) > 1:
        raise DeviceError(f"device {token!r} is ambiguous", f"it fits {inventory(found)}")
    instances = [device for device in devices if device.parent == found[0].uuid]
    if instances:
        raise DeviceError(f"device {token!r} is divided into MIG instances", f"name one: {inventory(instances)}")
    return found[0]


def resolve_all(tokens: Sequence[str], devices: Sequence[Device]) -> tuple[Device, ...]:
    """One device per token, in the order given; the same device under two names is refused."""
    found: dict[str, str] = {}
    for token in tokens:
        device = resolve(token, devices)
        if device.uuid in found:
            raise DeviceError(
                f"devices {found[device.uuid]!r} and {token!r} are both {device.uuid}", "give each lane its own device"
            )
        found[device.uuid] = token
    return tuple(resolve(token, devices) for token in tokens)


def matching(token: str, devices: Sequence[Device]) -> list[Device]:
    """Every device that `token` may mean: an index, else a whole UUID, else a UUID prefix (vLLM #41848)."""
    if token.isdecimal():
        return [device for device in devices if device.index == int(token) and not device.parent]
    folded = token.casefold()
    whole = [device for device in devices if device.uuid.casefold() == folded]
    return whole or [device for device in devices if device.uuid.casefold().startswith(folded)]


def fenced(devices: Sequence[Device], names: Sequence[str], environ: Mapping[str, str]) -> tuple[Device, ...]:
    """The devices that the variables `names` leave visible, in the tool's order.

    A scheduler fences a job by them; measuring beside the fence would disturb, and be disturbed by, somebody else.
    As the runtimes do, a list ends at its first entry that names nothing ("" and "-1" hide every device).
    """
    kept = list(devices)
    for name in names:
        if name in environ:
            kept = _listed(environ[name], kept)
    return tuple(kept)


def inventory(devices: Sequence[Device]) -> str:
    """The devices in words, for the end of an error."""
    more = f", and {len(devices) - SHOWN} more" if len(devices) > SHOWN else ""
    return (", ".join(map(str, devices[:SHOWN])) or "no device") + more


def _listed(value: str, devices: Sequence[Device]) -> list[Device]:
    named: set[str] = set()
    for token in value.split(","):
        found = matching(token.strip(), devices) if token.strip() else []
        if len(found) != 1:
            break
        named.add(found[0].uuid)
    return [device for device in devices if device.uuid in named or device.parent in named]

"""Where operators come from (L1): the providers, found by name."""

from __future__ import annotations

from harness.providers.builtin_ops import BUILTIN
from harness.providers.flaggems import FLAGGEMS
from harness.providers.provider import Layout, Provider, ProviderError, key

__all__ = ["ALL", "NAMES", "Layout", "Provider", "ProviderError", "get", "key"]

ALL = (BUILTIN, FLAGGEMS)
NAMES = tuple(provider.name for provider in ALL)


def get(name: str) -> Provider:
    """The provider of that name."""
    for provider in ALL:
        if name == provider.name:
            return provider
    raise ProviderError(f"provider {name!r} is unknown; set provider.name in config to one of {', '.join(NAMES)}")

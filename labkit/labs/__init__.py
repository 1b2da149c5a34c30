"""What goes wrong: one folder a pitfall, each with a spec and its rank programs. Found by their folders, never by a list."""

from __future__ import annotations

import importlib
import pkgutil

from ..errors import UnknownName
from .spec import LabSpec


def slugs() -> list[str]:
    """The slugs of all labs, in the order of their numbers."""
    return [spec.slug for spec in specs()]


def specs() -> list[LabSpec]:
    """The specs of all labs. Loads no torch."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]
    found = [importlib.import_module(f"{__name__}.{name}").SPEC for name in names]
    return sorted(found, key=lambda spec: spec.number)


def spec(slug: str) -> LabSpec:
    """The spec of one lab.

    Args:
        slug: as in "duplicate-data"; its number, "03" or "3", does as well, and a beginning that no other lab has.

    Raises:
        UnknownName: with the valid slugs and the nearest spelling.
    """
    by_slug = {spec.slug: spec for spec in specs()}
    if slug.isascii() and slug.isdigit():
        slug = next((spec.slug for spec in by_slug.values() if spec.number == int(slug)), slug)
    beginning = [name for name in by_slug if slug and name.startswith(slug)]
    if slug not in by_slug and len(beginning) == 1:
        slug = beginning[0]
    if slug not in by_slug:
        raise UnknownName("lab", slug, by_slug)
    return by_slug[slug]

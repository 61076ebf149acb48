#!/usr/bin/env python3
"""Bills of materials in CycloneDX JSON: what an installation and each image is made of.

Decides which packages of ``lock.txt`` belong to which product, and their form. Must not know how
anything is built. Needs the standard library alone. The same lock gives the same bytes.

    deploy/sbom.py DIRECTORY    writes one file for each product

A package has every hash that the lock allows: each machine gets one of these files. Not in it are
the parts of an image's base: its publisher has a bill for them.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from deploy.lock import LOCK, Package, read, select

ROOT = Path(__file__).resolve().parents[1]
#: Product -> its sets of the lock. The fetcher has none: the standard library is enough.
PRODUCTS: Mapping[str, tuple[str, ...]] = {
    "install": ("install",),
    "image-controlplane": ("controlplane",),
    "image-dataplane": ("dataplane",),
    "image-fetcher": (),
}


def bill(product: str, version: str, packages: Iterable[Package]) -> dict[str, Any]:
    """The bill of one product, as CycloneDX 1.6 has it."""
    components = [_component(package) for package in sorted(packages, key=lambda one: one.requirement)]
    own = f"pkg:pypi/amphitrite@{version}" if product == "install" else f"pkg:oci/{product.removeprefix('image-')}"
    kind = "application" if product == "install" else "container"
    content = json.dumps([own, version, components], sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": kind,
                "bom-ref": own,
                "name": "amphitrite" if product == "install" else f"amphitrite/{product.removeprefix('image-')}",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": own,
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": sorted({one["bom-ref"] for one in components})}],
    }


def _component(package: Package) -> dict[str, Any]:
    name = package.name.split("[")[0]
    marker = package.requirement.partition(";")[2].strip()
    purl = f"pkg:pypi/{quote(name)}@{quote(package.version)}"
    hashes = [one.partition(":")[2] for one in package.hashes]
    return {
        "type": "library",
        "bom-ref": f"{purl}#{quote(marker)}" if marker else purl,
        "name": name,
        "version": package.version,
        "purl": purl,
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{quote(name)}/{quote(package.version)}/",
                "hashes": [{"alg": "SHA-256", "content": one} for one in hashes],
            }
        ],
        **({"properties": [{"name": "python:marker", "value": marker}]} if marker else {}),
    }


def write(directory: Path, version: str) -> list[Path]:
    """Writes the bill of each product, and returns their paths."""
    locked = read(LOCK.read_text(encoding="utf-8"))
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for product, sets in PRODUCTS.items():
        made = bill(product, version, select(locked, *sets) if sets else ())
        written.append(directory / f"amphitrite-{version}-{product}.cdx.json")
        written[-1].write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return written


def _version() -> str:
    """Of the package: from pyproject.toml, whose form a test knows (Python 3.10 has no tomllib)."""
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("version = "):
            return line.partition('"')[2].rstrip('"')
    raise SystemExit("error: pyproject.toml has no version")


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1:
        raise SystemExit("usage: deploy/sbom.py DIRECTORY")
    for path in write(Path(arguments[0]), _version()):
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])

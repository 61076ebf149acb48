"""The bills of materials say what the lock says, in CycloneDX's form."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from deploy.lock import LOCK, read, select
from deploy.sbom import PRODUCTS, write

ROOT = Path(__file__).parents[1]
LOCKED = read(LOCK.read_text(encoding="utf-8"))
VERSION = version("amphitrite")


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    paths = write(tmp_path_factory.mktemp("sbom"), VERSION)
    return {product: json.loads(path.read_text()) for product, path in zip(PRODUCTS, paths, strict=True)}


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_bill_is_the_lock(bills: dict[str, dict[str, Any]], product: str) -> None:
    sets = PRODUCTS[product]
    wanted = {
        (one.name.split("[")[0], one.version): {text.partition(":")[2] for text in one.hashes}
        for one in (select(LOCKED, *sets) if sets else ())
    }
    found = {
        (one["name"], one["version"]): {entry["content"] for entry in one["externalReferences"][0]["hashes"]}
        for one in bills[product]["components"]
    }
    assert found == wanted and bool(found) == bool(sets)


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_form_is_that_of_cyclonedx(bills: dict[str, dict[str, Any]], product: str) -> None:
    bill = bills[product]
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    assert bill["metadata"]["component"]["version"] == VERSION
    refs = [one["bom-ref"] for one in bill["components"]]
    assert len(set(refs)) == len(refs) and bill["dependencies"][0]["dependsOn"] == sorted(refs)
    for one in bill["components"]:
        assert one["type"] == "library" and one["purl"].startswith(f"pkg:pypi/{one['name']}@")
        for entry in one["externalReferences"][0]["hashes"]:
            assert entry["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", entry["content"])


def test_each_image_has_a_bill() -> None:
    images = {path.name.partition(".")[0] for path in (ROOT / "deploy/images").glob("*.Dockerfile")}
    assert {name.removeprefix("image-") for name in PRODUCTS if name.startswith("image-")} == images


def test_an_image_installs_the_set_of_its_bill() -> None:
    """The set that the Dockerfile selects, besides what builds."""
    for product, sets in PRODUCTS.items():
        if product.startswith("image-"):
            text = (ROOT / "deploy/images" / f"{product.removeprefix('image-')}.Dockerfile").read_text()
            assert set(re.findall(r"install\.sh dependencies (\w+)", text)) == set(sets), product


def test_the_program_needs_nothing_installed(tmp_path: Path) -> None:
    argv = [sys.executable, "-I", "-S", str(ROOT / "deploy/sbom.py"), str(tmp_path)]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert [Path(one).name for one in printed] == [f"amphitrite-{VERSION}-{name}.cdx.json" for name in PRODUCTS]
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    subprocess.run(argv, capture_output=True, check=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first

"""Prints what is installed beside spectralbai, as a list of components in the form of CycloneDX 1.6 (JSON)."""

from __future__ import annotations

import json
import re
from importlib.metadata import Distribution, distributions


def component(package: Distribution) -> dict[str, object]:
    """Returns the entry of a package."""
    name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
    purl = f"pkg:pypi/{name}@{package.version}"
    licence = package.metadata.get("License-Expression") or package.metadata.get("License") or ""
    entry: dict[str, object] = {"type": "library", "bom-ref": purl, "name": name, "version": package.version}
    entry["purl"] = purl
    if licence and "\n" not in licence:
        entry["licenses"] = [{"license": {"name": licence}}]
    return entry


def main() -> None:
    components = sorted((component(each) for each in distributions()), key=lambda each: str(each["bom-ref"]))
    own = [each for each in components if each["name"] == "spectralbai"]
    others = [each for each in components if each["name"] != "spectralbai"]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**own[0], "type": "application"}} if own else {},
        "components": others,
    }
    print(json.dumps(document, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()

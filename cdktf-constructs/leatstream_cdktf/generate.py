"""Write ``l1/``: one typed class per resource, data source and provider of ``provider.json``.

``python -m leatstream_cdktf.generate`` writes, ``--check`` only compares. Neither the CDK library nor Node.js
is needed. The output depends on ``provider.json`` alone, so the same document always gives the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from leatstream_cdktf._naming import class_name
from leatstream_cdktf._render import init_file, module_file, provider_file
from leatstream_terraform import NAME
from leatstream_terraform.schema import ProviderSchema, load

FOLDER = Path(__file__).parent / "l1"


def documents(schema: ProviderSchema) -> dict[str, str]:
    """Every file of ``l1/`` by its name."""
    files = {"provider.py": provider_file(schema)}
    exports = {"provider": [class_name(NAME) + "Provider"]}
    for name, resource in sorted(schema.resources.items()):
        short = name.removeprefix(f"{NAME}_")
        files[f"{short}.py"], exports[short] = module_file(name, class_name(short), resource, "Resource")
    for name, resource in sorted(schema.data_sources.items()):
        short = name.removeprefix(f"{NAME}_")
        files[f"data_{short}.py"], exports[f"data_{short}"] = module_file(
            name, "Data" + class_name(short), resource, "DataSource"
        )
    files["__init__.py"] = init_file(exports)
    return files


def write(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Make the folder hold exactly these files; returns the names of those that changed."""
    changed = differences(folder, files)
    for name in changed:
        if name in files:
            folder.joinpath(name).write_text(files[name], encoding="utf-8")
        else:
            folder.joinpath(name).unlink()
    return changed


def differences(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Names of files that differ, are missing, or are there and should not be."""
    folder.mkdir(parents=True, exist_ok=True)
    present = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
    return [name for name in sorted({*present, *files}) if present.get(name) != files.get(name)]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m leatstream_cdktf.generate", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail when a file is not up to date"
    )
    options = parser.parse_args(arguments)
    files = documents(load())
    changed = differences(FOLDER, files) if options.check else write(FOLDER, files)
    if options.check and changed:
        print(
            f"l1/ is not what provider.json gives: {', '.join(changed)}. Run `make generate`.",
            file=sys.stderr,
        )
        return 1
    print(
        f"l1/: {len(files)} files, {len(changed)} written"
        if not options.check
        else f"l1/: {len(files)} files, all equal"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

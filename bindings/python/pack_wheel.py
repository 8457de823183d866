#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs an installed package as a wheel for the Python that runs this. Equal files give equal
bytes.

    pack_wheel.py FOLDER --version 0.1.0 --readme FILE --license FILE --output FOLDER

FOLDER holds the package as `cmake --install --component python` lays it out. Prints the path of the
wheel.
"""

import argparse
import base64
import hashlib
import pathlib
import sys
import sysconfig
import zipfile

BEGIN_OF_ZIP = (1980, 1, 1, 0, 0, 0)


def tag():
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{version}-{version}-{platform}"


def metadata(version, readme):
    head = ["Metadata-Version: 2.1", "Name: stepcast", f"Version: {version}",
            "Summary: Forecasts one training step of a transformer on a GPU cluster",
            "License: Apache-2.0", "Requires-Python: >=3.9",
            "Description-Content-Type: text/markdown"]
    return "\n".join(head) + "\n\n" + readme


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--readme", required=True, type=pathlib.Path)
    parser.add_argument("--license", required=True, type=pathlib.Path)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    arguments = parser.parse_args()

    files = {str(path.relative_to(arguments.folder)): path.read_bytes()
             for path in sorted(arguments.folder.rglob("*")) if path.is_file()}
    if not any(name.startswith("stepcast/_core") for name in files):
        parser.error(f"{arguments.folder} holds no module: build it first")
    info = f"stepcast-{arguments.version}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: stepcast\nRoot-Is-Purelib: false\nTag: {tag()}\n"
    files[f"{info}/METADATA"] = metadata(arguments.version, arguments.readme.read_text()).encode()
    files[f"{info}/LICENSE"] = arguments.license.read_bytes()
    files[f"{info}/WHEEL"] = wheel.encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

    arguments.output.mkdir(parents=True, exist_ok=True)
    target = arguments.output / f"stepcast-{arguments.version}-{tag()}.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, BEGIN_OF_ZIP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            archive.writestr(entry, content)
    print(target)


if __name__ == "__main__":
    main()

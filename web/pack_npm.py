#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the npm package: the same bytes for the same build.

    pack_npm.py --build build/web --version 0.1.0 --output stepcast-0.1.0.tgz
"""

import argparse
import gzip
import io
import pathlib
import tarfile

WEB = pathlib.Path(__file__).resolve().parent


def contents(build, version):
    """Names inside the package, and their bytes."""
    for name in ("stepcast-node.js", "stepcast-node.wasm"):
        yield name, (build / name).read_bytes()
    yield "LICENSE", (WEB.parent / "LICENSE").read_bytes()
    for file in sorted((WEB / "npm").iterdir()):
        text = file.read_text()
        if file.name == "package.json":
            assert text.count("@version@") == 1
            text = text.replace("@version@", version)
        yield file.name, text.encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in contents(arguments.build, arguments.version):
            member = tarfile.TarInfo("package/" + name)
            member.size = len(data)
            member.mode = 0o755 if name == "cli.js" else 0o644
            archive.addfile(member, io.BytesIO(data))
    arguments.output.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the packages, unpacks each in an empty root, and runs the program there.

    packages.py BUILD_FOLDER TGZ|DEB

The root holds nothing but the package and, of this machine, the C library; for Debian's packages
also the libraries of the packages that they depend on. Where this machine lets nobody change the
root, the program runs from the unpacked folder with an empty environment.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

C_LIBRARY = re.compile(r"/(libc|libm|libdl|librt|libpthread)\.so|/ld-linux")
FORECAST = ["predict", "--model", "llama-3.1-70b", "--cluster", "dgx-h100x8",
            "--global-batch", "512", "--tp", "8", "--pp", "4", "--format", "json"]


def call(words, **more):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        command = " ".join(map(str, words))
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def make(build, generator, folder):
    """The package files, each held against its checksum."""
    call(["cpack", "--config", build / "CPackConfig.cmake", "-G", generator, "-B", folder])
    files = sorted(path.with_suffix("") for path in folder.glob("*.sha256"))
    if not files:
        sys.exit(f"{generator}: no package was made")
    for file in files:
        stated = file.with_name(file.name + ".sha256").read_text().split()[0]
        if hashlib.sha256(file.read_bytes()).hexdigest() != stated:
            sys.exit(f"{file.name}: the checksum is of another file")
    return files


def libraries_of(program):
    """The libraries that the loader finds for a program on this machine."""
    found = re.findall(r"(/\S+) \(0x", call(["ldd", program]))
    return [pathlib.Path(path) for path in found]


def copy_into(root, files):
    for file in files:
        target = root / str(file).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)


def root_changer(root):
    """The words that run a program in `root`; none where this machine does not let us."""
    if not (unshare := shutil.which("unshare")):
        return []
    words = [unshare, *(["--map-root-user"] if os.geteuid() else []), "--mount", "--pid", "--fork",
             f"--root={root}", "--mount-proc"]
    (root / "proc").mkdir(exist_ok=True)
    tried = subprocess.run([*words, "/lib64/ld-linux-x86-64.so.2", "--help"], capture_output=True,
                           check=False)
    return words if tried.returncode == 0 else []


def run_in(root, program, words):
    """Runs the program with `root` as the root, and nothing in its environment."""
    if before := root_changer(root):
        return call([*before, f"/{program}", *words], env={})
    return call([root / program, *words], env={}, cwd="/")


def check(root, program, tree_program):
    inside = json.loads(run_in(root, program, FORECAST))
    outside = json.loads(call([tree_program, *FORECAST]))
    if inside != outside:
        sys.exit("the packaged program forecasts otherwise than the one of the tree")
    prefix = (root / program).parent.parent
    for file in ["share/man/man1/stepcast.1", "share/bash-completion/completions/stepcast",
                 "share/zsh/site-functions/_stepcast",
                 "share/fish/vendor_completions.d/stepcast.fish",
                 "share/doc/stepcast/LICENSE"]:
        if not (prefix / file).stat().st_size:
            sys.exit(f"{file} is empty")
    for suite in ["zero-bubble-a100"]:
        if suite not in run_in(root, program, ["check", suite]):
            sys.exit(f"{suite} is not checked")


def archive(build, folder):
    (file,) = make(build, "TGZ", folder)
    root = folder / "root"
    root.mkdir()
    call(["tar", "-xzf", file, "-C", root])
    (top,) = root.iterdir()
    program = top / "bin" / "stepcast"
    of_system = [path for path in libraries_of(program) if not path.is_relative_to(root)]
    strangers = [str(path) for path in of_system if not C_LIBRARY.search(str(path))]
    if strangers:
        sys.exit(f"the archive leaves these libraries to the machine: {strangers}")
    copy_into(root, of_system)
    check(root, program.relative_to(root), build / "stepcast")


def debian(build, folder):
    files = make(build, "DEB", folder)
    names = [call(["dpkg-deb", "--field", file, "Package"]).strip() for file in files]
    if sorted(names) != ["libstepcast-dev", "stepcast", "stepcast-ranks"]:
        sys.exit(f"other packages than expected: {names}")
    file = files[names.index("stepcast")]
    depends = call(["dpkg-deb", "--field", file, "Depends"])
    root = folder / "root"
    call(["dpkg-deb", "--extract", file, root])
    program = root / "usr" / "bin" / "stepcast"
    for library in libraries_of(program):
        owner = subprocess.run(["dpkg", "--search", library.resolve()], capture_output=True,
                               text=True, check=False).stdout.split(":")[0]
        if owner and owner not in depends:
            sys.exit(f"{library} is of {owner}, which the package does not depend on: {depends}")
    copy_into(root, libraries_of(program))
    check(root, program.relative_to(root), build / "stepcast")


def main():
    build, generator = pathlib.Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        {"TGZ": archive, "DEB": debian}[generator](build, pathlib.Path(name))
    print(f"{generator}: forecasts when nothing else is there")


main()

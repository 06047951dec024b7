#!/usr/bin/env python3
"""Checks that each folder includes only what it may. Exit 1 and one line per fault.

  shared <- std, nlohmann (in *_json.cpp only)      sim  <- shared, traces, SimGrid, cxxopts
  traces <- shared, Eigen, nlohmann                 exec <- shared, traces, LibTorch, libpng, NCCL, cxxopts
"""
import pathlib
import re
import sys

FOLDERS = ["shared", "traces", "sim", "exec"]
ALLOWED = {  # folder -> what its files may include besides itself and the standard library
    "shared": {"nlohmann"},
    "traces": {"shared", "Eigen", "nlohmann"},
    "sim": {"shared", "traces", "simgrid", "xbt", "cxxopts", "nlohmann"},
    "exec": {"shared", "traces", "torch", "ATen", "c10", "gloo", "png", "cuda", "nccl", "cxxopts", "nlohmann"},
}
INCLUDE = re.compile(r'\s*#\s*include\s*(<|")([^>"]+)')
# Outside every folder: the C and C++ standard libraries (no slash, no .hpp) and the operating system's headers.
SYSTEM = re.compile(r"^([a-z_0-9]+|(assert|errno|malloc|math|signal|stdio|stdlib|string|time|unistd|fcntl|poll|dlfcn|netdb|pthread|sched|spawn|limits|ifaddrs)\.h"
                    r"|(sys|netinet|arpa|net|linux)/.*)$")


def library(path: str) -> str:
    """The library that an included path belongs to: its first folder, or the file's bare name."""
    first = path.split("/")[0]
    name = first if "/" in path else re.sub(r"(\.h|\.hpp)$", "", first)
    return "cuda" if name.startswith("cuda") or name == "nvtx3" else name


def faults(root: pathlib.Path):
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in {".h", ".cpp"} or {"gloo_stub", "cuda_stub"} & set(file.parts):
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match or (match[1] == "<" and SYSTEM.match(match[2])):
                    continue
                name, where = library(match[2]), f"{file.relative_to(root)}:{number}"
                if match[1] == '"' and name not in FOLDERS:
                    yield f'{where}: write "{folder}/{match[2]}", or <...> if it is not ours'
                elif name != folder and name not in ALLOWED[folder]:
                    yield f"{where}: {folder}/ may not include {match[2]} (allowed: {', '.join(sorted(ALLOWED[folder]))})"
                elif folder == "shared" and name == "nlohmann" and not file.name.endswith("_json.cpp"):
                    yield f"{where}: in shared/, JSON belongs into *_json.cpp"


if __name__ == "__main__":
    found = list(faults(pathlib.Path(__file__).resolve().parent.parent))
    print("\n".join(found) or "layers: clean")
    sys.exit(bool(found))

#!/usr/bin/env python3
"""Checks that folders and rooms include only what they may, that the READMEs show the map below, and
that every file named in a comment or README exists.

check_layers.py           exits with 1 and prints one line per violation
check_layers.py --map     prints the map: room, its purpose, the rooms that it includes
check_layers.py --write   writes the map into the READMEs (between the lines "<!-- rooms -->" and
                          "<!-- end of rooms -->")

Folders: shared <- no folder of ours; traces <- shared; sim <- shared, traces; exec <- shared,
traces. Rooms of a folder are listed in order below: a file may include files of its own room and of
rooms of earlier levels, but no files of other rooms of its own level. "" is the folder itself.

SimGrid's types appear in headers of sim/simgrid/ only, and torch's in headers of exec/ only: no
other header may include them or name them.

Two types of one namespace have different names, even if no file sees both: the linker takes a function
of one (a destructor, say) for that of the other, and nothing warns of it.

A path in a comment starts at the top ("shared/units.h"); one in a README may also start at the README's
folder or at the folder above its room. "*" stands for anything, and so does a word in capitals (NAME).
"""
import collections
import pathlib
import re
import sys

LIBRARIES = {  # folder -> what its files may include besides our folders and the standard library
    # nlohmann only in *_json.cpp, and in *_json.h its forward declarations; the others only in tokenizer/*.cpp
    "shared": {"nlohmann", "pcre2", "utf8proc"},
    "traces": {"Eigen", "nlohmann", "sqlite3", "zlib"},
    "sim": {"simgrid", "xbt", "cxxopts", "nlohmann", "yaml-cpp", "toml++", "pugixml"},
    "exec": {"torch", "ATen", "c10", "gloo", "png", "sndfile", "turbojpeg", "webp", "cuda", "nccl", "cxxopts", "nlohmann"},
}
FOLDERS = {"shared": ["shared"], "traces": ["shared", "traces"], "sim": ["shared", "traces", "sim"],
           "exec": ["shared", "traces", "exec"]}
ROOMS = {  # folder -> levels of rooms, lowest first
    "shared": [
        {"": "units, ids, number formats, errors, random numbers, statistics"},
        {"text": "quantities with units, forms of JSON values, strict JSON"},
        {"files": "reads and writes whole files with limits; a file is complete or absent, even after a crash"},
        {"tokenizer": "texts as ids of published tokenizers (tokenizer.json), exactly, and back"},
        {"schedule": "pipeline schedules, one table row each: which rank holds which stage, in which order it runs actions"},
        {"planner": "per-step planners (Entrain, DIP, bubble filling) over plain numbers, and the costs that they balance"},
        {"model": "modules and edges, layouts, presets, Hugging Face configs"},
        {"work": "what one microbatch of a module holds on a rank: rows, shares of rows, token masks"},
        {"kernels": "the vocabulary of layers: kernels, collectives, parameters, shards, LoRA"},
        {"layers": "layer kinds: parameters, kernels, saved activations and collectives of each"},
        {"chunk": "sums over a range of layers: expansion, parameters, activation and optimizer bytes"},
        {"hardware": "clusters, devices, hardware profiles and their uncertainty, software stacks, network paths",
         "goal": "optimization objectives, what a search may vary for them, failures and cost of long runs",
         "data": "samples, batches, mixtures, distributions, recorded data"},
        {"checkpoint": "parameters in files: safetensors headers, regions of a parameter, checkpoint manifests"},
        {"weights": "published weights: names of their tensors by family, where a parameter's elements stand in them"},
        {"scenario": "the Scenario value, its batches, tokens of images and audio clips"},
        {"form": "the keys of a scenario file, its JSON Schema"},
        {"validate": "checks of a scenario that need no layout"},
        {"program": "the Program, what its microbatches hold, its hash"},
        {"datasets": "people's data sets on disk: conversations as token ids, files of token ids, where images are, headers of media"},
        {"scenario_io": "reads and writes scenario files; their data sets, overrides, profiles named by a scenario, run records",
         "graph": "the Program as a dependency graph (compile), memory over time"},
        {"export": "a run's weights as published models: safetensors, config.json, LoRA adapters",
         "verify": "checks that a Program is well formed and can run to its end"},
        {"cost": "prices of ops, the estimate, model FLOPs",
         "plan": "which layers form which stage, on which ranks"},
        {"step": "which samples each microbatch holds in a step, in which order microbatches run",
         "held": "memory that other software stacks hold"},
        {"check": "checks that a layout is legal for a scenario",
         "lower": "builds the Program of a plan and a step"},
        {"chance": "prediction intervals, extrapolation, jitter"},
        {"screen": "lower bounds of a layout's memory and time in closed form, without a Program"},
        {"split": "plans a layout on its hardware: stages of equal time that fit in memory"},
        {"search": "search spaces, their most promising layouts, neighbors of a layout"},
    ],
    "traces": [
        {"import": "reads what other tools print or record",
         "kineto": "PyTorch profiler traces: reading, kernel classes, accounting of every moment"},
        {"format": "trace files: reading and writing",
         "nsys": "reports of Nsight Systems"},
        {"compare": "when an op is running; two Timelines side by side"},
        {"evidence": "measured steps from run folders and trace files"},
        {"calibrate": "features, fits, machine records, uncertainty",
         "chakra": "execution traces of a simulated step for other simulators",
         "replay": "measured op durations applied to a Program, also a changed one; critical paths"},
        {"kernels": "kernels of a profiler trace as a graph that can be replayed, also with changes"},
        {"report": "SVG charts and the HTML page"},
    ],
    "sim": [
        {"text": "keys of JSON answers, CSV tables, configuration files"},
        {"machines": "files about machines: NCCL's and Slurm's topologies, nccl-tests"},
        {"question": "questions without a scenario file: accelerators, what a stack can run, the scenario that they mean"},
        {"runner": "simulates a compiled Program through the helper program; runs tasks on threads"},
        {"simgrid": "the helper program polyphony-simulate: platform and player on SimGrid"},
        {"prediction": "predicts one layout on one batch: Timeline, memory, figures, intervals, jitter"},
        {"sweep": "searches layouts: screens, estimates, climbs, simulates, ranks; goals"},
        {"load": "loads scenarios, samples and profiles from files"},
        {"plan_answers": "answers of `plan`: stages, alternative splits, planner results",
         "step_answers": "answers of `simulate`, `why` and `compare`: steps, batch streams, changes",
         "frameworks": "settings of other training frameworks: read as scenarios, written from layouts"},
        {"answer_json": "JSON writers and JSON Schemas of all answers"},
        {"published": "published measurements as scenarios, each predicted",
         "evidence": "step times, logs and memory peaks of runs elsewhere, and fits to them; monitoring of a running job",
         "console": "terminal and machine: tables, progress, signals, free memory, error messages",
         "datasets": "samples on disk as counts: patches, audio tokens, text tokens; packing"},
        {"judged": "prediction errors over published measurements: held-out errors, coverage, pairs"},
        {"schedules": "schedules compared over given stage times, each at its best setting",
         "replay": "a measured run replayed, also with changes: both steps and what explains the difference"},
        {"shown": "predictions, plans and searches as text tables and CSV"},
        {"shown_runs": "measured runs, traces, calibrations and data sets as text tables"},
        {"pages": "answers as HTML pages"},
        {"launching": "starts, watches and stops the ranks of a run"},
        {"cli": "command-line options, journals, what commands share"},
        {"commands": "the `polyphony` program: one file per command"},
    ],
    "exec": [
        {"": "what every room includes: LibTorch's precompiled header, the input of a microbatch"},
        {"system": "this process: launch environment, cores, signals that stop it"},
        {"transport": "the communicator interface; ranks as threads of one process"},
        {"wire": "sockets, the key-value store, links between peers, detection of lost ranks"},
        {"gloo": "the Gloo communicator and direct exchanges between processes"},
        {"device": "the NCCL communicator, CUDA devices, process groups and transports on devices"},
        {"cuda": "kernel bodies that nvcc and the C++ compiler compile, loops around them, launches"},
        {"fused": "tensor operations with a fused kernel; the choice between it and ATen's operators"},
        {"parameters": "initial values, the parameters a rank holds, AdamW"},
        {"autograd": "weight-bearing functions with queued weight gradients, rows of sequence parallelism"},
        {"attention_calls": "attention over heads: calls for the rectangles of a mask, LibTorch's kernels"},
        {"attention": "attention over packed rows of one rank: heads from rows, rotary positions, windows"},
        {"context_parallel": "attention to the keys of a context group: gathered, by heads, around a ring"},
        {"frame": "what all layers of a chunk get: their parameters, the plans of a microbatch"},
        {"experts": "mixture of experts: routing, exchange of rows, products, balance loss",
         "mixers": "layers that mix the rows of a sample: attention of each kind, delta rule, convolution"},
        {"layers": "the other layers: patches, audio, projectors, vocabulary, diffusion"},
        {"chunk": "the layers of one rank: tables of layer kinds, forward and backward of a microbatch"},
        {"data": "samples, data sets, packing without padding"},
        {"runner": "runs a Program's ops in their order on one rank"},
        {"planning": "per-step plans made before or while training, and their exchange between ranks"},
        {"checkpoint": "atomic checkpoints that any layout resumes, safetensors"},
        {"worker": "`polyphony-worker`: preparation, the training loop, its files, microbenchmarks"},
    ],
}
INCLUDE = re.compile(r'\s*#\s*include\s*(<|")([^">]+)')
# Outside every folder: the C and C++ standard libraries (no slash, no .hpp) and the operating system's headers.
SYSTEM = re.compile(r"^([a-z_0-9]+|(assert|errno|malloc|math|signal|stdio|stdlib|string|time|unistd|fcntl|poll|dlfcn|netdb|pthread|sched|spawn|limits|ifaddrs)\.h"
                    r"|(sys|netinet|arpa|net|linux)/.*)$")
BEGIN, END = "<!-- rooms -->\n", "<!-- end of rooms -->\n"
ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TOP_PATH = re.compile(r"(?<![\w/.~-])(?:shared|sim|exec|traces|tests)/[\w./*-]*[\w*]")
README_PATH = re.compile(r"`([a-z_]+/[\w/*-]+\.(?:h|cpp|cu|cuh|py))`")
FOREIGN_TYPE = re.compile(r"\b(simgrid|torch|at|c10|c10d)::\w")  # namespaces of SimGrid and LibTorch
NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{(?!.*\}$)")
TYPE = re.compile(r"(?:struct|class|enum(?: class)?) (\w+)(?!\w|::|<)(?:[^;]*|[^;{]*\{.*)$")  # that is defined, at the start of a line


def library(path: str) -> str:
    """The library that an included path belongs to: its first folder, or the file's bare name."""
    first = path.split("/")[0]
    name = first if "/" in path else re.sub(r"(\.h|\.hpp)$", "", first)
    return "cuda" if name.startswith("cuda") or name == "nvtx3" else name


def room_of(path: str) -> str:
    """"layers" of "shared/work/rows.h"."""
    parts = path.split("/")
    return "/".join(parts[1:-1])


def sources(folder: str):
    for file in sorted((ROOT / folder).rglob("*")):
        if file.suffix in {".h", ".cpp", ".cu", ".cuh"} and not {"gloo_stub", "cuda_stub"} & set(file.parts):
            yield file, str(file.relative_to(ROOT))


def includes(file: pathlib.Path):
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match and not (match[1] == "<" and SYSTEM.match(match[2])):
            yield number, match[1], match[2]


def exists(path: str, folder: pathlib.Path) -> bool:
    """Whether the path, or one that its placeholders stand for, is in one of the folders above it."""
    pattern = path if (ROOT / path).exists() else re.sub(r"[A-Z]{4,}", "*", path)
    return any(next(start.glob(pattern), None) for start in (folder, *folder.parents) if start.is_relative_to(ROOT))


def references():
    """(file:line, path, the folder that it may start at) of every path in comments and READMEs."""
    for folder in (*ROOMS, "tests"):
        for file, path in sources(folder):
            text = file.read_text()
            for comment in COMMENT.finditer(text):
                for found in TOP_PATH.finditer(comment[0]):
                    line = text.count("\n", 0, comment.start() + found.start()) + 1
                    yield f"{path}:{line}", found[0], ROOT
    for file in sorted(ROOT.glob("*.md")) + [f for top in (*ROOMS, "tests", "scenarios", "scripts") for f in sorted((ROOT / top).rglob("*.md"))]:
        if file.name == "CHANGELOG.md":  # it names files of earlier versions
            continue
        for number, line in enumerate(file.read_text().split("\n"), 1):
            for found in {*TOP_PATH.findall(line), *README_PATH.findall(line)}:
                yield f"{file.relative_to(ROOT)}:{number}", found, file.parent


def foreign_types():
    """file:line of every type of SimGrid or LibTorch in a header that may have none."""
    for folder in ROOMS:
        for file, path in sources(folder):
            if not path.endswith(".h") or path.startswith(("sim/simgrid/", "exec/")):
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                included = INCLUDE.match(line)
                if FOREIGN_TYPE.search(line.split("//")[0]) or (included and library(included[2]) in {"simgrid", "xbt", "torch", "ATen", "c10"}):
                    yield f"{path}:{number}"


def types_of_one_name():
    """(name, places) of every name that types in two files of the product have, anonymous namespaces left out."""
    places = collections.defaultdict(list)
    for folder in ROOMS:
        for file, path in sources(folder):
            spaces = []
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if opened := NAMESPACE.match(line):
                    spaces.append(opened[1] or "")
                elif line.startswith("}") and "// namespace" in line and spaces:
                    spaces.pop()
                elif (defined := TYPE.match(line)) and "" not in spaces:
                    places["::".join([*spaces, defined[1]])].append(f"{path}:{number}")
    return [(name, where) for name, where in sorted(places.items()) if len(where) > 1]


def levels(folder: str):
    return {room: level for level, rooms in enumerate(ROOMS[folder]) for room in rooms}


def faults():
    for folder in ROOMS:
        level = levels(folder)
        for file, path in sources(folder):
            room = room_of(path)
            if room not in level:
                yield f"{path}: {folder}/ has no room {room!r}; add it to ROOMS in scripts/check_layers.py"
                continue
            for number, mark, included in includes(file):
                name, where = library(included), f"{path}:{number}"
                if name == folder:
                    other = room_of(included)
                    if other != room and level.get(other, len(level)) >= level[room]:
                        yield f"{where}: {folder}/{room} may not include {folder}/{other} (rooms: scripts/check_layers.py --map)"
                elif mark == '"' and name not in ROOMS:
                    yield f'{where}: write "{folder}/{included}", or <...> if it is not ours'
                elif name not in LIBRARIES[folder] and name not in FOLDERS[folder]:
                    yield f"{where}: {folder}/ may not include {included} (allowed: {', '.join(FOLDERS[folder] + sorted(LIBRARIES[folder]))})"
                elif path.endswith((".cu", ".cuh")) and name != "cuda":
                    yield f"{where}: nvcc compiles no LibTorch; move it to a .cpp file of exec/fused"
                elif folder == "shared" and name in {"pcre2", "utf8proc"} and not (room == "tokenizer" and path.endswith(".cpp")):
                    yield f"{where}: in shared/, only tokenizer/*.cpp may include {included}"
                elif folder == "shared" and name == "nlohmann" and not path.endswith(("_json.cpp", "/json_pch.h", "/json_node.h")) \
                        and not (path.endswith("_json.h") and included == "nlohmann/json_fwd.hpp"):
                    yield f"{where}: in shared/, JSON belongs into *_json.cpp"
        readme = ROOT / folder / "README.md"
        if with_map(readme.read_text(), folder) != readme.read_text():
            yield f"{folder}/README.md: its map of rooms is out of date; run scripts/check_layers.py --write"


    for where, path, folder in references():
        if not exists(path, folder):
            yield f"{where}: {path} does not exist"
    for name, where in types_of_one_name():
        yield f"{where[0]}: {name} is also the name of another type, in {', '.join(where[1:])}"
    for where in foreign_types():
        yield f"{where}: types of SimGrid belong into sim/simgrid/, those of torch into exec/"


def room_map(folder: str) -> str:
    arrows = collections.defaultdict(set)
    for file, path in sources(folder):
        room = room_of(path)
        for _, _, included in includes(file):
            if library(included) == folder and room_of(included) != room:
                arrows[room].add(room_of(included))
    lines = ["| room | what | includes |", "|---|---|---|"]
    for rooms in ROOMS[folder]:
        for room, what in rooms.items():
            below = [r for level in ROOMS[folder] for r in level if r in arrows[room] and r]
            lines.append(f"| {f'`{room}/`' if room else 'here'} | {what} | {' '.join(below)} |")
    return "\n".join(lines) + "\n"


def with_map(readme: str, folder: str) -> str:
    """The README with the current map between its two marks."""
    if BEGIN not in readme or END not in readme:
        return readme + BEGIN + END  # differs from the README: --write does not know the place
    head, rest = readme.split(BEGIN, 1)
    return head + BEGIN + room_map(folder) + END + rest.split(END, 1)[1]


def main(arguments):
    if arguments == ["--map"]:
        for folder in ROOMS:
            print(f"{folder}/\n{room_map(folder)}")
    elif arguments == ["--write"]:
        for folder in ROOMS:
            readme = ROOT / folder / "README.md"
            readme.write_text(with_map(readme.read_text(), folder))
    elif arguments:
        print(__doc__)
        return 0 if arguments in (["--help"], ["-h"]) else 2
    else:
        found = list(faults())
        print("\n".join(found) or "layers: clean")
        return int(bool(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Checks that folders and rooms include only what they may, and that the READMEs show the map below.

check_layers.py           exit 1 and one line per fault
check_layers.py --map     prints the map: room, what it is for, which rooms it includes
check_layers.py --write   puts the map into the READMEs (between the lines "<!-- rooms -->" and "<!-- end of rooms -->")

Folders: shared <- nothing of ours; traces <- shared; sim <- shared, traces; exec <- shared, traces.
Rooms of a folder stand in order below: a file may include its own room's files and those of rooms of earlier levels,
never of its own level's other rooms. "" is the folder itself.
"""
import collections
import pathlib
import re
import sys

LIBRARIES = {  # folder -> what its files may include besides our folders and the standard library
    "shared": {"nlohmann"},  # in *_json.cpp only
    "traces": {"Eigen", "nlohmann", "zlib"},
    "sim": {"simgrid", "xbt", "cxxopts", "nlohmann"},
    "exec": {"torch", "ATen", "c10", "gloo", "png", "cuda", "nccl", "cxxopts", "nlohmann"},
}
FOLDERS = {"shared": ["shared"], "traces": ["shared", "traces"], "sim": ["shared", "traces", "sim"],
           "exec": ["shared", "traces", "exec"]}
ROOMS = {  # folder -> levels of rooms, lowest first
    "shared": [
        {"": "units, ids, number formats, the three kinds of trouble, random numbers, statistics, patience"},
        {"text": "quantities with units, forms of JSON values, strict JSON"},
        {"files": "this machine's files: read whole, with limits; written whole or not at all, to outlive a crash"},
        {"schedule": "pipeline schedules, one row each: which stage stands where, in which order a rank takes its turns"},
        {"planner": "planners: who works on what, in which order, per step; over numbers alone"},
        {"model": "modules and edges, layouts, presets, Hugging Face configs"},
        {"layers": "what a layer holds, computes, keeps and says to other ranks: parameters, kernels, tapes, rows"},
        {"hardware": "clusters, devices, hardware profiles and how sure they are, software stacks, what a transfer crosses",
         "goal": "what is best: objectives, what may be changed for them, failures and money of long runs"},
        {"scenario": "what a person writes: scenario, data; its form, reader, schema, checks"},
        {"program": "the Program, what its works hold, its proof (verify), its graph (compile), memory over time"},
        {"cost": "prices of ops, the estimate, model FLOPs",
         "plan": "legality, stages on ranks, who works on what in which order, lowering"},
        {"chance": "intervals, what lies outside the known, jitter"},
        {"screen": "a layout's memory and time in closed form, from below; stages split by seconds"},
        {"search": "what may be chosen: spaces, the most promising of them, neighbours"},
    ],
    "traces": [
        {"import": "what other tools print or record, as values",
         "kineto": "traces of PyTorch's profiler: read, kernels classed, every moment accounted for"},
        {"format": "trace files, written and read"},
        {"compare": "when an op is at work; two Timelines side by side"},
        {"evidence": "what was measured of a step, wherever it came from: run folders, trace files"},
        {"calibrate": "features, fits, machine records, certainty",
         "chakra": "a played step as execution traces, for others' simulators",
         "replay": "a measured step as durations for a Program, also where something has changed; critical paths"},
        {"kernels": "a profiler's kernels as a graph that can be played, also where something has changed"},
        {"report": "pictures and the HTML page"},
    ],
    "sim": [
        {"runner": "SimGrid: platform, player, one engine in one forked child; worker processes"},
        {"prediction": "one layout, one batch: Program, Timeline, memory; its figures, effects of errors, jitter, what would fit"},
        {"sweep": "which layout: candidates screened, estimated, climbed from, simulated; goals; what is sure of it"},
        {"answers": "what a question gets, as values with a JSON writer each: a step, a sweep, a stream of batches, a comparison, a what-if, a why"},
        {"published": "published measurements, each predicted and judged",
         "evidence": "step times, logs and peaks of runs elsewhere: read, and what they say of a profile; a running job beside its prediction",
         "console": "the terminal and the machine: tables, progress, signals, free memory",
         "datasets": "data sets as they lie on disk, counted: pictures by their headers, sounds, text"},
        {"schedules": "schedules side by side over times of stages alone, each at its best setting",
         "replay": "a measured run played again, and with something changed: both steps, what explains the difference"},
        {"shown": "answers as people read them, tables, CSV, pages; failures in words and JSON"},
        {"launching": "a run's ranks: started, listened to, stopped"},
        {"commands": "the `polyphony` command: options, files, printing; one file a verb"},
    ],
    "exec": [
        {"": "what every room includes: LibTorch's precompiled header, the input of a work item"},
        {"system": "this process: who am I, cores, signals that stop it"},
        {"transport": "the communicator's contract; ranks as threads of one process"},
        {"network": "ranks as processes: Gloo, NCCL, direct links, the store, who is lost; devices"},
        {"cuda": "fused kernels: bodies for nvcc and the C++ compiler, their loops, operations of tensors made of them"},
        {"parameters": "initial values, what a rank holds of them, AdamW"},
        {"autograd": "weight-bearing functions with queued weight gradients, rows of sequence parallelism"},
        {"attention": "attention over packed rows, rotary positions, windows, context parallelism"},
        {"layers": "the layers of every module kind; chunks made of them"},
        {"data": "samples, data sets, packing without padding"},
        {"runner": "a Program's ops in their order on one rank"},
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


def library(path: str) -> str:
    """The library that an included path belongs to: its first folder, or the file's bare name."""
    first = path.split("/")[0]
    name = first if "/" in path else re.sub(r"(\.h|\.hpp)$", "", first)
    return "cuda" if name.startswith("cuda") or name == "nvtx3" else name


def room_of(path: str) -> str:
    """"layers" of "shared/layers/rows.h"."""
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
                    yield f"{where}: nvcc compiles no LibTorch; that belongs into a .cpp file beside it"
                elif folder == "shared" and name == "nlohmann" and not path.endswith("_json.cpp"):
                    yield f"{where}: in shared/, JSON belongs into *_json.cpp"
        readme = ROOT / folder / "README.md"
        if with_map(readme.read_text(), folder) != readme.read_text():
            yield f"{folder}/README.md: its map of rooms is out of date; run scripts/check_layers.py --write"


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
    """The README with today's map between its two marks."""
    if BEGIN not in readme or END not in readme:
        return readme + BEGIN + END  # differs: --write cannot know where it belongs
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

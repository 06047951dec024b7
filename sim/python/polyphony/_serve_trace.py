"""What a page draws of a predicted step: few ranks, and ops that are shorter than a pixel joined."""
from __future__ import annotations

import json
import pathlib
import re
from typing import Any, Iterator, Mapping

_RANKS = 12
_SPANS = 6000
_POINTS = 500  # Of one rank's memory.
_PID = re.compile(r'"pid": (\d+)')

# module, phase, microbatch, start and end in seconds
Span = tuple[str, str, int, float, float]


def _shown(plan: Mapping[str, Any]) -> set[int]:
    """Returns the ranks to draw: all of a few, else the first rank of each set of ranks that has a stage."""
    total = int(plan.get("program", {}).get("ranks", 0))
    if 0 < total <= 8:
        return set(range(total))
    first = dict.fromkeys(int(match[0]) for stage in plan.get("stages", []) if (match := re.match(r"\d+", stage["ranks"])))
    return set(list(first)[:_RANKS]) or {0}


def _events(path: pathlib.Path, ranks: set[int]) -> Iterator[dict[str, Any]]:
    """Yields the trace's events of some ranks. The file has an event a line, and may be too large to be read as a whole."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            pid = _PID.search(line)
            if pid and int(pid[1]) - 1 in ranks:
                yield json.loads(line.rstrip().rstrip(","))


def _joined(spans: list[Span], gap: float, by_microbatch: bool) -> list[Span]:
    """Returns the spans with neighbors of the same kind as one, and what is shorter than the gap left out."""
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last and last[:2] == span[:2] and (not by_microbatch or last[2] == span[2]) and span[3] - last[4] <= gap:
            joined[-1] = (*last[:2], last[2] if last[2] == span[2] else -1, last[3], span[4])
        elif span[4] - span[3] >= gap / 4 or gap == 0:
            joined.append(span)
    return joined


def _memory(points: list[tuple[float, int]], step: float) -> dict[str, list[float]]:
    """Returns memory over time with the largest value of each interval, so that peaks stay."""
    if len(points) > _POINTS:
        largest: dict[int, tuple[float, int]] = {}
        for time, size in points:
            interval = int(time / step * _POINTS) if step else 0
            if interval not in largest or size > largest[interval][1]:
                largest[interval] = (time, size)
        points = list(largest.values())
    return {"seconds": [time for time, _ in points], "bytes": [size for _, size in points]}


def drawn(path: pathlib.Path, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what is drawn of a Chrome trace that `polyphony simulate --trace` has written."""
    streams: dict[tuple[int, int], str] = {}
    spans: dict[int, list[Span]] = {}
    memory: dict[int, list[tuple[float, int]]] = {}
    step = 0.0
    for event in _events(path, _shown(plan)):
        rank, kind = int(event["pid"]) - 1, event["ph"]
        if kind == "M" and event["name"] == "thread_name":
            streams[event["pid"], event["tid"]] = event["args"]["name"]
        elif kind == "X" and streams.get((event["pid"], event["tid"])) == "compute":
            about, start = event["args"], event["ts"] * 1e-6
            end = start + event["dur"] * 1e-6
            spans.setdefault(rank, []).append((about.get("module", ""), about.get("phase", ""), about.get("work", -1), start, end))
            step = max(step, end)
        elif kind == "C" and event["name"] == "memory":
            memory.setdefault(rank, []).append((event["ts"] * 1e-6, event["args"]["bytes"]))
    for each in spans.values():
        each.sort(key=lambda span: span[3])
    gap, by_microbatch = 0.0, True
    shown = {rank: _joined(each, step * 1e-6, True) for rank, each in spans.items()}
    while sum(map(len, shown.values())) > _SPANS and gap < step / 20:
        gap, by_microbatch = (gap * 2 or step / 4000), False
        shown = {rank: _joined(each, gap, by_microbatch) for rank, each in spans.items()}
    kinds: dict[tuple[str, str], dict[str, Any]] = {}
    for rank in sorted(shown):
        for module, phase, work, start, end in shown[rank]:
            kind_of = kinds.setdefault((module, phase), {"module": module, "phase": phase, "rank": [], "start": [], "seconds": [], "microbatch": []})
            for key, value in (("rank", rank), ("start", start), ("seconds", end - start), ("microbatch", work)):
                kind_of[key].append(value)
    return {"ranks": sorted(shown), "resolution_seconds": gap, "kinds": list(kinds.values()),
            "memory": [{"rank": rank, **_memory(memory[rank], step)} for rank in sorted(memory)]}

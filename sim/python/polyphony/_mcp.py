"""The command's questions as tools of the Model Context Protocol: `polyphony mcp` (needs the package mcp)."""
from __future__ import annotations

import collections
import functools
import itertools
import json
import pathlib
import subprocess
from typing import Any, Callable, TypeVar, Union

import anyio.from_thread
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError

import polyphony as pp

from ._command import program
from ._values import Answer, encode

T = TypeVar("T")
ScenarioValue = Union[str, "dict[str, Any]"]
_KEPT = 64  # Answers whose whole is still there to be read.
_COMMANDS = ("scenario", "sweep", "ask", "simulate", "plan", "why", "emit")

server = MCPServer("polyphony", instructions=(pathlib.Path(__file__).parent / "for_agents.md").read_text(encoding="utf-8"))
_answers: collections.OrderedDict[str, str] = collections.OrderedDict()
_numbers = itertools.count(1)


def _keep(answer: Answer) -> str:
    number = str(next(_numbers))
    _answers[number] = answer.to_json()
    while len(_answers) > _KEPT:
        _answers.popitem(last=False)
    return f"polyphony://answers/{number}"


@server.resource("polyphony://answers/{number}", mime_type="application/json")
def answer(number: str) -> str:
    """The whole answer of a tool, as the command prints it with --format json."""
    if number not in _answers:
        raise ResourceNotFoundError(f"answer {number} is not kept: the last {_KEPT} are")
    return _answers[number]


@server.resource("polyphony://schema/{command}", mime_type="application/json")
def schema(command: str) -> str:
    """The JSON Schema of a command's answer, or of scenario files."""
    if command not in _COMMANDS:
        raise ResourceNotFoundError(f"there is no schema {command}: {', '.join(_COMMANDS)}")
    return _schema(command)


@functools.lru_cache(maxsize=None)
def _schema(command: str) -> str:
    return subprocess.run([program(), "schema", command], check=True, capture_output=True, text=True).stdout


async def _asked(context: Context[Any, Any], question: Callable[[Callable[[int, str], None]], T]) -> T:
    """Runs a question in a thread, and reports its progress."""

    def tell(percent: int, words: str) -> None:
        anyio.from_thread.run(context.report_progress, float(percent), 100.0, words)

    try:
        return await anyio.to_thread.run_sync(question, tell)
    except pp.PolyphonyError as error:
        raise ToolError(str(error)) from error


def _scenario(value: ScenarioValue, layout: dict[str, Any] | None = None) -> pp.Scenario:
    q = pp.load(value) if isinstance(value, str) else pp.scenario(value)
    return q.with_layout(layout) if layout else q


def _search(found: pp.answers.Search, top: int) -> dict[str, Any]:
    def row(number: int) -> dict[str, Any]:
        one = found.ranked[number]
        return {"row": number + 1, "layout": one.words, "step_seconds": one.step_seconds, "interval90_seconds": list(one.interval90_seconds or ()),
                "peak_memory_bytes": one.peak_memory_bytes, "mfu": one.mfu, "tied": one.tied, "layout_form": encode(one.layout_form)}

    numbers = list(dict.fromkeys([*range(min(top, len(found.ranked))), found.simplest]))
    return {"full_answer": _keep(found), "question": found.question.to_dict() if found.question else None, "assumed": list(found.assumed or ()),
            "footing": found.footing, "tied": found.tied, "simplest_row": found.simplest + 1, "stopped": found.stopped,
            "rows": [row(number) for number in numbers if number < len(found.ranked)], "rows_in_all": len(found.ranked), "notes": list(found.notes)}


@server.tool()
async def ask(context: Context[Any, Any], model: list[str], gpus: str, seq: str | None = None, images: str | None = None,
              global_batch: str | None = None, train: str | None = None, precision: str | None = None, for_framework: str | None = None,
              top: int = 3) -> dict[str, Any]:
    """Searches for the fastest layout of a model on GPUs, without a scenario file.

    model: config.json files or presets, one, or an encoder and a language model. gpus: 64x8xH100, 8xH100, ?xH100. seq: tokens of a
    sequence, 8k when absent. images: images of a sample, 8, 8x1024 (patches), 8x448px. train: modules that are trained,
    projector,lora:language. for_framework: megatron-lm, megatron-bridge, torchtitan, ms-swift. top: rows of the answer.
    """
    found = await _asked(context, lambda tell: pp.ask(model, gpus, seq=seq, images=images, global_batch=global_batch, train=train,
                                                      precision=precision, for_=for_framework, progress=tell))
    return {**_search(found, top), "scenario": encode(found.scenario)}


@server.tool()
async def sweep(context: Context[Any, Any], scenario: ScenarioValue, for_framework: str | None = None, effort: float | None = None,
                top: int = 3) -> dict[str, Any]:
    """Searches for the fastest layout of a scenario: the path of a file, or its values. effort: 2 is twice the work."""
    return _search(await _asked(context, lambda tell: _scenario(scenario).sweep(for_=for_framework, effort=effort, progress=tell)), top)


@server.tool()
async def simulate(context: Context[Any, Any], scenario: ScenarioValue, layout: dict[str, Any] | None = None,
                   changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """Predicts one training step: its time with a 90 % interval, where the time goes, memory.

    layout: a layout_form of a search, instead of the scenario's. changes: paths and values, {"cluster.nic": "100Gbps"}: the answer
    then also has the step as it was (`unchanged`).
    """
    return (await _asked(context, lambda tell: _scenario(scenario, layout).simulate(set=changes))).to_dict()


@server.tool()
async def why(context: Context[Any, Any], scenario: ScenarioValue, layout: dict[str, Any] | None = None,
              for_framework: str | None = None) -> dict[str, Any]:
    """Says where the time of a layout goes, and which single changes of it are worth trying."""
    return (await _asked(context, lambda tell: _scenario(scenario, layout).why(for_=for_framework))).to_dict()


@server.tool()
async def plan(context: Context[Any, Any], scenario: ScenarioValue, layout: dict[str, Any] | None = None) -> dict[str, Any]:
    """Checks a layout, and lists its pipeline stages: ranks, layers, times, memory."""
    return (await _asked(context, lambda tell: _scenario(scenario, layout).plan())).to_dict()


@server.tool()
async def emit(context: Context[Any, Any], scenario: ScenarioValue, framework: str, folder: str,
               layout: dict[str, Any] | None = None) -> dict[str, Any]:
    """Writes a layout as the launch files of a framework into a folder: megatron-lm, megatron-bridge, torchtitan, ms-swift."""
    return (await _asked(context, lambda tell: _scenario(scenario, layout).emit(framework, folder))).to_dict()


@server.tool()
def explain(key: str) -> dict[str, Any]:
    """Says what a key of a scenario or of an answer means, and its unit."""
    meanings: dict[str, set[str]] = {}

    def look(value: Any, command: str) -> None:
        if isinstance(value, dict):
            properties = value.get("properties")
            described = properties.get(key) if isinstance(properties, dict) else None
            if isinstance(described, dict) and described.get("description"):
                meanings.setdefault(command, set()).add(described["description"])
            for each in value.values():
                look(each, command)
        elif isinstance(value, list):
            for each in value:
                look(each, command)

    for command in _COMMANDS:
        look(json.loads(_schema(command)), command)
    if not meanings:
        raise ToolError(f"there is no key {key} in scenarios and answers; the resource polyphony://schema/scenario lists the keys of scenarios")
    return {command: sorted(each) for command, each in meanings.items()}


def serve() -> None:
    """Serves the tools over standard input and output, until the input ends."""
    server.run("stdio")

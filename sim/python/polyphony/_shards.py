"""Searches in parts, by the workers of any concurrent.futures.Executor."""
from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import os
import queue
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ._command import log
from ._errors import InfeasibleError, InputError

if TYPE_CHECKING:
    from ._scenario import Scenario


_AHEAD = 2  # parts handed out for each worker, so that it never waits for the next one


def search_part(scenario: Scenario, settings: Mapping[str, Any], part: int, parts: int) -> str:
    """Searches one of several parts of a space, from 1, and returns its journal. Runs in a worker."""
    with tempfile.TemporaryDirectory(prefix="polyphony-") as folder:
        journal = os.path.join(folder, "journal")
        with contextlib.suppress(InfeasibleError):  # Nothing in this part fits.
            scenario._run("sweep", {"jobs": 1, **settings, "shard": f"{part}/{parts}", "journal": journal}, progress=False)
        with open(journal, encoding="utf-8") as file:
            return file.read()


def _workers(executor: concurrent.futures.Executor) -> int:
    """Returns how many calls the executor runs at the same time; this machine's cores if it does not tell."""
    for name in ("_max_workers", "num_workers"):  # of concurrent.futures and RayExecutor; of mpi4py
        if count := getattr(executor, name, None):
            return int(count)
    client = getattr(executor, "_client", None)  # of Dask
    return max(1, sum(client.nthreads().values())) if client is not None else os.cpu_count() or 1


def each_part(submit: Callable[[int], concurrent.futures.Future[str]], count: int,
              done: Callable[[int, concurrent.futures.Future[str]], None], ahead: int) -> None:
    """Has parts 1 to `count` searched, and calls `done` with each part and its future as they end, in the caller's thread.

    At most `ahead` parts are submitted and not done, so that memory does not grow with `count`. If the
    executor takes no more parts, those that it has are waited for. If `done` raises, the parts that have
    not begun are cancelled.
    """
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()
    open_parts: dict[int, concurrent.futures.Future[str]] = {}
    next_part = 1
    try:
        while open_parts or next_part <= count:
            while next_part <= count and len(open_parts) < ahead:
                try:
                    future = submit(next_part)
                except (concurrent.futures.BrokenExecutor, RuntimeError) as error:
                    log.warning("%s: the rest is searched here", error)
                    next_part = count + 1
                    break
                open_parts[next_part] = future
                future.add_done_callback(functools.partial(_end, ended, next_part))
                next_part += 1
            if open_parts:
                part = ended.get()
                done(part, open_parts.pop(part))
    finally:
        for future in open_parts.values():
            future.cancel()


def _end(ended: queue.SimpleQueue[int], part: int, _: object) -> None:
    ended.put(part)


def write_journal(scenario: Scenario, settings: Mapping[str, Any], executor: concurrent.futures.Executor, parts: int | None,
                  folder: str) -> str | None:
    """Has a space searched in parts, writes the answers of all parts into one journal, and returns its path.

    A part whose worker dies is missing from the journal, and so is one whose worker answers another
    question than most do: it has another version of the package, or other files. The journal's reader
    then searches these parts. None: no part has answers.

    Raises
    ------
    InputError
        As the search states it, or if there are fewer than one part.
    """
    workers = _workers(executor)
    count = parts if parts is not None else 2 * workers
    if count < 1:
        raise InputError(f"a search has at least one part (got {count})", file="parts", fix="leave parts out")
    journals: dict[str, list[int]] = {}  # by first line, which identifies the question: the parts

    def path(question: str) -> str:
        return os.path.join(folder, f"parts-{list(journals).index(question)}")

    def write(part: int, future: concurrent.futures.Future[str]) -> None:
        try:
            question, answers = future.result().split("\n", 1)
        except InputError:
            raise
        except Exception as error:  # Whatever a worker dies of.
            log.warning("part %d of %d: %s: it is searched here", part, count, error)
            return
        known = journals.setdefault(question, [])
        with open(path(question), "a", encoding="utf-8") as file:
            file.write(answers if known else f"{question}\n{answers}")
        known.append(part)

    each_part(lambda part: executor.submit(search_part, scenario, settings, part, count), count, write, _AHEAD * workers)
    if not journals:
        return None
    most = max(journals, key=lambda question: len(journals[question]))
    for question, of in journals.items():
        if question != most:
            log.warning("parts %s of %d: their workers have another version of polyphony, or other files: they are searched here",
                        ", ".join(map(str, sorted(of))), count)
    return path(most)

"""Searches in parts, by the workers of any concurrent.futures.Executor."""
from __future__ import annotations

import concurrent.futures
import contextlib
import os
import tempfile
from typing import TYPE_CHECKING, Any, Mapping

from ._command import log
from ._errors import InfeasibleError, InputError

if TYPE_CHECKING:
    from ._scenario import Scenario


def search_part(scenario: Scenario, settings: Mapping[str, Any], part: int, parts: int) -> str:
    """Searches one of several parts of a space, from 1, and returns its journal. Runs in a worker."""
    with tempfile.TemporaryDirectory(prefix="polyphony-") as folder:
        journal = os.path.join(folder, "journal")
        with contextlib.suppress(InfeasibleError):  # Nothing in this part fits.
            scenario._run("sweep", {"jobs": 1, **settings, "shard": f"{part}/{parts}", "journal": journal}, progress=False)
        with open(journal, encoding="utf-8") as file:
            return file.read()


def journals(scenario: Scenario, settings: Mapping[str, Any], executor: concurrent.futures.Executor, parts: int | None,
             folder: str) -> list[str]:
    """Has a space searched in parts, and returns the files of the journals.

    A part whose worker dies is missing from the journals, and is then searched by their reader.

    Raises
    ------
    InputError
        As the search states it, or if there are fewer than one part.
    """
    count = parts if parts is not None else 2 * int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
    if count < 1:
        raise InputError(f"a search has at least one part (got {count})", file="parts", fix="leave parts out")
    files: list[str] = []
    futures: list[concurrent.futures.Future[str]] = []
    try:
        for part in range(1, count + 1):
            futures.append(executor.submit(search_part, scenario, settings, part, count))
    except (concurrent.futures.BrokenExecutor, RuntimeError) as error:
        log.warning("%s: the rest is searched here", error)
    try:
        for number, future in enumerate(futures):
            try:
                text = future.result()
            except InputError:
                raise
            except Exception as error:  # Whatever a worker dies of.
                log.warning("part %d of %d: %s: it is searched here", number + 1, count, error)
                continue
            files.append(os.path.join(folder, f"part-{number + 1}"))
            with open(files[-1], "w", encoding="utf-8") as file:
                file.write(text)
    finally:
        for future in futures:
            future.cancel()
    return files

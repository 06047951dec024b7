"""The searches of `polyphony serve`: processes of the command, one search at a time, further ones in a queue."""
from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import secrets
import shutil
import signal
import tempfile
from typing import Any, Callable, Sequence

from ._command import _PROGRESS, _reason, program

_WAITING = 8  # Searches in the queue.
_KEPT = 32  # Searches whose answers are still there to be read.
_QUESTIONS = 2  # Short questions that run at the same time, next to a search.
_QUEUED_QUESTIONS = 32
_GRACE_SECONDS = 5.0  # For a search that was stopped to print the best so far.
_SAVED = "the question, as a scenario"
# The first pass, whose rows are shown while the second one goes on from its journal.
_ROUGH = ["--estimate", "--effort=0.02"]


class Refused(Exception):
    """Is raised if a request is not answered: an HTTP status, and what is wrong, in the form of the command's errors."""

    def __init__(self, status: int, what: str, fix: str = "", file: str = "", pointer: str = "") -> None:
        super().__init__(what)
        self.status = status
        self.error = {"file": file, "pointer": pointer, "what": what, "fix": fix}


@dataclasses.dataclass
class Done:
    """Holds what a process of the command has printed."""

    code: int
    answer: Any
    talk: list[str]

    def value(self) -> Any:
        """Returns the answer. Raises Refused if the command has stated an error."""
        error = self.answer.get("error") if isinstance(self.answer, dict) else None
        if error is not None:
            error = {key: error.get(key, "") for key in ("what", "fix", "file", "pointer")}
            raise Refused({2: 400, 3: 422}.get(self.code, 500), **error)
        if self.answer is None:
            raise Refused(500, "; ".join(self.talk) or f"the command ended with code {self.code}", "run it in a terminal")
        return self.answer


class Commands:
    """Runs processes of the command, and ends them all with the server."""

    def __init__(self) -> None:
        self._running: set[asyncio.subprocess.Process] = set()
        self._free = asyncio.Semaphore(_QUESTIONS)
        self._asked = 0

    @contextlib.asynccontextmanager
    async def _process(self, words: Sequence[str], folder: pathlib.Path) -> Any:
        # A session of its own: Ctrl-C on a terminal reaches the server alone, which then ends what it has started.
        process = await asyncio.create_subprocess_exec(
            program(), *words, "--format=json", cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, start_new_session=True, limit=2**20)
        self._running.add(process)
        try:
            yield process
        finally:
            self._kill(process)
            await process.wait()
            self._running.discard(process)

    @staticmethod
    def _kill(process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    async def run(self, words: Sequence[str], folder: pathlib.Path, tell: Callable[[str], None] = lambda line: None,
                  started: Callable[[asyncio.subprocess.Process], None] = lambda process: None) -> Done:
        """Runs a command in a folder, and tells the lines of its standard error as they come."""
        talk: list[str] = []

        async def listen(stream: asyncio.StreamReader) -> None:
            async for line in stream:
                talk.append(line.decode(errors="replace").rstrip())
                tell(talk[-1])

        async with self._process(words, folder) as process:
            started(process)
            text, _ = await asyncio.gather(process.stdout.read(), listen(process.stderr))
            code = await process.wait()
        try:
            return Done(code, json.loads(text) if text.strip() else None, talk)
        except ValueError:
            return Done(code, None, talk)

    async def question(self, words: Sequence[str], folder: pathlib.Path, seconds: float = 120) -> Done:
        """Runs a short command, a few at a time. Raises Refused if too many wait, or if it takes too long."""
        if self._asked >= _QUEUED_QUESTIONS:
            raise Refused(503, "too many questions are waiting", "try again in a few seconds")
        self._asked += 1
        try:
            async with self._free:
                return await asyncio.wait_for(self.run(words, folder), seconds)
        except asyncio.TimeoutError:
            raise Refused(504, f"{words[0]} took longer than {seconds:g} s, and was ended", "ask this in a terminal") from None
        finally:
            self._asked -= 1

    async def scenario_of(self, words: Sequence[str], folder: pathlib.Path) -> dict[str, Any]:
        """Returns the scenario of a question, without the search: the process is ended as soon as it has written it."""
        async with self._free, self._process([*words, *_ROUGH, "--jobs=1", "--save=question.json"], folder) as process:
            with contextlib.suppress(asyncio.TimeoutError):
                while line := await asyncio.wait_for(process.stderr.readline(), 20):
                    if line.decode(errors="replace").rstrip().endswith(_SAVED):
                        scenario: dict[str, Any] = json.loads((folder / "question.json").read_text(encoding="utf-8"))
                        return scenario
            text = await process.stdout.read()
            code = await process.wait()
        Done(code, json.loads(text) if text.strip() else None, []).value()
        raise Refused(500, "the question gave no scenario", "run polyphony ask in a terminal")

    def end(self) -> None:
        """Ends all processes."""
        for process in self._running:
            self._kill(process)


@dataclasses.dataclass
class Job:
    """Holds a search: what was asked, how far it is, and its answer so far."""

    id: str
    question: dict[str, Any]
    words: list[str]
    folder: pathlib.Path
    # waiting, rough (the first pass), searching, done, stopped, failed
    state: str = "waiting"
    percent: int = 0
    progress: str = ""
    answer: Any = None
    answers: int = 0  # Grows with every answer that replaces another one.
    error: dict[str, Any] | None = None
    process: asyncio.subprocess.Process | None = None
    stopping: bool = False

    @property
    def ended(self) -> bool:
        return self.state in ("done", "stopped", "failed")


class Jobs:
    """Holds the searches, and runs them one after the other."""

    def __init__(self, commands: Commands) -> None:
        self.commands = commands
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="polyphony-serve-"))
        self._jobs: collections.OrderedDict[str, Job] = collections.OrderedDict()
        self._queue: collections.deque[Job] = collections.deque()
        self._wake = asyncio.Event()

    def close(self) -> None:
        """Ends all processes and deletes all files."""
        self.commands.end()
        shutil.rmtree(self.home, ignore_errors=True)

    @contextlib.contextmanager
    def folder(self) -> Any:
        """Yields a folder for one question."""
        with tempfile.TemporaryDirectory(dir=self.home, ignore_cleanup_errors=True) as folder:
            yield pathlib.Path(folder)

    def add(self, question: dict[str, Any], write: Callable[[pathlib.Path], list[str]]) -> Job:
        """Queues a search. `write` writes its files to a folder and returns the words of `polyphony ask`."""
        if len(self._queue) >= _WAITING:
            raise Refused(429, f"{_WAITING} searches are waiting already", "wait until one has ended, or stop one")
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.home))
        try:
            job = Job(secrets.token_urlsafe(9), question, write(folder), folder)
        except Refused:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._jobs[job.id] = job
        for old in [each for each in self._jobs.values() if each.ended][:max(0, len(self._jobs) - _KEPT)]:
            del self._jobs[old.id]
        self._queue.append(job)
        self._wake.set()
        return job

    def find(self, id: str) -> Job:
        """Returns a search. Raises Refused if it is not kept."""
        if id not in self._jobs:
            raise Refused(404, "this search is not kept any more", f"search again: the server keeps the last {_KEPT} searches until it ends")
        return self._jobs[id]

    def status(self, job: Job) -> dict[str, Any]:
        """Returns how far a search is."""
        ahead = 0
        if job.state == "waiting":
            running = any(each.state in ("rough", "searching") for each in self._jobs.values())
            ahead = (self._queue.index(job) if job in self._queue else 0) + running
        return {"id": job.id, "state": job.state, "ahead": ahead, "percent": job.percent, "progress": job.progress, "answers": job.answers,
                "error": job.error, "question": job.question, "stopping": job.stopping}

    async def stop(self, job: Job) -> None:
        """Stops a search, which then answers with the best layouts so far."""
        if job.ended or job.stopping:
            return
        job.stopping = True
        if job.state == "waiting":
            with contextlib.suppress(ValueError):
                self._queue.remove(job)
            self._end(job, "stopped")
        elif process := job.process:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            for _ in range(int(_GRACE_SECONDS / 0.1)):
                await asyncio.sleep(0.1)
                if process.returncode is not None:
                    return
            Commands._kill(process)

    async def work(self) -> None:
        """Runs the searches of the queue, for as long as the server runs."""
        while True:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
            job = self._queue.popleft()
            try:
                await self._search(job)
            except Refused as refused:
                job.error = refused.error
                self._end(job, "failed")
            except OSError as error:
                job.error = Refused(500, f"the search could not run: {error}", "see whether the disk is full").error
                self._end(job, "failed")

    @staticmethod
    def _end(job: Job, state: str) -> None:
        job.state = state
        shutil.rmtree(job.folder, ignore_errors=True)

    async def _search(self, job: Job) -> None:
        job.state = "rough"
        effort = [] if job.question.get("thorough") else ["--effort=0.2"]
        target = [word for word in job.words if word.startswith("--for=")]
        first = await self._pass(job, [*job.words, *_ROUGH, "--journal=journal", "--save=question.json"])
        # What only `ask` states.
        asked = {key: first.answer[key] for key in ("assumed", "question", "scenario") if isinstance(first.answer, dict) and key in first.answer}
        if not job.stopping:
            if first.code not in (0, 3):
                first.value()
            self._take(job, first, {**asked, "rough": True})
            if not (job.folder / "question.json").exists():
                first.value()
            asked.setdefault("scenario", json.loads((job.folder / "question.json").read_text(encoding="utf-8")))
            job.state = "searching"
            last = await self._pass(job, ["sweep", "question.json", *effort, *target, "--journal=journal"])
        else:
            last = first
        found = self._take(job, last, asked)
        if job.stopping:
            return self._end(job, "stopped")
        if not found:
            last.value()
            raise Refused(422, _reason(last.answer), "more GPUs, shorter sequences, or fewer trained modules")
        self._end(job, "done")

    async def _pass(self, job: Job, words: list[str]) -> Done:
        def tell(line: str) -> None:
            if step := _PROGRESS.match(line):
                job.percent, job.progress = int(step[1]), step[2].strip(", ")

        def started(process: asyncio.subprocess.Process) -> None:
            job.process = process

        job.percent, job.progress = 0, ""
        try:
            return await self.commands.run(words, job.folder, tell, started)
        finally:
            job.process = None

    @staticmethod
    def _take(job: Job, done: Done, more: dict[str, Any]) -> bool:
        """Takes a pass's answer as the search's, if it has rows, and returns whether it has."""
        if not isinstance(done.answer, dict) or not done.answer.get("ranked"):
            return False
        job.answer = {**done.answer, **more}
        job.answers += 1
        return True

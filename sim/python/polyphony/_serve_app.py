"""The requests of `polyphony serve`: which are answered, what may be asked, and the answers of the command."""
from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import io
import json
import pathlib
import re
import zipfile
from typing import Any, AsyncIterator, Awaitable, Callable, MutableMapping

import plotly  # type: ignore[import-untyped, unused-ignore]
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from ._command import version
from ._serve_jobs import Commands, Jobs, Refused
from ._serve_trace import drawn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_LARGEST = 2**20  # Bytes of a request.
# Bytes of a request that are read, so that a client that is still sending gets the answer that it is too large.
_LARGEST_READ = 2**26
_DEEPEST = 40  # Objects within objects of a request.
_FOLDER = pathlib.Path(__file__).parent / "page"
_PLOTLY = pathlib.Path(plotly.__file__).parent / "package_data/plotly.min.js"
_FILES = {"": _FOLDER / "index.html", "page.css": _FOLDER / "page.css", "page.js": _FOLDER / "page.js", "plotly.min.js": _PLOTLY}
_FRAMEWORKS = ("megatron-lm", "megatron-bridge", "torchtitan", "ms-swift")
_PRESET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_WORD = re.compile(r"[A-Za-z0-9?][A-Za-z0-9_.,:?-]{0,80}")
_OPTIONS = ("gpus", "seq", "images", "audio", "global_batch", "train", "precision", "for")
_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:;"
                                 b" connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"), (b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"),
]


class _Guard:
    """Lets only requests pass that name this server and its token, and that are not too large."""

    def __init__(self, app: Any, token: str, hosts: set[str] | None) -> None:
        self.app, self.token, self.hosts = app, token.encode(), hosts

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        refused = self._refused(scope)
        if refused is None:
            try:
                body = await self._body(scope, receive)
            except Refused as too_large:
                refused = too_large
        if refused is not None:
            return await JSONResponse({"error": refused.error}, refused.status)(scope, receive, answered)
        sent = False

        async def again() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        scope["path"] = "/" + scope["path"].split("/", 2)[2]
        scope["raw_path"] = scope["path"].encode()
        await self._app(scope, again, answered)

    async def _app(self, scope: Message, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    def _refused(self, scope: Message) -> Refused | None:
        # A page of another site that has this machine's address for its name (DNS rebinding) names itself as the host.
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if self.hosts is not None and host not in self.hosts:
            return Refused(403, "the request names another host", "open the address that polyphony serve has printed")
        parts = scope["path"].split("/", 2)
        if len(parts) < 3 or not hmac.compare_digest(parts[1].encode(), self.token):
            return Refused(403, "the address lacks the token", "open the whole address that polyphony serve has printed")
        return None

    @staticmethod
    async def _body(scope: Message, receive: Receive) -> bytes:
        too_large = Refused(413, f"the request is larger than {_LARGEST:,} bytes", "send the config.json alone")
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        if not stated.isdigit() or int(stated) > _LARGEST_READ:
            raise too_large
        body, read = bytearray(), 0
        while True:
            message = await receive()
            read += len(message.get("body", b""))
            if read <= _LARGEST:
                body += message.get("body", b"")
            elif read > _LARGEST_READ:
                raise too_large
            if message["type"] != "http.request" or not message.get("more_body"):
                break
        if read > _LARGEST:
            raise too_large
        return bytes(body)


async def _asked(request: Request) -> dict[str, Any]:
    """Returns a request's JSON object. Raises Refused if it is none."""
    try:
        value = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the request is not JSON: {error}", "see page.js for its form") from None
    if not isinstance(value, dict):
        raise Refused(400, "the request must be a JSON object", "see page.js for its form")
    return value


def _check_paths(value: Any, pointer: str = "", depth: int = 0) -> None:
    """Raises Refused if a scenario names files outside its own folder."""
    if depth > _DEEPEST:
        raise Refused(400, "is nested too deeply", "send a scenario that the page has made", "scenario", pointer[:200])
    if isinstance(value, str) and (value.startswith(("/", "~")) or ".." in value.split("/")):
        raise Refused(400, "paths of this machine are not read from the page", "use the command in a terminal", "scenario", pointer)
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        _check_paths(each, f"{pointer}/{key}", depth + 1)


def _write_models(models: Any, folder: pathlib.Path) -> list[str]:
    """Writes the configurations to a folder, and returns what names the models for `polyphony ask`."""
    if not isinstance(models, list) or not 1 <= len(models) <= 2 or not all(isinstance(each, str) for each in models):
        raise Refused(400, "models must be one or two texts", "paste a config.json, or name a preset", "question", "/models")
    names = []
    for number, text in enumerate(models):
        name = "config.json" if number == 0 else "config-2.json"
        if _PRESET.fullmatch(text.strip()):
            name = text.strip()
        else:
            (folder / name).write_text(text, encoding="utf-8", errors="replace")
        names.append(name)
    return names


def _question(asked: dict[str, Any]) -> Callable[[pathlib.Path], list[str]]:
    """Returns a function that writes a question's files to a folder and returns the words of `polyphony ask`."""
    words = ["ask"]
    for key in asked:
        if key not in ("models", "thorough", *_OPTIONS):
            raise Refused(400, f"unknown key {key[:80]!r}", f"one of: models, thorough, {', '.join(_OPTIONS)}", "question", "/")
    for key in _OPTIONS:
        value = str(asked.get(key) or "").strip()
        if value and not _WORD.fullmatch(value):
            raise Refused(400, f"must be letters, digits and -_.,: (got {value[:80]!r})", "for example 8xH100, 8k, 8x448px", "question", f"/{key}")
        if value:
            words.append(f"--{key.replace('_', '-')}={value}")
    if asked.get("thorough"):
        words.append("--thorough")

    def write(folder: pathlib.Path) -> list[str]:
        return [*words, *(f"--model={name}" for name in _write_models(asked.get("models"), folder))]

    return write


def _scenario(asked: dict[str, Any], folder: pathlib.Path) -> list[str]:
    """Writes a request's scenario, with its layout and its configurations, and returns the names of the files."""
    scenario, layout = asked.get("scenario"), asked.get("layout")
    if not isinstance(scenario, dict) or not (layout is None or isinstance(layout, dict)):
        raise Refused(400, "scenario and layout must be JSON objects", "search first, then choose a row", "scenario")
    _check_paths([scenario, layout])
    names = [name for name in _write_models(asked["models"], folder) if (folder / name).exists()] if asked.get("models") else []
    text = json.dumps({**scenario, **({"layout": layout} if layout else {})}, indent=2)
    (folder / "scenario.json").write_text(text + "\n", encoding="utf-8")
    return ["scenario.json", *names]


def _references(gpus: int, per_node: int, batch: int) -> list[tuple[str, dict[str, Any]]]:
    """Returns usual layouts, whose memory is shown before a search."""

    def layout(**grid: Any) -> dict[str, Any]:
        tp = grid.setdefault("tp", 1)
        return {"placement": "homogeneous", "schedule": "1f1b", "microbatches": max(1, batch * tp // gpus),
                "all": {"pp": 1, "recompute": "none", "ranks": {"first": 0, "count": gpus}, **grid}}

    rows = [("ZeRO-1 over all GPUs", layout(shard="optimizer")), ("ZeRO-3 (FSDP) over all GPUs", layout(shard="full")),
            ("ZeRO-3 with full recomputation", layout(shard="full", recompute="full"))]
    if 1 < per_node <= gpus:
        rows.append((f"TP{per_node} in the node, ZeRO-1", layout(tp=per_node, sp=True, shard="optimizer")))
    return rows


class _Page:
    """Answers the requests of the page."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.ask = jobs.commands.question

    async def choices(self, request: Request) -> dict[str, Any]:
        with self.jobs.folder() as folder:
            gpus = await self.ask(["ask", "--model=llama-3.1-8b", "--gpus=8xunknown"], folder)
            models = await self.ask(["ask", "--model=unknown", "--gpus=8xH100"], folder)

        def listed(answer: Any) -> list[str]:
            fix = re.search(r"one of: ([^ ,]+(?:, [^ ,]+)*)", str(answer))
            return fix[1].split(", ") if fix else []

        return {"version": await asyncio.to_thread(version), "frameworks": _FRAMEWORKS,
                "accelerators": listed(gpus.answer), "presets": listed(models.answer)}

    async def preview(self, request: Request) -> dict[str, Any]:
        write = _question(await _asked(request))
        with self.jobs.folder() as folder:
            scenario = await self.jobs.commands.scenario_of(write(folder), folder)
            plan = (await self.ask(["plan", "question.json"], folder, 30)).value()
            resolved = (await self.ask(["plan", "question.json", "--resolved"], folder, 30)).value()
            cluster = resolved["cluster"]
            nodes, node = int(cluster["nodes"]), cluster["node"]
            per_node = int(node["ranks"]) if isinstance(node, dict) else 1
            memory = []
            for name, layout in _references(nodes * per_node, per_node, int(resolved["data"]["global_batch"])):
                (folder / "reference.json").write_text(json.dumps({**scenario, "layout": layout}), encoding="utf-8")
                try:
                    of = (await self.ask(["plan", "reference.json"], folder, 30)).value()
                    memory.append({"name": name, "memory_bytes": max(stage["memory_bytes"] for stage in of["stages"]),
                                   "device_memory_bytes": of["device_memory_bytes"]})
                except Refused as refused:
                    memory.append({"name": name, "why": refused.error["what"]})
        # Which of them a model cannot take (tied embeddings, for example) matters only if it can take none.
        memory = [each for each in memory if "why" not in each] or memory
        return {"about": scenario.get("about", ""), "modules": plan["modules"], "memory": memory, "gpus": nodes * per_node}

    async def search(self, request: Request) -> dict[str, Any]:
        asked = await _asked(request)
        return self.jobs.status(self.jobs.add(asked, _question(asked)))

    async def status(self, request: Request) -> dict[str, Any]:
        return self.jobs.status(self.jobs.find(request.path_params["id"]))

    async def answer(self, request: Request) -> Any:
        return self.jobs.find(request.path_params["id"]).answer

    async def stop(self, request: Request) -> dict[str, Any]:
        job = self.jobs.find(request.path_params["id"])
        await self.jobs.stop(job)
        return self.jobs.status(job)

    async def layout(self, request: Request) -> dict[str, Any]:
        asked = await _asked(request)
        change = asked.get("set") or ""
        if change and not (isinstance(change, str) and re.fullmatch(r"[a-z_]+(\.[a-z0-9_]+)+=[^/~]{1,200}", change)):
            raise Refused(400, "a change must be a key, = and a value", "for example layout.microbatches=32 or cluster.nic=100Gbps", "--set")
        more = [f"--set={change}"] if change else []
        with self.jobs.folder() as folder:
            _scenario(asked, folder)
            prediction = (await self.ask(["simulate", "scenario.json", "--trace=trace.json", *more], folder)).value()
            plan = (await self.ask(["plan", "scenario.json", *more], folder)).value()
            trace = folder / "trace.json"
            timeline = await asyncio.to_thread(drawn, trace, plan) if trace.exists() else None
        return {"prediction": prediction, "plan": plan, "timeline": timeline, "set": change}

    async def scenario(self, request: Request) -> dict[str, Any]:
        asked = await _asked(request)
        with self.jobs.folder() as folder:
            return _packed(folder, _scenario(asked, folder))

    async def emit(self, request: Request) -> dict[str, Any]:
        asked = await _asked(request)
        framework = str(asked.get("framework"))
        if framework not in _FRAMEWORKS:
            raise Refused(400, f"there is no framework {framework[:40]!r}", f"one of: {', '.join(_FRAMEWORKS)}", "--for")
        with self.jobs.folder() as folder:
            _scenario(asked, folder)
            done = await self.ask(["emit", "scenario.json", f"--for={framework}", "--out=launch"], folder)
            answer = done.value()
            if done.code:
                raise Refused(422, "; ".join(map(str, answer.get("cannot", []))) or f"{framework} cannot run this layout", "choose another row")
            return {**_packed(folder / "launch", [pathlib.Path(name).name for name in answer["files"]]), "notes": answer["notes"]}


def _packed(folder: pathlib.Path, names: list[str]) -> dict[str, Any]:
    """Returns files as texts, and as a ZIP archive in base64."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.write(folder / name, name)
    texts = [{"name": name, "text": (folder / name).read_text(encoding="utf-8", errors="replace")} for name in names]
    return {"files": texts, "zip": base64.b64encode(archive.getvalue()).decode()}


def _answering(handler: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    """Returns a handler that turns what goes wrong into an answer."""

    async def answer(request: Request) -> Response:
        try:
            return JSONResponse(await handler(request))
        except Refused as refused:
            return JSONResponse({"error": refused.error}, refused.status)
        except (KeyError, TypeError, ValueError, OSError, RecursionError) as error:
            return JSONResponse({"error": Refused(500, f"unexpected: {type(error).__name__}: {error}", "report this as an error").error}, 500)

    return answer


async def _file(request: Request) -> Response:
    path = _FILES.get(request.path_params.get("name", ""))
    return FileResponse(path) if path else JSONResponse({"error": Refused(404, "there is no such page", "open the printed address").error}, 404)


def application(token: str, hosts: set[str] | None) -> Any:
    """Returns the server's application. `hosts`: the names by which it may be asked; any if it is None."""
    jobs = Jobs(Commands())

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        worker = asyncio.create_task(jobs.work())
        try:
            yield
        finally:
            worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await worker
            jobs.close()

    page = _Page(jobs)
    routes = [Route("/api/choices", _answering(page.choices))]
    for name in ("preview", "layout", "scenario", "emit"):
        routes.append(Route(f"/api/{name}", _answering(getattr(page, name)), methods=["POST"]))
    routes += [Route("/api/jobs", _answering(page.search), methods=["POST"]), Route("/api/jobs/{id}", _answering(page.status)),
               Route("/api/jobs/{id}/answer", _answering(page.answer)), Route("/api/jobs/{id}/stop", _answering(page.stop), methods=["POST"]),
               Route("/", _file), Route("/{name}", _file)]
    return _Guard(Starlette(routes=routes, lifespan=lifespan), token, hosts)

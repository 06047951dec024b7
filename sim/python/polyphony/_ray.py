"""Ray as a concurrent.futures.Executor."""
from __future__ import annotations

import concurrent.futures
from typing import Any, Callable


class RayExecutor(concurrent.futures.Executor):
    """Runs each call as a task of a Ray cluster, for Scenario.sweep(executor=...).

    Joins the cluster that `ray.init()` joined before, or else starts or joins one as `ray.init()`
    does. Ray itself repeats the task of a worker that dies.

    Parameters
    ----------
    workers
        Number of workers that parts are made for; when absent, the tasks that the cluster's processors
        run at the same time (processors / `num_cpus`). Ray decides how many do run.
    **task
        Options of a task: `num_cpus` (1 when absent), `resources`, `max_retries` and so on, as in
        Ray's `RemoteFunction.options`.

    Raises
    ------
    ImportError
        If Ray is not installed (`pip install ray`).
    """

    def __init__(self, workers: int | None = None, **task: Any) -> None:
        import ray  # type: ignore[import-not-found,unused-ignore]

        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        self._ray = ray
        self._task = {"num_cpus": 1, **task}
        self._max_workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1) / (self._task["num_cpus"] or 1)))
        self._running: dict[concurrent.futures.Future[Any], Any] = {}
        self._known: dict[Callable[..., Any], Any] = {}
        self._closed = False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> concurrent.futures.Future[Any]:
        """Starts a call and returns its future."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if function not in self._known:  # Ray sends a function to the cluster once for each of these objects.
            self._known[function] = self._ray.remote(function).options(**self._task)
        task = self._known[function].remote(*arguments, **named)
        future: concurrent.futures.Future[Any] = task.future()
        self._running[future] = task
        future.add_done_callback(self._end)
        return future

    def _end(self, future: concurrent.futures.Future[Any]) -> None:
        task = self._running.pop(future, None)
        if task is not None and future.cancelled():
            self._ray.cancel(task)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls. The cluster goes on: `ray.shutdown()` leaves it."""
        self._closed = True
        running = dict(self._running)
        if cancel_futures:
            for task in running.values():
                self._ray.cancel(task)
        if wait:
            concurrent.futures.wait(running)

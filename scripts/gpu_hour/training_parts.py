"""Parts of scripts/first_gpu_hour that train: blocks, models, layouts, each predicted before it is measured."""
import csv
import json
import pathlib
import re
import statistics

from gpu_hour.course import ROOT, Course, Failed, Skipped
from gpu_hour.layouts import kinds
from gpu_hour.memory import Watched


class TrainingParts(Course):
    def blocks(self):
        self.needs()
        if not self.has_torch():
            raise Skipped(f"{self.options.python} has no torch that sees a GPU (scripts/setup pytorch fetches one: PYTHONPATH=~/.cache/polyphony/pytorch-VERSION)")
        (self.out / "torch_trace").mkdir(exist_ok=True)
        self.call("blocks", self.options.python, ROOT / "scripts/gpu_kernels", "--only", "blocks", "--out", self.out / "blocks.csv", "--trace", self.out / "torch_trace",
                  *self.sizes.kernels)
        comments, rows = [], []
        for line in (self.out / "blocks.csv").read_text().splitlines():
            (comments if line.startswith("#") else rows).append(line)
        failed = [line for line in comments if re.match(r"# part \w+: failed", line)]
        if failed:
            raise Failed(failed[0].removeprefix("# "))
        said = []
        for row in csv.DictReader(rows):
            name, _, mode = row["name"].rpartition("_")
            if row["phase"] != "both" or name not in self.sizes.blocks or (int(row["m"]), int(row["n"])) != self.sizes.blocks[name][1:3]:
                continue
            block, tokens = float(row["seconds"]) / int(row["count"]), int(row["m"]) * int(row["n"])
            self.theirs.setdefault(name, {})[mode] = block
            rate = float(row["flops"]) / float(row["seconds"])
            said.append(f"{name} {mode} {block * 1e3:.3f} ms ({tokens / block:,.0f} tokens/s, {rate / 1e12:.0f} TFLOP/s)")
        if not said:
            raise Failed("no block that is compared, blocks.csv")
        return "; ".join(said)

    @staticmethod
    def computed(folder, module):
        """Seconds of a forward and a backward pass of the module, by the device's clock."""
        seconds = {"forward": [], "backward": []}
        for file in folder.glob("trace/step-*.json"):
            for event in json.loads(file.read_text())["traceEvents"]:
                if event.get("cat") == "kernel" and event["args"].get("module") == module and event["args"].get("phase") in seconds:
                    seconds[event["args"]["phase"]].append(event["dur"] / 1e6)
        return sum(statistics.median(list_) for list_ in seconds.values())

    def own_blocks(self):
        """The cost of additional layers in forward and backward: embedding, head and loss cancel, in the seconds and in the FLOPs."""
        self.needs()
        said, sizes = [], self.sizes
        for name, of, options in self.block_runs():
            module, sequences, length, base = sizes.blocks[of]
            took, least = [], []
            for layers in (sizes.few, sizes.many):
                scenario = self.out / f"{name}_{layers}.json"
                model = base["model"] | {module: base["model"][module] | {"layers": layers}}
                scenario.write_text(json.dumps({"polyphony": 1, "about": "Of scripts/first_gpu_hour.", "cluster": {"node": {"device": "H100", "ranks": 1}},
                                                "training": {"precision": "bf16"}} | base | {"model": model}))
                predicted = self.answer(name, "simulate", scenario)
                least.append(predicted["mfu"] * predicted["step_seconds"] / base["layout"]["microbatches"])  # time at the device's peak
                took.append(self.computed(self.trained(f"{name}_{layers}", scenario, sizes.steps, sizes.traced, options=options), module))
            block, at_peak = ((after - before) / (sizes.many - sizes.few) for before, after in (took, least))
            beside = "".join(f", PyTorch {mode} {theirs / block:.2f} times as long" for mode, theirs in self.theirs.get(of, {}).items())
            said.append(f"{name} {block * 1e3:.3f} ms ({sequences * length / block:,.0f} tokens/s, MFU {at_peak / block:.1%}{beside})")
        return "; ".join(said) + " (goals on an H100: 55 % MFU of llama_8b, PyTorch compiled at least as long)"

    def block_runs(self):
        """Name of the runs, name of the block, options of the runs: each block as it is, and some with flash attention in place of cuDNN's."""
        for name in self.sizes.blocks:
            yield name, name, ()
            if name in self.sizes.also_flash:
                yield f"{name}_flash", name, ("--attention", "flash")

    def trained(self, name, scenario, steps, traced, seconds=None, variables=None, options=()):
        """Runs and returns the folder. No checkpoint is written: it would be as large as the model, and waited for."""
        folder = self.out / "runs" / name
        self.call(name, self.build / "polyphony", "run", scenario, "--fresh", "--out", folder, "--steps", steps, "--trace-steps", traced, "--keep-checkpoints", 0, *options,
                  seconds=seconds, variables=variables)
        return folder

    @staticmethod
    def median(folder, first, last):
        """Seconds of a step."""
        lines = (folder / "metrics.jsonl").read_text().splitlines()[first:last]
        return statistics.median(json.loads(line)["seconds"] for line in lines)

    def run(self, name, scenario, profile=(), **limits):
        """Predicted and measured seconds of a step; measured tokens per second and GPU, MFU, and memory of a GPU."""
        predicted = self.answer(name, "simulate", scenario, *profile)
        memory = ""
        if name not in self.runs:
            with Watched() as watched:
                self.runs[name] = str(self.trained(name, scenario, self.sizes.steps, self.sizes.traced, **limits))
            self.note_memory(watched.rows(name))
            planned = (predicted["peak_memory_bytes"] + predicted["library_memory_bytes"]) / 2**30
            memory = f", {watched.grown():.1f} GiB of a GPU (predicted {planned:.1f})"
        measured = self.median(pathlib.Path(self.runs[name]), self.sizes.measured, self.sizes.steps)
        slower = predicted["step_seconds"] / measured
        tokens, mfu = predicted["tokens_per_second_per_rank"] * slower, predicted.get("mfu", 0) * slower
        return (f"{name} {measured * 1e3:.1f} ms ({tokens:,.0f} tokens/s of a GPU, MFU {mfu:.1%}{memory}), "
                f"predicted {predicted['step_seconds'] * 1e3:.1f} ms ({slower - 1:+.1%})")

    def note_memory(self, rows):
        file = self.out / "memory.csv"
        if not file.exists():
            file.write_text("run,gpu,mib_before,mib_most,mib_after\n")
        with file.open("a") as out:
            out.write(rows)

    def train(self):
        self.needs()
        def case(name, file):
            said = self.run(name, file, options=("--kineto", self.sizes.profiled))
            self.call("profiles", self.build / "polyphony", "trace", self.runs[name])
            return said
        return self.each_case("train", ((name, lambda name=name, file=file: case(name, file)) for name, file in self.sizes.trained.items()))

    def fp8(self):
        self.needs()

        def case(scaling):
            scenario = self.out / f"fp8_{scaling}.json"
            scenario.write_text(json.dumps({"polyphony": 1, "about": "Of scripts/first_gpu_hour.", "extends": str(self.sizes.trained["llama-8b-4-layers"]),
                                            **({} if self.sizes.rehearsal else {"published": None}), "training": {"precision": "bf16", "fp8": scaling}}))
            return self.run(f"fp8_{scaling}", scenario)
        return self.each_case("fp8", ((scaling, lambda scaling=scaling: case(scaling)) for scaling in ("tensorwise", "rowwise")))

    def recording(self):
        """One run records the first half of its steps, another the second half: the drift of the GPU cancels."""
        self.needs()
        warm, half = self.sizes.warm, self.sizes.half
        scenario, middle, end = self.sizes.trained["llama-1b"], warm + half, warm + 2 * half
        first, second = (self.trained(f"recording{at}", scenario, end, f"{at}:{at + half}") for at in (warm, middle))
        ratio = self.median(first, warm, middle) / self.median(first, middle, end)
        ratio *= self.median(second, middle, end) / self.median(second, warm, middle)
        return f"recorded steps take {ratio ** 0.5 - 1:+.2%} (goal: under 1 %)"

    def calibrate(self):
        self.needs()
        if not self.runs:
            raise Skipped("nothing was trained")
        profile = self.out / "calibrated.json"
        self.call("calibrate", self.build / "polyphony", "calibrate", *self.runs.values(), "--out", profile)
        return "; ".join(self.run(name, self.sizes.trained[name], ["--profile", profile]) for name in list(self.runs) if name in self.sizes.trained)

    def each_layout(self, part, layouts):
        """Trains in each layout (name, ranks, changes of a scenario, that scenario), in a process of its own with a limit."""
        def case(name, ranks, changes, base):
            scenario = self.out / f"{name}.json"
            cluster = {"cluster": {"node": {"ranks": ranks}}}
            own = {"polyphony": 1, "about": "Of scripts/first_gpu_hour.", "extends": str(base), **({} if self.sizes.rehearsal else {"published": None})}
            scenario.write_text(json.dumps(own | cluster | changes))
            return self.run(name, scenario, seconds=self.options.case_seconds, variables=self.sizes.nccl)
        return self.each_case(part, ((layout[0], lambda layout=layout: case(*layout)) for layout in layouts))

    def pipeline(self):
        self.needs(2)
        return self.each_layout("pipeline", ((f"pipeline{stages}", stages, {"layout": {"language": {"pp": stages}, "microbatches": 2 * stages}, "data": {"global_batch": 2 * stages}},
                                              self.sizes.trained["llama-1b"]) for stages in self.sizes.stages if stages <= len(self.gpus)))

    def layouts(self):
        self.needs(2)
        return self.each_layout("layouts", kinds(self.ranks(), self.sizes))

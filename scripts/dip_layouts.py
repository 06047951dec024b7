"""Layouts of DIP's models (scenarios/varying/dip_*.json) and their simulations. Shared by bench_dip,
dip_dynamic and rank_splits."""
import copy
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECOMPUTE = ("none", "full")
SUB_MICROBATCH, MOST_PARTS = 12, 4  # images: the paper's best size; a sequence has at most 48
SLACK = 1.02


class Case:
    """One scenario: its dimensions, and layouts of it."""

    def __init__(self, path, program, folder, grid="best"):
        self.program, self.folder = program, folder
        self.memory = None  # of a device; set by the first estimate
        self.whole = json.loads(subprocess.run([program, "plan", path, "--resolved"], capture_output=True, text=True, check=True).stdout)
        layout = self.whole["layout"]
        self.modules = [name for name, module in self.whole["model"].items() if module.get("kind", name) != "projector"]
        self.encoder = self.modules[0] if self.modules[0] != "language" else None
        self.ranks = layout[self.modules[0]]["ranks"]["count"]
        self.samples = self.whole["data"]["global_batch"]
        if isinstance(self.whole["data"]["source"], dict):
            recorded = pathlib.Path(self.whole["data"]["source"]["recorded"])
            self.whole["data"]["source"]["recorded"] = str((path.parent / recorded.name).resolve())
        given = tuple(layout["language"][key] for key in ("tp", "pp"))
        self.grids = [given] if grid == "given" else [
            (tp, pp) for tp in (1, 2, 4, 8) for pp in (2, 4, 8, 16) if self.ranks % (tp * pp) == 0 and self.samples % (self.ranks // (tp * pp)) == 0]

    def grid(self, tp, pp, **more):
        return {"tp": tp, "sp": tp > 1, "pp": pp, "ranks": {"first": 0, "count": self.ranks}, "shard": "optimizer", **more}

    def microbatches(self, tp, pp):
        return max(1, self.samples // (self.ranks // (tp * pp)))

    def blocks(self):
        """Parameters of each block of the chain, including the embedding or the head that belongs to it."""
        weights = []
        for name in self.modules:
            m = self.whole["model"][name]
            h, width = m["hidden"], m["heads"] * m["head_dim"]
            each = 2 * h * (width + m.get("kv_heads", m["heads"]) * m["head_dim"]) + (3 if m.get("gated") else 2) * h * m["ffn"]
            if "latent_channels" in m:
                each += 2 * h * width + 2 * m.get("condition", h) * width  # cross-attention
            own = [each] * m["layers"]
            if "vocab" in m:
                own[0] += m["vocab"] * h
                own[-1] += m["vocab"] * h
            weights += own
        return weights

    def by_parameters(self, chunks):
        """Numbers of blocks by chunk: consecutive blocks, with the smallest possible largest chunk."""
        weights = self.blocks()
        if chunks > len(weights):
            return None
        low, high = max(weights), sum(weights)
        while low < high:  # the smallest limit for which greedy filling leaves a block for every later chunk
            limit = (low + high) // 2
            low, high = (low, limit) if self.fill(weights, chunks, limit) else (limit + 1, high)
        return self.fill(weights, chunks, low)

    @staticmethod
    def fill(weights, chunks, limit):
        sizes, at = [], 0
        for chunk in range(chunks):
            held, size = 0, 0
            while at + size < len(weights) - (chunks - chunk - 1) and (held + weights[at + size] <= limit):
                held += weights[at + size]
                size += 1
            if size == 0:
                return None
            sizes.append(size)
            at += size
        return sizes if at == len(weights) else None

    def megatron(self, tp, pp, vpp, recompute):
        works, blocks = self.microbatches(tp, pp), self.by_parameters(pp * vpp)
        if blocks is None or vpp > 1 and works % pp:
            return None
        return {"placement": "homogeneous", "schedule": "interleaved" if vpp > 1 else "1f1b", "microbatches": works,
                "all": self.grid(tp, pp, vpp=vpp, recompute=recompute, blocks=blocks)}

    def fsdp2(self, tp, recompute):
        lanes = self.ranks // tp
        if lanes > self.samples:
            return None
        return {"placement": "homogeneous", "schedule": "1f1b", "microbatches": self.samples // lanes,
                "all": {"tp": tp, "sp": tp > 1, "ranks": self.ranks, "recompute": recompute, "shard": "full"}}

    def together(self, tp, pp, encoder_tp, first, last, recompute):
        """Chunks of every module on every rank."""
        works = self.microbatches(tp, pp)
        chunks = dict(zip(self.modules, (first, last)))
        if chunks["language"] > 1 and works % pp:
            return None
        layout = {"placement": "colocated", "schedule": "1f1b" if chunks["language"] == 1 else "interleaved", "microbatches": works, "encoder_order": "interleaved"}
        for name in self.modules:
            layout[name] = self.grid(tp, pp, vpp=chunks[name], recompute=recompute)
        if encoder_tp != tp:
            layout[self.encoder] = self.grid(encoder_tp, pp, vpp=chunks[self.encoder], recompute=recompute, spread="images")
        return layout

    def encoder_tps(self, tp):
        return [e for e in (1, 2, 4, 8) if e <= tp] if self.encoder else [tp]

    def searched(self, layout, placements, chooses):
        """`layout` under planner dip, with whole and divided microbatches; `chooses`: actions recompute only what memory requires, not everything that the layout states."""
        for cut in (False, True) if self.encoder else (False,):
            other = {**copy.deepcopy(layout), "planner": "dip", "placements": placements}
            for name in self.modules:
                if chooses:
                    other[name]["recompute"] = "full"
                elif other[name]["recompute"] != "none":
                    other[name]["recompute_blocks"] = [0, self.whole["model"][name]["layers"]]
            if cut:
                other[self.modules[0]]["sub_microbatch"] = SUB_MICROBATCH
                other["encoder_microbatches"] = other["microbatches"] * MOST_PARTS
            yield other

    def answer(self, layout, seed, stack, options):
        scenario = copy.deepcopy(self.whole)
        scenario["layout"], scenario["data"]["seed"] = layout, seed
        if stack:
            scenario["training"]["software"] = stack
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.folder) as file:
            json.dump(scenario, file)
            file.flush()
            done = subprocess.run([self.program, "simulate", file.name, "--format", "json", *options], capture_output=True, text=True)
        return json.loads(done.stdout)

    def estimate(self, layout, stack=None):
        """Seconds of the first batch, or the reason why there are none."""
        answer = self.answer(layout, 1, stack, ["--batches", "1", "--jobs", "1"])
        if "step" not in answer:
            return answer["error"]["what"]
        self.memory = answer["device_bytes"]
        return answer["step"]["largest_seconds"] if answer["worst"]["peak_bytes"] <= self.memory else "out of memory"

    def step(self, layout, seed, stack=None):
        """Seconds of the batch that `seed` draws, or the reason why there are none."""
        answer = self.answer(layout, seed, stack, [])
        if "step_seconds" not in answer:
            return answer["error"]["what"]
        # Recomputation is chosen for the memory that the first batch leaves; other batches may need slightly more.
        slack = SLACK if layout.get("planner") and seed > 1 else 1
        return answer["step_seconds"] if answer["peak_memory_bytes"] <= slack * self.memory else "out of memory"


def setting(case, layout):
    if "all" in layout:
        grid = layout["all"]
        return " ".join([f"TP{grid.get('tp', 1)}"] + ([f"PP{grid['pp']}", f"V{grid['vpp']}"] if "pp" in grid else []) + [f"x{layout['microbatches']}"] +
                        ([f"recompute {grid['recompute']}"] if grid["recompute"] != "none" else []))
    first, last = (layout[name] for name in (case.modules[0], "language"))
    words = [f"TP{last['tp']} PP{last['pp']}"] + ([f"encoder TP{first['tp']}"] if first["tp"] != last["tp"] else [])
    words.append("chunks " + " + ".join(str(layout[name]["vpp"]) for name in case.modules))
    if "sub_microbatch" in first:
        words.append(f"cut at {first['sub_microbatch']}")
    if first["recompute"] != "none" and (not layout.get("planner") or "recompute_blocks" in first):
        words.append(f"recompute {first['recompute']}")
    return " ".join(words)

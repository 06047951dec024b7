"""Runs `polyphony plan` on 2,000 random mutations of the shipped scenarios, one process each, and polyphony-worker on some.

Every one ends by itself within 10 s with exit code 0, 2 or 3: never 1 (our mistake), never a signal. Refusals are one line. The worker's own
2,000 run in one process (tests/exec/worker/prepare_test.cpp), for LibTorch takes half a second to start.
"""
import collections
import concurrent.futures
import json
import pathlib
import random
import re
import statistics

import harness
from harness import POLYPHONY, SCENARIOS, WORKER, run

MUTATIONS = 2000
WORKER_MUTATIONS = 30
ODD = [None, True, -1, 0, 1, 2, 3, 7, 64, 1 << 20, 2**31 - 1, -2**31, 2**63 - 1, 2**64 - 1, 1e300, -0.5, 1e-300, "", "auto", "all", "400", "400Gbps", "80GiB",
       "-3us", "1e308TFLOPS", "uniform(0,3)", "uniform(0,1000000000)", "lognormal(20,5)", "vision", "language", "hgx-h100", "this-machine", "colocated",
       "homogeneous", "non-colocated", "llama-3.1-70b", "lora", "frozen", "4x4", "é\x01", "x" * 10000, [], {}, [1, 2, 3], [[]], {"first": 1, "count": 2},
       {"recorded": "mix.jsonl"}, {"device": "H100", "ranks": 4}]


def places(value, container=None, key=None):
    """(container, key) of every nested value."""
    if container is not None:
        yield container, key
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for child_key, child in list(children):
        yield from places(child, value, child_key)


def mutate_value(document, dice):
    for _ in range(dice.randint(1, 3)):
        spots = list(places(document))
        container, key = dice.choice(spots)
        other, other_key = dice.choice(spots)
        kind = dice.randrange(5)
        if kind == 0:
            del container[key]
        elif kind == 1:
            container[key] = dice.choice(ODD)
        elif kind == 2:
            container[key] = json.loads(json.dumps(other[other_key]))
        elif kind == 3 and isinstance(container, dict):
            container[dice.choice(["nonsense", str(other_key)])] = json.loads(json.dumps(other[other_key]))
        elif isinstance(container[key], int):
            container[key] *= dice.choice([-1, 2, 1000])
    return json.dumps(document).encode()


def mutate_bytes(text, dice):
    data = bytearray(text)
    if dice.random() < 0.5:
        return bytes(data[:dice.randrange(len(data))])
    for _ in range(dice.randint(1, 4)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data)


class Mutations(harness.SystemTest):
    def setUp(self):
        super().setUp()
        # The resolved scenarios: they need no other file, and have more keys to change.
        self.originals = []
        for path in sorted(SCENARIOS.glob("*.json")):
            (self.folder / path.name).write_bytes(path.read_bytes())
            self.originals.append(path.read_bytes())
            resolved = run(POLYPHONY, "plan", path, "--resolved")
            self.assert_ok(resolved)
            self.originals.append(resolved.stdout.encode())

    def mutated(self, seed):
        dice = random.Random(seed)
        text = dice.choice(self.originals)
        if dice.random() < 0.2:
            return mutate_bytes(text, dice)
        return mutate_value(json.loads(re.sub(rb"(?m)^\s*//.*$", b"", text)), dice)

    def check(self, seed, *command):
        path = self.folder / f"m{seed}.json"
        path.write_bytes(self.mutated(seed))
        try:
            done = run(*[path if c == "PATH" else c for c in command], limit=10)
        except harness.subprocess.TimeoutExpired:
            return "hangs", 10, f"seed {seed}: still running after 10 s"
        wrong = ""
        if done.returncode not in (0, 2, 3):
            wrong = f"seed {seed}: exit code {done.returncode}: {done.stderr[-300:]}"
        refusal = [line for line in done.stderr.splitlines() if ": note: " not in line]
        if done.returncode == 2 and (len(refusal) != 1 or str(self.folder) not in refusal[0]):
            wrong = f"seed {seed}: not one line with the file: {done.stderr[-300:]}"
        if not wrong:
            path.unlink()
        return done.returncode, done.seconds, wrong

    def check_all(self, seeds, *command):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda seed: self.check(seed, *command), seeds))
        seconds = [s for _, s, _ in results]
        codes = collections.Counter(code for code, _, _ in results)
        print(f"{len(results)} mutations: exit codes {dict(codes)}, {statistics.median(seconds) * 1e3:.1f} ms each, slowest {max(seconds):.2f} s", flush=True)
        wrong = [text for _, _, text in results if text]
        if wrong:
            keep = pathlib.Path(harness.tempfile.gettempdir()) / "polyphony-mutations"
            harness.shutil.copytree(self.folder, keep, dirs_exist_ok=True)
            self.fail("\n".join([f"{len(wrong)} of {len(results)}, kept in {keep}"] + wrong[:20]))
        return codes

    def test_plan(self):
        codes = self.check_all(range(MUTATIONS), POLYPHONY, "plan", "PATH")
        self.assertGreater(codes[0], MUTATIONS // 50, "the mutations are all nonsense")
        self.assertGreater(codes[2], MUTATIONS // 3)

    def test_worker(self):
        self.check_all(range(MUTATIONS, MUTATIONS + WORKER_MUTATIONS), WORKER, "PATH", "--steps", "0")


if __name__ == "__main__":
    harness.main()

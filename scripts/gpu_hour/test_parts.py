"""Parts of scripts/first_gpu_hour that run tests: kernels, transport, collectives, layouts against the reference."""
import re
import subprocess

from gpu_hour.course import UNSTARTED, Course, Failed, PartOver, Skipped, assertions

# exec_test's suites: ranks that share a GPU; a GPU for each rank
SHARED, APART = "--test-suite=machine's GPU", "--test-suite=machine's GPUs"
ATTENTION = "--test-case=attention kernels*"
TABLE = ("--test-case=table of collectives", "--no-skip")
LISTED = ("--test-case=list of layouts", "--no-skip")
PER_CALL = {"parity": 20, "nccl_parity": 6}  # layouts: they share the start of a process


class TestParts(Course):
    def machine(self):
        if not self.gpus:
            raise Skipped("no GPU")
        self.call("machine", "nvidia-smi")
        self.call("machine", "nvidia-smi", "topo", "-m")
        build = self.call("machine", self.build / "polyphony-worker", "--version").strip().split("\n")[-1]
        return f"{len(self.gpus)} × {self.gpus[0]}; {build}"

    def queued(self):
        return assertions(self.tests("queued", "--test-suite=queued device"))

    def transport(self):
        self.needs()
        text = self.tests("transport", *self.sizes.transport)
        return "; ".join([assertions(text), *re.findall(r"MESSAGE: (start: .*)", text)])

    def kernels(self):
        self.needs()
        ours = self.tests("kernels", "--test-suite=machine's GPU kernels")
        attention = self.tests("kernels", SHARED, ATTENTION)
        if re.search("MESSAGE: .*: skipped", attention):
            raise Failed("exec_test sees no GPU, and nvidia-smi does")
        said = f"attention {assertions(attention)}; "
        if re.search("MESSAGE: .*: skipped", ours):  # doctest's own summary always has the word
            raise Skipped(said + "this build has no kernels of its own (no nvcc when it was configured)")
        return said + assertions(ours) + "; " + "; ".join(re.findall(r"MESSAGE: (.* ms, ATen's form .* ms)", ours))

    def collectives(self):
        """OUT/collectives.csv: what all GPUs need for each operation and size; also the rows of a table that was cut off."""
        self.needs(2)
        fault = None
        try:
            text = self.tests("collectives", APART, *TABLE, seconds=self.options.case_seconds,
                              variables={"POLYPHONY_RANKS": str(self.ranks()), "POLYPHONY_LARGEST_BYTES": str(self.sizes.largest_bytes)})
        except Failed as why:
            text, fault = why.output, why
        rows = [line.split(",") for line in re.findall(r"^collective,(.*)$", text, re.MULTILINE)]
        (self.out / "collectives.csv").write_text("operation,ranks,bytes,seconds,bus_bytes_per_second\n" + "".join(",".join(row) + "\n" for row in rows))
        said = []
        for name in dict.fromkeys(row[0] for row in rows):
            own = [row for row in rows if row[0] == name]
            said.append(f"{name} {float(own[0][3]) * 1e6:.1f} us for {own[0][2]} bytes, {float(own[-1][4]) / 1e9:.1f} GB/s for {own[-1][2]}")
        if fault:
            raise Failed("; ".join([str(fault), *said]))
        if not said:
            raise Failed("no row, collectives.log")
        return f"{self.ranks()} ranks: " + "; ".join(said)

    def listed(self):
        """(number, ranks, name) of the layouts of parity, cheapest first."""
        text = self.tests("layouts_of_parity", *LISTED)
        found = [(int(number), int(ranks), name) for number, ranks, name in re.findall(r"^layout (\d+): (\d+) ranks, \d+ ops: (.*)$", text, re.MULTILINE)]
        if not found:
            raise Failed("exec_test lists no layouts, layouts_of_parity.log")
        return found[::self.sizes.every_layout]

    def compared(self, part, layouts, suite):
        """Runs layouts, a few in a process. A layout that fails or does not end is named, and those behind it still run."""
        known, idle = self.cases(part), 0
        while waiting := [layout for layout in layouts if layout[2] not in known]:
            if self.seconds_left() < 1:
                raise PartOver
            batch = [layout for layout in waiting if part == "parity" or layout[1] == waiting[0][1]][:PER_CALL[part]]
            fault = None
            try:
                text = self.tests(part, suite, "--test-case=layouts *", seconds=self.options.case_seconds,
                                  variables={"POLYPHONY_LAYOUTS": ",".join(str(number) for number, _, _ in batch)})
            except Failed as why:
                text, fault = why.output, str(why)
            if part == "nccl_parity" and (over := re.search(r"^layouts on \d+ ranks over (.*)$", text, re.MULTILINE)) and over.group(1) != self.sizes.over:
                raise Failed(f"ranks exchanged over {over.group(1)}, and not over {self.sizes.over}")
            begun = set(re.findall(r"^layout (\d+) begins", text, re.MULTILINE))
            ended = dict(re.findall(r"^layout (\d+): (ok|WRONG: .*)", text, re.MULTILINE))
            idle = 0 if begun else idle + 1
            for number, _, name in batch:
                if str(number) in ended:
                    known[name] = ended[str(number)]
            if str(batch[0][0]) not in ended:  # others run again as the first of their own process, with all of its time
                known[batch[0][2]] = fault or "no result"
            elif fault and all(ended.get(str(number)) == "ok" for number, _, _ in batch):  # e.g. at the end of its ranks
                known[batch[-1][2]] = f"right, but then {fault}"
            self.save()
            if idle == UNSTARTED:
                raise Failed(f"no layout begins: {fault or 'no result'}")
        results = {name: known[name] for _, _, name in layouts}
        wrong = [f"{name} FAILED: {said}" for name, said in results.items() if said != "ok"]
        said = "; ".join([f"{len(results) - len(wrong)} of {len(results)} layouts", *wrong])
        if wrong:
            raise Failed(said)
        return said

    def parity_first(self):
        self.needs()
        return self.compared("parity", self.listed()[:self.sizes.first_layouts], SHARED)

    def parity(self):
        self.needs()
        return self.compared("parity", self.listed(), SHARED)

    def nccl_parity(self):
        self.needs(2)
        layouts = [layout for layout in self.listed() if layout[1] > 1]
        fitting = [layout for layout in layouts if layout[1] <= len(self.gpus)]
        said = self.compared("nccl_parity", fitting, APART)
        return said + (f" ({len(layouts) - len(fitting)} need more than {len(self.gpus)} GPUs)" if len(fitting) < len(layouts) else "")

    def has_torch(self):
        return subprocess.run([self.options.python, "-c", self.sizes.torch_check], capture_output=True, check=False).returncode == 0

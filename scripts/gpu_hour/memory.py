"""How much memory of each GPU is used during a run, as nvidia-smi says: what libraries take is in no other figure."""
import subprocess
import threading


def used():
    """MiB by GPU; empty if nvidia-smi does not answer."""
    try:
        answer = subprocess.run(["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=False, timeout=10)
        return {int(index): float(mib) for index, mib in (line.split(",") for line in answer.stdout.strip().splitlines())}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}


class Watched:
    """`with Watched() as memory`: memory before, most of each second, and after."""

    def __enter__(self):
        self.before, self.after = used(), {}
        self.most = dict(self.before)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()
        return self

    def look(self):
        while not self.over.wait(1):
            for gpu, mib in used().items():
                self.most[gpu] = max(mib, self.most.get(gpu, 0))

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.after = used()

    def rows(self, name):
        return "".join(f"{name},{gpu},{self.before[gpu]:.0f},{self.most[gpu]:.0f},{self.after.get(gpu, 0):.0f}\n" for gpu in sorted(self.before))

    def grown(self):
        """GiB of the GPU that took most, above what it had before."""
        return max((self.most[gpu] - self.before[gpu] for gpu in self.before), default=0) / 1024

"""The worker with the environment variables of torchrun, Slurm, Open MPI and PMI: two processes train together."""
import json

import harness
from harness import SCENARIOS, WORKER, environment


def torchrun(rank, port):
    return {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "GROUP_RANK": 0, "MASTER_ADDR": "localhost", "MASTER_PORT": port,
            "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_USE_AGENT_STORE": "False"}


def slurm(rank, port):
    return {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": 2, "SLURM_NTASKS": 2, "SLURM_LOCALID": rank, "SLURM_STEP_TASKS_PER_NODE": "2",
            "SLURM_STEP_NODELIST": "localhost", "MASTER_PORT": port}


def open_mpi(rank, port):
    return {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_LOCAL_RANK": rank, "OMPI_COMM_WORLD_LOCAL_SIZE": 2, "MASTER_PORT": port}


def pmi(rank, port):
    return {"PMI_RANK": rank, "PMI_SIZE": 2, "MPI_LOCALRANKID": rank, "MPI_LOCALNRANKS": 2, "MASTER_PORT": port}


class Launchers(harness.SystemTest):
    def train(self, name, commands):
        """The losses of two ranks started with (variables, arguments) each."""
        out = self.folder / name
        ranks = [self.start(WORKER, SCENARIOS / "tiny.json", "--steps", 2, "--out", out, *arguments, env=environment(**variables))
                 for variables, arguments in commands]
        outputs = [self.finish(rank, 60) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], outputs)
        self.assertEqual(json.loads(outputs[0][0])["steps"], 2)
        return harness.losses(out)

    def test_all_conventions_train_alike(self):
        port = harness.free_port()
        flags = [({}, ["--rank", r, "--world-size", 2, "--master", f"127.0.0.1:{port}"]) for r in range(2)]
        expected = self.train("flags", flags)
        self.assertEqual(sorted(expected), [0, 1])
        for convention in (torchrun, slurm, open_mpi, pmi):
            with self.subTest(convention.__name__):
                port = harness.free_port()
                self.assertEqual(self.train(convention.__name__, [(convention(r, port), []) for r in range(2)]), expected)


if __name__ == "__main__":
    harness.main()

// Shell scripts that start the ranks of a run on the machines of a cluster: an sbatch script for
// Slurm, and scripts around torchrun and mpirun. Each restarts the run from its newest checkpoint
// when a rank is lost.
//   Exit codes of the worker decide: 0 done; 2 and 3 (bad input, cannot run here) end the script;
//   any other one starts the next attempt.
// Slurm: five minutes before its time is over the ranks save a checkpoint and stop, and the job is
// queued again. Sources: sbatch(1), srun(1), mpirun(1) of Open MPI; torch/distributed/run.py.
#pragma once

#include <string>

namespace polyphony::sim {

enum class Launcher { slurm, torchrun, mpirun };

struct JobScript {
  Launcher launcher = Launcher::slurm;
  std::string name = "polyphony";
  int ranks = 1, ranks_per_node = 1;
  bool gpus = true;           // one for each rank
  std::string worker;         // path of polyphony-worker on the cluster
  std::string scenario, out;  // paths on the cluster
  std::string arguments;      // more options of the worker, as a shell reads them
  std::string hours = "24:00:00";
  std::string partition, account;  // Slurm; empty: the site's default
  int attempts = 4;
  int nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
};

// Returns the script's text, for bash.
std::string job_script(const JobScript& job);

}  // namespace polyphony::sim

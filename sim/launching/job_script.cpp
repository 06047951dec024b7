#include "sim/launching/job_script.h"

#include "sim/text/shell_text.h"

namespace polyphony::sim {
namespace {

std::string worker_command(const JobScript& job) {
  return shell_quoted(job.worker) + " " + shell_quoted(job.scenario) + " --out " +
         shell_quoted(job.out) + " --auto-resume" +
         (job.arguments.empty() ? "" : " " + job.arguments);
}

// The loop over attempts. `start`: the command of one attempt.
std::string attempts(const JobScript& job, const std::string& start) {
  return "for attempt in $(seq " + std::to_string(job.attempts) +
         "); do\n"
         "  echo \"attempt $attempt of " +
         std::to_string(job.attempts) + " begins\"\n" + start +
         "  case $code in\n"
         "    0 | 2 | 3) exit $code ;;  # done; bad input; cannot run here\n"
         "  esac\n"
         "  echo \"attempt $attempt ended with exit code $code\"\n"
         "done\n"
         "exit $code\n";
}

std::string slurm(const JobScript& job) {
  std::string text = "#!/bin/bash\n#SBATCH --job-name=" + job.name;
  const auto option = [&](const std::string& line) { text += "\n#SBATCH --" + line; };
  option("nodes=" + std::to_string(job.nodes()));
  option("ntasks=" + std::to_string(job.ranks));
  option("ntasks-per-node=" + std::to_string(std::min(job.ranks, job.ranks_per_node)));
  if (job.gpus) option("gpus-per-node=" + std::to_string(std::min(job.ranks, job.ranks_per_node)));
  option("time=" + job.hours);
  if (!job.partition.empty()) option("partition=" + job.partition);
  if (!job.account.empty()) option("account=" + job.account);
  option("output=%x-%j.log");
  option("open-mode=append");
  option("requeue");
  option("signal=B:USR1@300");  // to this script, five minutes before the time is over
  text +=
      "\n\n# The worker takes the first host of the job as its meeting point.\n"
      "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))\n"
      "stopping=\n"
      "trap 'stopping=yes; scancel --signal=TERM \"$SLURM_JOB_ID\"' USR1  # to the ranks\n";
  return text +
         attempts(job,
                  "  srun --kill-on-bad-exit=0 " + worker_command(job) +
                      " &\n"
                      "  step=$!\n"
                      "  wait \"$step\"; code=$?\n"
                      "  # The signal ends the first wait; the ranks still save.\n"
                      "  while kill -0 \"$step\" 2> /dev/null; do wait \"$step\"; code=$?; done\n"
                      "  if [ -n \"$stopping\" ]; then\n"
                      "    echo \"time is nearly over: the job is queued again\"\n"
                      "    scontrol requeue \"$SLURM_JOB_ID\"\n"
                      "    exit 0\n"
                      "  fi\n");
}

std::string torchrun(const JobScript& job) {
  const bool alone = job.nodes() == 1;
  std::string text = "#!/bin/bash\n# Start this on ";
  text += alone ? "one machine.\n"
                : "each of " + std::to_string(job.nodes()) +
                      " machines, with the name of the first one: HEAD=node0 bash FILE\n";
  text += "exec torchrun --no-python --nproc-per-node=" +
          std::to_string(std::min(job.ranks, job.ranks_per_node)) +
          " --max-restarts=" + std::to_string(job.attempts - 1) + " \\\n  ";
  text += alone ? "--standalone"
                : "--nnodes=" + std::to_string(job.nodes()) +
                      " --rdzv-backend=c10d --rdzv-id=" + job.name +
                      " --rdzv-endpoint=\"${HEAD:?name the first machine}:29400\"";
  return text + " \\\n  " + worker_command(job) + "\n";
}

std::string mpirun(const JobScript& job) {
  const std::string at_once = std::to_string(std::min(job.ranks, job.ranks_per_node));
  return "#!/bin/bash\n"
         "# HOSTS names a file with one machine per line; without it the scheduler's machines are "
         "taken.\n"
         "export MASTER_PORT=${MASTER_PORT:-29500}\n"
         "hosts=()\n"
         "if [ -n \"${HOSTS:-}\" ]; then\n"
         "  MASTER_ADDR=$(awk -F'[ \\t:]+' '!/^[ \\t]*(#|$)/ {print $1; exit}' \"$HOSTS\")\n"
         "  hosts=(--hostfile \"$HOSTS\")\n"
         "fi\n"
         "export MASTER_ADDR=${MASTER_ADDR:-$(hostname)}\n" +
         attempts(job, "  mpirun \"${hosts[@]}\" -np " + std::to_string(job.ranks) +
                           " --map-by ppr:" + at_once +
                           ":node -x MASTER_ADDR -x MASTER_PORT \\\n    " + worker_command(job) +
                           "\n  code=$?\n");
}

}  // namespace

std::string job_script(const JobScript& job) {
  switch (job.launcher) {
    case Launcher::torchrun:
      return torchrun(job);
    case Launcher::mpirun:
      return mpirun(job);
    case Launcher::slurm:
      break;
  }
  return slurm(job);
}

}  // namespace polyphony::sim

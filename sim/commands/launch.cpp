// polyphony launch: scripts that start a run on a cluster.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "shared/check/check.h"
#include "shared/files/whole.h"
#include "shared/hardware/devices.h"
#include "shared/text/json_form.h"
#include "sim/cli/command.h"
#include "sim/launching/job_script.h"
#include "sim/launching/phase_folders.h"
#include "sim/text/shell_text.h"

namespace polyphony::sim {
namespace {

Launcher launcher_of(const Arguments& args) {
  const std::vector<std::pair<const char*, Launcher>> known{
      {"slurm", Launcher::slurm}, {"torchrun", Launcher::torchrun}, {"mpirun", Launcher::mpirun}};
  std::vector<Launcher> given;
  for (const auto& [name, launcher] : known)
    if (args.has(name)) given.push_back(launcher);
  if (given.size() != 1)
    throw InputError("polyphony launch", "",
                     "requires exactly one of --slurm, --torchrun and --mpirun",
                     "write --slurm for an sbatch script");
  return given.front();
}

// Names the phase, its folder, and the folder of the phase before, with whose parameters it begins.
void add_phase_to(JobScript& job, const std::string& phase, const std::vector<std::string>& all) {
  std::string arguments = "--phase " + shell_quoted(phase);
  const auto found = std::find(all.begin(), all.end(), phase);
  if (found != all.begin())
    arguments += " --weights-from " + shell_quoted(phase_folder(job.out, *(found - 1)));
  job.arguments = arguments + (job.arguments.empty() ? "" : " ") + job.arguments;
  job.out = phase_folder(job.out, phase);
}

}  // namespace

int launch_command(int argc, char** argv) {
  Arguments args(
      "launch",
      "Writes a script that starts a scenario's layout on a cluster: for Slurm (sbatch), or around "
      "torchrun or mpirun. The script restarts the run from its newest checkpoint when a rank is "
      "lost; under Slurm the run also saves and queues again before its time is over.\n"
      "Nothing is started. polyphony-worker, the scenario and the run's folder must be on a file "
      "system that all machines share.\n"
      "A scenario with phases needs one script per phase (--phase NAME), whose folder is RUN/NAME; "
      "each begins with the parameters of the phase before. Start them one after the other.",
      "SCENARIO",
      "  polyphony launch my.json --slurm --run /data/runs/vlm --partition h100 > vlm.sbatch\n"
      "  sbatch vlm.sbatch\n"
      "  polyphony launch my.json --torchrun --run /data/runs/vlm --with '--evaluate-every 500'");
  args.add()("scenario", "scenario file with a layout (polyphony sweep --save-row writes one)",
             cxxopts::value<std::string>())("slurm", "an sbatch script")(
      "torchrun", "a script for each machine, around torchrun")(
      "mpirun", "a script around Open MPI's mpirun")(
      "run", "folder of the run: metrics, traces, checkpoints",
      cxxopts::value<std::string>()->default_value("runs/latest"))(
      "out", "file of the script; stdout when absent", cxxopts::value<std::string>())(
      "worker", "path of polyphony-worker on the cluster",
      cxxopts::value<std::string>()->default_value("polyphony-worker"))(
      "with", "more options of polyphony-worker, as one text", cxxopts::value<std::string>())(
      "attempts", "how often the run is started at most",
      cxxopts::value<int>()->default_value("4"))(
      "time", "Slurm: limit of the job's time",
      cxxopts::value<std::string>()->default_value("24:00:00"))("partition", "Slurm: partition",
                                                                cxxopts::value<std::string>())(
      "account", "Slurm: account", cxxopts::value<std::string>());
  args.add_phase();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  const Scenario scenario = open_scenario(args);
  if (!scenario.layout)
    throw InputError(
        scenario.file, "/layout", "is missing",
        args.has("phase")
            ? "state the layout of the phase in its \"change\"; `polyphony sweep` finds one"
            : "choose one: polyphony sweep " + scenario.file + " --save-row 1 --out my.json");
  if (const auto no = check_runnable(scenario, *scenario.layout))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "/layout", no->reason,
                   "polyphony simulate predicts it");
  JobScript job;
  job.launcher = launcher_of(args);
  job.ranks = world_size(*scenario.layout);
  job.ranks_per_node = scenario.cluster.ranks_per_node;
  job.gpus = scenario.cluster.device.name != "cpu-core";
  job.worker = args.text("worker");
  job.scenario = std::filesystem::absolute(scenario.file).lexically_normal().string();
  job.out = args.text("run");
  job.arguments = args.text("with");
  if (args.has("phase")) add_phase_to(job, args.phase(), phases_of_file(scenario.file));
  job.hours = args.text("time");
  job.partition = args.text("partition");
  job.account = args.text("account");
  job.attempts = args.integer("attempts");
  if (job.attempts < 1)
    throw InputError("--attempts", "", "must be at least 1, got " + std::to_string(job.attempts),
                     "1: the run is not restarted");
  const std::string text = job_script(job);
  if (args.has("out"))
    write_file(args.text("out"), text);
  else if (!args.json())
    std::cout << text;
  if (args.json())
    std::cout << nlohmann::ordered_json{{"nodes", job.nodes()},
                                        {"ranks", job.ranks},
                                        {"ranks_per_node", job.ranks_per_node},
                                        {"script", text}}
                     .dump(2)
              << "\n";
  return 0;
}

}  // namespace polyphony::sim

#include "sim/cli/execution_trace.h"

#include <filesystem>

#include "sim/console/console.h"
#include "traces/chakra/execution_trace.h"

namespace polyphony::sim {

void add_execution_trace(Arguments& args) {
  args.add()(
      "execution-trace",
      "write the step as Chakra execution traces, which ASTRA-sim reads: FOLDER/rank.<r>.et, "
      "FOLDER/comm_groups.json",
      cxxopts::value<std::string>(), "FOLDER");
}

void write_execution_trace(const Arguments& args, const Program& program, const Timeline& timeline,
                           const Cluster& cluster, const HardwareProfile& profile) {
  if (!args.has("execution-trace")) return;
  const std::string folder = args.text("execution-trace");
  if (folder.empty())
    throw InputError("--execution-trace", "", "needs the name of a folder",
                     "such as --execution-trace et");
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);  // what failed, writing says
  Progress progress("execution trace");
  traces::ExecutionTraces traces(program, timeline, cluster, profile);
  write_file(folder + "/comm_groups.json", traces.groups());
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    progress.show(static_cast<double>(rank) / program.ranks);
    write_file(folder + "/rank." + std::to_string(rank) + ".et", traces.rank(Rank(rank)));
  }
}

}  // namespace polyphony::sim

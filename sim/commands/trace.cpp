// polyphony trace: prints where the time of GPUs goes, from profiler traces.
#include <iostream>

#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/measurements.h"
#include "sim/shown_runs/trace_text.h"

namespace polyphony::sim {
int trace_command(int argc, char** argv) {
  Arguments args(
      "trace",
      "Prints where the time of GPUs goes, from traces of PyTorch's profiler (Kineto's JSON, plain "
      "or .gz) or reports of Nsight Systems (exported to SQLite) of one or several ranks of a job. "
      "By rank and step: compute, communication and how "
      "much of "
      "it is overlapped with compute, copies, idle time; time by class of kernel; collectives with "
      "their bus bandwidth; GEMMs; unknown kernels; which rank is slow.",
      "TRACE...",
      "  polyphony trace rank0.pt.trace.json.gz\n  polyphony trace rank-*.json.gz --format json\n"
      "  polyphony trace runs/tiny       recorded by polyphony run --kineto\n"
      "Record with torch.profiler.profile(activities=[CPU, CUDA], record_shapes=True), call "
      "profiler.step() once a step,\nand export_chrome_trace(f\"rank-{rank}.json.gz\") on a few "
      "ranks. Of Nsight Systems: nsys export --type sqlite, and --step with\nthe name of the NVTX "
      "ranges that are steps.");
  args.add()("trace", "trace files, one of each rank, or the folder of a run with --kineto",
             cxxopts::value<std::vector<std::string>>())(
      "step", "how the names of the annotations that mark steps begin",
      cxxopts::value<std::string>()->default_value("ProfilerStep#"));
  args.add_csv();
  args.positional({"trace"});
  if (args.parse(argc, argv)) return 0;
  if (!args.has("trace"))
    throw InputError("polyphony trace", "", "needs trace files",
                     "polyphony trace --help shows an example");
  const traces::RankSet ranks = read_profiles(args.repeated("trace"), args.text("step"), "trace");
  if (args.json())
    std::cout << to_json(ranks).dump(2) << "\n";
  else
    std::cout << (args.csv() ? trace_csv(ranks) : trace_text(ranks));
  print_notes(ranks);
  return 0;
}

}  // namespace polyphony::sim

// polyphony trace: where the time of recorded devices goes.
#include <iostream>

#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/measurements.h"
#include "sim/shown/trace_text.h"

namespace polyphony::sim {
int trace_command(int argc, char** argv) {
  Arguments args(
      "trace",
      "Where the time of recorded devices goes: traces of PyTorch's profiler (Kineto's JSON, plain "
      "or .gz), "
      "one or several ranks of a job. By rank and step: compute, communication and what of it "
      "computation "
      "hides, copies, idle; time by class of kernel; collectives with their bus bandwidth; matrix "
      "products; "
      "kernels that no table knows; which rank is slow.",
      "TRACE...",
      "  polyphony trace rank0.pt.trace.json.gz\n  polyphony trace rank-*.json.gz --format json\n"
      "Record with torch.profiler.profile(activities=[CPU, CUDA], record_shapes=True), call "
      "profiler.step() once a step,\nand export_chrome_trace(f\"rank-{rank}.json.gz\") on a few "
      "ranks.");
  args.add()("trace", "files, one of each rank", cxxopts::value<std::vector<std::string>>())(
      "step", "annotations whose names begin so are the steps",
      cxxopts::value<std::string>()->default_value("ProfilerStep#"));
  args.add_csv();
  args.positional({"trace"});
  if (args.parse(argc, argv)) return 0;
  if (!args.has("trace"))
    throw InputError("polyphony trace", "", "no file is named", "polyphony trace --help");
  const traces::RankSet ranks = read_profiles(args.repeated("trace"), args.text("step"), "trace");
  if (args.json())
    std::cout << to_json(ranks).dump(2) << "\n";
  else
    std::cout << (args.csv() ? trace_csv(ranks) : trace_text(ranks));
  print_notes(ranks);
  return 0;
}

}  // namespace polyphony::sim

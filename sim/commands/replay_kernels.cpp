// polyphony replay TRACE...: replays a profiler's traces, also with something changed.
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "shared/form/degraded_ranks.h"
#include "shared/text/number_text.h"
#include "sim/cli/measurements.h"
#include "sim/commands/replay.h"
#include "sim/console/console.h"
#include "sim/replay/kernel_replay_json.h"
#include "sim/shown_runs/kernel_replay_text.h"

namespace polyphony::sim {
namespace {

constexpr const char* kOwn[] = {"links", "group", "fuse", "step"};

traces::GroupSize parse_group(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  char* end = nullptr;
  const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
  const long ranks = std::strtol(number.c_str(), &end, 10);
  if (number.empty() || *end != '\0' || ranks < 2 || ranks > 10'000'000)
    throw InputError("--group " + text, "", "is not of the form NAME=RANKS with RANKS of 2 or more",
                     "such as --group default_pg=16; polyphony trace lists the groups");
  return {text.substr(0, equals), static_cast<int>(ranks)};
}

double parse_links(const std::string& text) {
  const std::optional<double> times = number_of(text);
  if (!times || !(*times > 0))
    throw InputError("--links " + text, "", "must be a number above 0",
                     "2: links twice as fast; 0.5: half as fast");
  return *times;
}

std::vector<Degraded> parse_degraded(const Override& override) {
  const JsonValue value = JsonValue::parse(override.value, "--set " + override.text);
  value.check(degraded_ranks_form());
  std::vector<Degraded> ranks = read_degraded_ranks(value);
  for (const Degraded& slow : ranks) {
    if (slow.nic != 1 || slow.nic_of)
      throw InputError("--set " + override.text, "",
                       "which collectives cross a NIC is not in a profiler's trace",
                       "use \"link\", which changes all collectives of the rank");
    if (slow.link == 0)
      throw InputError("--set " + override.text, "",
                       "must be above 0: over a failed link no collective ends",
                       "the share of its rate that is left");
  }
  return ranks;
}

// What a profiler's trace cannot answer, and what to do.
[[noreturn]] void refuse_set(const Override& override) {
  const std::string& root = override.path.front();
  const std::string& last = override.path.back();
  std::string hint =
      "write the job as a scenario, fit a profile by its step time (polyphony calibrate --scenario "
      "FILE "
      "--step-time TIME), then polyphony simulate FILE --set " +
      override.text;
  if (root == "cluster" && (last == "link" || last == "nic" || last == "bus"))
    hint = "the trace has no rates, but they can be scaled: --links TIMES";
  if (root == "layout" && (last == "dp" || last == "ranks"))
    hint = "the groups of the trace have names: --group NAME=RANKS; or " + hint;
  throw InputError("--set " + override.text, "",
                   "needs the model, which a profiler's trace does not have", hint);
}

}  // namespace

void add_kernel_options(Arguments& args) {
  args.add()("links", "with profiler traces: make all links TIMES as fast",
             cxxopts::value<std::string>(), "TIMES")(
      "group", "with profiler traces: change the size of a process group; repeatable",
      cxxopts::value<std::vector<std::string>>(), "NAME=RANKS")(
      "fuse",
      "with profiler traces: fuse consecutive kernels of this class into one, as long as the "
      "longest; repeatable",
      cxxopts::value<std::vector<std::string>>(),
      "CLASS")("step",
               "with profiler traces: how the names of the annotations that mark steps begin "
               "(ProfilerStep#)",
               cxxopts::value<std::string>());
}

bool are_profiles(const Arguments& args) {
  if (args.has("scenario")) return false;
  for (const std::string& path : args.texts("runs"))
    if (!std::filesystem::is_regular_file(path)) return false;
  return true;
}

void refuse_kernel_options(const Arguments& args) {
  for (const char* option : kOwn)
    if (args.has(option))
      throw InputError(std::string("--") + option, "",
                       "is for traces of PyTorch's profiler; this is a run of polyphony",
                       "use --set, which changes the run's scenario, or --faster");
}

int replay_kernels_command(const Arguments& args) {
  traces::KernelChange change;
  std::vector<std::string> said;
  for (const char* option : {"vary", "profile", "stack", "execution-trace"})
    if (args.has(option))
      throw InputError(
          std::string("--") + option, "", "does not apply to traces of PyTorch's profiler",
          "one change at a time: --links, --group, --fuse, --faster, --set cluster.degraded");
  if (args.has("links")) {
    change.links = parse_links(args.text("links"));
    said.push_back("links " + args.text("links") + " times as fast");
  }
  for (const std::string& text : args.repeated("group")) {
    change.groups.push_back(parse_group(text));
    said.push_back("group " + text + " ranks");
  }
  for (const std::string& text : args.repeated("faster")) {
    change.faster.push_back(parse_speedup(text));
    said.push_back(text + " as fast");
  }
  for (const std::string& text : args.repeated("fuse")) {
    change.fused.push_back(text);
    said.push_back(text + " fused");
  }
  for (const Override& override : args.overrides()) {
    if (override.path != std::vector<std::string>{"cluster", "degraded"}) refuse_set(override);
    change.degraded = parse_degraded(override);
    said.push_back(override.text);
  }
  const std::vector<std::string> files = args.texts("runs");
  const traces::RankSet ranks =
      read_profiles(files, args.has("step") ? args.text("step") : "", "replay");
  for (const traces::DeviceTrace& trace : ranks.traces)
    if (trace.on_host)
      throw InputError(trace.file, "", "was recorded on a CPU: it has no kernels to replay",
                       "record ops with `polyphony run --trace-steps`, and name the run's folder");
    else if (trace.ours)
      throw InputError(trace.file, "", "is a trace of polyphony: it needs its scenario",
                       "name it with --scenario FILE, or give the folder of the run");
  const KernelReplayAnswer answer = replay_kernels(ranks, change, said);
  if (args.has("report"))
    write_file(args.text("report"), traces::to_html(kernel_replay_page(answer)));
  if (args.json())
    std::cout << to_json(answer).dump(2) << "\n";
  else
    std::cout << kernel_replay_text(answer);
  print_notes(ranks);
  return 0;
}

}  // namespace polyphony::sim

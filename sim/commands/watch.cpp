// polyphony watch: compares a running job with its prediction.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "shared/files/run_paths.h"
#include "shared/text/quantity_text.h"
#include "sim/commands/commands.h"

#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/console/signal_counter.h"
#include "sim/evidence/watched_steps.h"
#include "sim/shown_runs/watch_text.h"
#include "traces/format/metrics.h"

namespace polyphony::sim {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(500);

// What is new at the end of a file, and whether it was cut short meanwhile.
class Tail {
 public:
  explicit Tail(std::string path) : path_(std::move(path)) {}
  bool grow() {
    std::ifstream file(path_, std::ios::binary);
    if (!file) return false;
    file.seekg(0, std::ios::end);
    const std::streamoff size = file.tellg();
    if (size < read_) text_.clear(), read_ = 0;
    if (size == read_) return false;
    std::string more(static_cast<std::size_t>(size - read_), '\0');
    file.seekg(read_);
    file.read(more.data(), size - read_);
    more.resize(static_cast<std::size_t>(file.gcount()));
    read_ += file.gcount();
    text_ += more;
    return true;
  }
  // Whole lines while the file may still grow.
  std::string text(bool whole_lines) const {
    return whole_lines ? text_.substr(0, text_.rfind('\n') + 1) : text_;
  }

 private:
  std::string path_, text_;
  std::streamoff read_ = 0;
};

struct Job {
  std::string file;
  bool metrics = false;
  std::int64_t last = -1;  // step that ends it; -1: not known
};

Job job_of(const std::string& given) {
  if (std::filesystem::is_directory(given)) {
    const RunPaths paths{given};
    Job job{paths.metrics(), true, -1};
    if (std::filesystem::exists(paths.scenario()))
      job.last = read_scenario_file(paths.scenario()).training.steps - 1;
    return job;
  }
  if (!std::filesystem::exists(given))
    throw InputError(given, "", "no such file or folder", "name a run's folder, or a log");
  std::ifstream file(given);
  std::string first;
  std::getline(file, first);
  return {given, traces::parse_metrics_line(first).has_value(), -1};
}

Expected expected_by(const std::string& file) { return read_expected(read_file(file), file); }

Seconds idle_of(const Arguments& args) {
  try {
    return parse_seconds(args.text("idle"));
  } catch (const InputError& error) {
    throw InputError("--idle", "", error.what_is_wrong, error.hint);
  }
}

class Watcher {
 public:
  Watcher(const Arguments& args, Job job)
      : job_(std::move(job)),
        expected_(expected_by(args.require("prediction"))),
        json_(args.json()) {
    // Tokens of one rank in a step, so that time_of() has a step from a rank's rate.
    work_.ranks = 1;
    work_.tokens = std::llround(expected_.tokens_per_second_per_rank * expected_.step.count());
    if (args.has("batch")) work_.samples = args.integer("batch");
  }

  // Nothing that is a step yet: a job that has just begun is none of ours to refuse.
  void look(const std::string& text, bool done) {
    WatchedJob seen;
    try {
      seen = job_.metrics ? job_of_metrics(text) : read_log(text);
    } catch (const InputError&) {
      if (done) throw;
      return;
    }
    if (seen.steps.empty()) {
      if (done) throw InputError(job_.file, "", "has no step", "give the job's metrics or log");
      return;
    }
    last_ = seen.steps.back().step;
    if (seen.bad_steps != bad_steps_ && !json_) std::cout << seen.bad_steps << std::endl;
    bad_steps_ = seen.bad_steps;
    report_ =
        watch(expected_, seen.steps, done ? seen.ranks : std::map<int, std::vector<Seconds>>{});
    for (; told_ < report_.events.size() && !json_; ++told_)
      std::cout << event_text(report_.events[told_]) << std::endl;
  }

  bool ended() const { return job_.last >= 0 && last_ >= job_.last; }

  int finish() const {
    if (json_) {
      auto answer = to_json(report_, expected_);
      if (!bad_steps_.empty()) answer["bad_steps"] = bad_steps_;
      std::cout << answer.dump(2) << "\n";
    } else {
      std::cout << watch_text(report_, expected_);
    }
    return report_.left() ? 1 : 0;
  }

 private:
  WatchedJob read_log(const std::string& text) const {
    const traces::FrameworkLog log = traces::read_framework_log(text, job_.file);
    if (const auto line = line_without_time(log, work_))
      throw InputError(job_.file + ":" + std::to_string(*line), "",
                       "says samples a second, of how many samples a step?",
                       "add --batch, the global batch");
    return job_of_log(log, work_);
  }

  Job job_;
  Expected expected_;
  bool json_;
  traces::StepWork work_;
  WatchReport report_;
  std::size_t told_ = 0;
  std::int64_t last_ = -1;
  std::string bad_steps_;
};

}  // namespace

int watch_command(int argc, char** argv) {
  Arguments args(
      "watch",
      "Compares a running job with its prediction, and prints when and in which phase it leaves "
      "the "
      "predicted interval: 8 of 10 steps in a row outside, on one side. Also prints when it "
      "becomes "
      "slower or faster than its own first steps (CUSUM), and which ranks are slow where the log "
      "has "
      "them. Ends with the run, at Ctrl-C, or after --idle. Exit code: 0 it stayed inside, 1 it "
      "left.",
      "RUN_OR_LOG",
      "  polyphony simulate today.json --profile ours.json --format json > prediction.json\n"
      "  polyphony watch runs/today --prediction prediction.json\n"
      "  polyphony watch slurm-123.out --prediction prediction.json --once   # a finished one\n"
      "Logs: Megatron-LM, Megatron-Bridge, torchtitan, DeepSpeed (phases by its "
      "wall_clock_breakdown).");
  args.add()("run", "a run's folder, its metrics.jsonl, or a framework's log",
             cxxopts::value<std::string>())(
      "prediction", "what polyphony simulate --format json printed", cxxopts::value<std::string>())(
      "once", "look at what is there, and end")(
      "batch", "samples of a step, where a log of DeepSpeed says samples a second",
      cxxopts::value<int>())("idle", "end after so long without a new line; 0s: never",
                             cxxopts::value<std::string>()->default_value("0s"));
  args.positional({"run"});
  if (args.parse(argc, argv)) return 0;
  if (!args.has("run"))
    throw InputError("polyphony watch", "", "needs a run's folder or a log",
                     "polyphony watch --help shows an example");
  const Job job = job_of(args.text("run"));
  const Seconds idle = idle_of(args);
  Watcher watcher(args, job);
  Tail tail(job.file);
  const SignalCounter signals({SIGINT, SIGTERM}, SignalCounter::Second::ends);
  auto grown = std::chrono::steady_clock::now();
  while (!args.has("once")) {
    if (tail.grow()) {
      grown = std::chrono::steady_clock::now();
      watcher.look(tail.text(true), false);
    }
    const Seconds quiet = std::chrono::steady_clock::now() - grown;
    if (watcher.ended() || SignalCounter::seen() > 0 || (idle > Seconds(0) && quiet > idle)) break;
    std::this_thread::sleep_for(kPoll);
  }
  tail.grow();
  watcher.look(tail.text(false), true);
  return watcher.finish();
}

}  // namespace polyphony::sim

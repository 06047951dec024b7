#include "exec/worker/kineto.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "exec/runner/clock.h"
#include "shared/data/batch_json.h"
#include "shared/error.h"
#include "shared/files/whole.h"
#include "traces/kineto/bytes.h"

namespace torch::autograd::profiler {
// Adds a key to the profile that is being recorded. Declared here because its header,
// torch/csrc/profiler/kineto_shim.h, includes a header of Kineto that is not in LibTorch's include
// path.
TORCH_API void addMetadataJson(const std::string& key, const std::string& value);
}  // namespace torch::autograd::profiler

namespace polyphony::exec {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

profiler::ProfilerConfig config() {
  torch::profiler::impl::ExperimentalConfig all;
  all.profile_all_threads = true;  // by default only the thread that starts the profiler
  return profiler::ProfilerConfig(torch::profiler::impl::ProfilerState::KINETO,
                                  /*report_input_shapes=*/true, /*profile_memory=*/false,
                                  /*with_stack=*/false, /*with_flops=*/false,
                                  /*with_modules=*/false, all);
}

std::set<ActivityType> activities(torch::Device device) {
  std::set<ActivityType> found{ActivityType::CPU};
  if (device.is_cuda()) found.insert(ActivityType::CUDA);
  return found;
}

// Returns how far the Unix clock, with whose times Kineto writes, is ahead of steady_now(). The two
// are not read at the same time: of a few readings, that in the shortest time is used.
std::int64_t unix_ahead_ns() {
  using std::chrono::nanoseconds;
  nanoseconds shortest = nanoseconds::max(), ahead{};
  for (int i = 0; i < 16; ++i) {
    const auto before = std::chrono::steady_clock::now();
    const auto unix = std::chrono::system_clock::now();
    const auto after = std::chrono::steady_clock::now();
    if (after - before >= shortest) continue;
    shortest = after - before;
    ahead = unix.time_since_epoch() - (before.time_since_epoch() + shortest / 2);
  }
  return ahead.count();
}

// Returns the offset to add to Unix times of this rank to get those of rank 0. Collective.
traces::ClockSample compare_unix_clocks(Transport& transport) {
  constexpr std::uint64_t kTag = kTagEnd - 14;  // compare_clock() has the two below
  traces::ClockSample sample = compare_clock(transport);
  torch::Tensor ahead = torch::full({1}, unix_ahead_ns(), torch::kInt64);
  if (transport.rank() == Rank(0)) {
    for (int r = 1; r < transport.world_size(); ++r)
      transport.send(ahead, Rank(static_cast<std::size_t>(r)), kTag);
    return sample;
  }
  const std::int64_t own = ahead.item<std::int64_t>();
  transport.receive(ahead, Rank(0), kTag);
  sample.offset += std::chrono::nanoseconds(ahead.item<std::int64_t>() - own);
  // As in compare_clock(): smaller than the error, it cannot be told from zero.
  if (std::abs(sample.offset.count()) <= sample.error.count()) sample.offset = Seconds(0);
  return sample;
}

std::int64_t nanoseconds(Seconds time) {
  return static_cast<std::int64_t>(std::llround(time.count() * 1e9));
}

}  // namespace

KinetoRecorder::KinetoRecorder(std::string folder, StepList steps, Transport& transport,
                               const Dataset& dataset, torch::Device device)
    : paths_{std::move(folder)},
      steps_(std::move(steps)),
      transport_(transport),
      dataset_(dataset),
      device_(device) {}

KinetoRecorder::~KinetoRecorder() {
  annotation_.reset();
  if (!running_) return;
  try {
    profiler::disableProfiler();
  } catch (const std::exception&) {  // the step has failed, which is reported
  }
}

void KinetoRecorder::begin(std::int64_t step) {
  step_ = step;
  clock_ = compare_unix_clocks(transport_);
  profiler::prepareProfiler(config(), activities(device_));
  // Preparing can take seconds on a GPU; ranks that are ready would record it as a wait for a peer.
  transport_.barrier();
  profiler::enableProfiler(config(), activities(device_));
  running_ = true;
  annotation_.emplace(at::RecordScope::USER_SCOPE);
  annotation_->before("ProfilerStep#" + std::to_string(step));
}

void KinetoRecorder::end(Runner& runner, std::size_t ops, bool late) {
  if (!device_.is_cpu()) {
    runner.times();  // waits for the ops, and notices a lost peer meanwhile
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  }
  annotation_.reset();
  const std::uint32_t rank = transport_.rank().value;
  // With the spaces for which HolisticTraceAnalysis searches.
  profiler::addMetadataJson(
      "distributedInfo", "{\"rank\": " + std::to_string(rank) +
                             ", \"world_size\": " + std::to_string(transport_.world_size()) + "}");
  nlohmann::json head{
      {"format", 1},
      {"kind", "profiled"},
      {"step", step_},
      {"ops", ops},
      {"on_device", !device_.is_cpu()},
      {"clock",
       {{"offset_ns", nanoseconds(clock_.offset)}, {"error_ns", nanoseconds(clock_.error)}}}};
  if (late) head["late_plan"] = true;
  profiler::addMetadataJson("polyphony", head.dump());
  running_ = false;
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  if (!failed_.empty()) return;
  const std::string path = paths_.kineto(step_, rank), partial = path + kPartialSuffix;
  std::error_code ignored;  // a failure shows when writing
  std::filesystem::create_directories(paths_.kineto(), ignored);
  try {
    // Kineto does not report that a write has failed: the file is then missing, or lacks the end.
    result->save(partial);
    std::string text;
    if (std::filesystem::exists(partial)) text = read_records(partial);
    const std::string end = "\"traceName\": \"" + partial + "\"\n}";
    const std::size_t at = text.rfind(end);
    if (at == std::string::npos) throw std::runtime_error(path + ": cannot be written");
    text.replace(at, end.size(), "\"traceName\": " + nlohmann::json(path).dump() + "\n}");
    write_file(path, traces::packed(text));
    add_batch();
  } catch (const std::exception& error) {
    failed_ = error.what();
    std::cerr << "polyphony-worker: rank " << rank << ": --kineto stops: " << failed_ << std::endl;
  }
  std::filesystem::remove(partial, ignored);
  std::filesystem::remove(partial + ".tmp", ignored);
}

void KinetoRecorder::add_batch() {
  if (transport_.rank() != Rank(0)) return;
  const auto step = static_cast<std::uint64_t>(step_);
  if (batches_.empty() && std::filesystem::exists(paths_.kineto_batches()))
    batches_ = read_records(paths_.kineto_batches());  // of an earlier part of the run
  batches_ = to_json_line(step, dataset_.batch(step)) + "\n" + batches_;
  write_file(paths_.kineto_batches(), batches_);
}

void KinetoRecorder::finish() const {
  if (!failed_.empty())
    throw InputError("--kineto", "", failed_, "free some disk space or choose another folder");
}

}  // namespace polyphony::exec

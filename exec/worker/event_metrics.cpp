#include "exec/worker/event_metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "exec/system/process.h"

namespace polyphony::exec {
namespace {

constexpr Seconds kFlushEvery{1};  // a step may take 2 ms, and a reader looks every few seconds

// Returns the seconds since 1970.
double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return host[0] ? host : "localhost";
}

// Creates a file that does not exist yet and sets `path` to its path. An attempt that begins in the
// same second as the one before it gets a later name, because names state the order of files.
int create(const std::string& folder, std::int64_t seconds, std::string& path) {
  const std::string host = host_name();
  while (true) {
    path = folder + "/" + traces::event_file_name(seconds, host);
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
    ++seconds;
  }
}

std::vector<traces::Scalar> scalars(const traces::StepMetrics& step) {
  return {{"train/loss", static_cast<float>(step.loss)},
          {"train/gradient_norm", static_cast<float>(step.gradient_norm)},
          {"train/learning_rate", static_cast<float>(step.learning_rate)},
          {"train/step_seconds", static_cast<float>(step.seconds.count())},
          {"train/samples_per_second", static_cast<float>(step.samples_per_second)},
          {"train/data_wait_seconds", static_cast<float>(step.waited.count())},
          {"train/checkpoint_wait_seconds", static_cast<float>(step.saving.count())},
          {"train/skipped", step.skipped ? 1.0f : 0.0f}};
}
std::vector<traces::Scalar> scalars(const traces::Accuracy& accuracy) {
  std::vector<traces::Scalar> all = {{"eval/accuracy", static_cast<float>(accuracy.share)}};
  if (accuracy.loss) all.push_back({"eval/loss", static_cast<float>(*accuracy.loss)});
  return all;
}

std::vector<traces::Scalar> scalars(const traces::Rewind& rewind) {
  return {{"train/rewinds", static_cast<float>(rewind.number)}};
}

std::string record(const traces::MetricsLine& line) {
  const std::int64_t step = std::visit([](const auto& l) { return l.step; }, line);
  return traces::event_record(step, wall_time(), scalars_of(line));
}

}  // namespace

std::vector<traces::Scalar> scalars_of(const traces::MetricsLine& line) {
  return std::visit([](const auto& l) { return scalars(l); }, line);
}

EventMetrics::EventMetrics(const std::string& folder, Rank rank, std::int64_t done,
                           std::span<const traces::MetricsLine> kept)
    : file_(folder.empty() || rank.value != 0
                ? -1
                : create(folder, static_cast<std::int64_t>(wall_time()), path_)) {
  if (path_.empty()) return;
  if (file_ < 0) fail_to_write(path_, errno);
  pending_ = traces::event_file_head(wall_time(), done);
  // TensorBoard drops all values of step `done`. The accuracy after `done` steps remains valid, so
  // it is written again.
  for (const traces::MetricsLine& line : kept)
    if (const auto* accuracy = std::get_if<traces::Accuracy>(&line))
      if (accuracy->step == done) pending_ += record(line);
  if (const int error = write_pending()) fail_to_write(path_, error);
}

EventMetrics::~EventMetrics() { write_pending(); }

void EventMetrics::write(const traces::MetricsLine& line) {
  if (path_.empty()) return;
  pending_ += record(line);
  if (steady_now() - flushed_ < kFlushEvery) return;
  if (const int error = write_pending()) fail_to_write(path_, error);
}

const std::string& EventMetrics::flush() {
  if (path_.empty()) return path_;
  if (const int error = write_pending()) fail_to_write(path_, error);
  return path_;
}

int EventMetrics::write_pending() {
  flushed_ = steady_now();
  // Records are dropped even if the write fails: part of them may be in the file already.
  const std::string records = std::exchange(pending_, {});
  return write_all(file_, records.data(), records.size());
}

}  // namespace polyphony::exec

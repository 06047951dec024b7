#include "exec/worker/recorder.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "exec/runner/clock.h"
#include "exec/system/process.h"
#include "shared/data/batch_json.h"
#include "shared/error.h"
#include "shared/files/whole.h"
#include "traces/format/chrome_json.h"

namespace polyphony::exec {

Recorder::Recorder(std::string folder, std::int64_t first, std::int64_t last, Transport& transport,
                   const Dataset& dataset)
    : paths_{std::move(folder)},
      first_(first),
      last_(last),
      transport_(transport),
      dataset_(dataset) {}

void Recorder::write(std::ofstream& file, const std::string& path, const std::string& bytes) {
  if (!failed_.empty()) return;
  file << bytes << std::flush;
  if (file) return;
  failed_ = path;
  std::cerr << "polyphony-worker: rank " << transport_.rank().value << ": " << path
            << " cannot be written: recording stops" << std::endl;
}

void Recorder::open() {
  std::error_code failed;
  std::filesystem::create_directories(paths_.traces(), failed);  // a failure shows when writing
  const std::string path = paths_.journal(transport_.rank().value);
  journal_.open(path, std::ios::binary | std::ios::trunc);
  write(journal_, path, traces::journal_head());
  if (transport_.rank() != Rank(0)) return;
  std::filesystem::remove(paths_.plans(), failed);  // left by an earlier part of the run
  batches_.open(paths_.batches(), std::ios::trunc);
  write(batches_, paths_.batches(), "");
}

void Recorder::compare_clocks() {
  const traces::ClockSample sample = compare_clock(transport_);
  write(journal_, paths_.journal(transport_.rank().value), traces::journal_entry(sample));
}

void Recorder::begin() {
  if (journal_.is_open()) return;
  transport_.barrier();  // rank 0 has cleared the folder
  open();
  compare_clocks();
}

void Recorder::add(traces::JournalStep step) {
  const Seconds began = steady_now();
  step.recorded_in = took_;
  const std::uint32_t rank = transport_.rank().value;
  steps_.push_back(static_cast<std::int64_t>(step.step));
  write(journal_, paths_.journal(rank), traces::journal_entry(step));
  if (rank == 0)
    write(batches_, paths_.batches(), to_json_line(step.step, dataset_.batch(step.step)) + "\n");
  took_ = steady_now() - began;
}

void Recorder::finish(const std::function<WholeStep(std::int64_t)>& whole) {
  if (steps_.empty()) return;
  compare_clocks();
  journal_.close();
  batches_.close();
  const Rank rank = transport_.rank();
  const std::string path = paths_.journal(rank.value);
  std::ifstream file(path, std::ios::binary);
  traces::JournalReader journal(file, path);
  std::string plans;
  for (const std::int64_t number : steps_) {
    const WholeStep step = whole(number);
    std::optional<traces::JournalStep> recorded = journal.read(static_cast<std::uint64_t>(number));
    if (!recorded) continue;
    traces::TraceNotes notes;
    notes.late_plan = recorded->late_plan;
    const Seconds begin = recorded->ops.empty() ? Seconds(0) : recorded->ops.front().start;
    notes.clock = traces::ClockNote{journal.clock().offset(begin), journal.clock().error(),
                                    journal.clock().drift()};
    move_to(journal.clock(), *recorded);
    notes.data = recorded->data;
    notes.recorded_in = recorded->recorded_in;
    Timeline timeline;
    timeline.ops = std::move(recorded->ops);
    for (OpTime& time : timeline.ops) {
      time.op = OpId(time.op.value + step.program.ops_of(rank).begin);
      timeline.makespan = std::max(timeline.makespan, time.end);
    }
    write_file(paths_.trace(number, rank.value),
               traces::write_trace(step.program, timeline, traces::TraceKind::measured,
                                   static_cast<std::uint64_t>(number), notes));
    if (step.live) plans += plans_entry(*step.live);
  }
  if (rank == Rank(0) && !plans.empty()) write_file(paths_.plans(), plans_head() + plans);
  if (!failed_.empty())
    throw InputError(failed_, "", "could not be written while training",
                     "free some disk space or choose another folder");
  file.close();
  std::error_code kept;
  std::filesystem::remove(path, kept);
}

}  // namespace polyphony::exec

#include "exec/runner/device_streams.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "exec/on_device.h"
#include "exec/system/process.h"
#include "shared/error.h"

namespace polyphony::exec {

DeviceStreams::DeviceStreams(torch::Device device)
    : device_(device), compute_(default_stream(device)) {}

void DeviceStreams::begin(const Program& program, Rank rank) {
  program_ = &program;
  rank_ = rank;
  first_op_ = program.ops_of(rank).begin;
  ops_ = program.ops_of(rank).size();
  const c10::impl::VirtualGuardImpl guard(device_.type());
  of_stream_.assign(program.streams.size(), compute_);
  for (std::size_t s = 0; s < program.streams.size(); ++s) {
    const Stream& stream = program.streams[s];
    if (stream.rank != rank || stream.kind == StreamKind::compute) continue;
    auto found = named_.find(stream.name);
    if (found == named_.end())
      found = named_.emplace(stream.name, guard.getStreamFromGlobalPool(device_)).first;
    of_stream_[s] = found->second;
  }
  while (events_.size() < ops_)
    events_.push_back({c10::Event(device_.type(), c10::EventFlag::BACKEND_DEFAULT),
                       c10::Event(device_.type(), c10::EventFlag::BACKEND_DEFAULT)});
  phases_ = std::vector<std::atomic<std::uint8_t>>(ops_);
  c10::Event before(device_.type());
  before.record(compute_);
  for (const auto& [name, stream] : named_) before.block(stream);
}

void DeviceStreams::start(OpId id) {
  const Op& op = program_->ops[id.value];
  const c10::Stream own = of(op);
  for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w) {
    const OpId before = program_->waits[w];
    if (of(program_->ops[before.value]) != own) events(before).end.block(own);
  }
  events(id).start.record(own);
  phases_[id.value - first_op_] = begun;
}

void DeviceStreams::end(OpId id) {
  events(id).end.record(of(program_->ops[id.value]));
  phases_[id.value - first_op_] = queued;
}

std::string DeviceStreams::unended() const {
  std::string text;
  for (std::size_t i = 0; i < ops_; ++i) {
    const std::uint8_t phase = phases_[i];
    const auto& [start, end] = events_[i];
    if (phase == none || !start.query() || (phase == queued && end.query())) continue;
    text += (text.empty() ? "" : "; ") + describe(*program_, OpId(first_op_ + i));
  }
  if (text.empty()) return text;
  return " (begun on rank " + std::to_string(rank_.value) + " and not ended: " + text + ")";
}

void DeviceStreams::finish() {
  for (const auto& [name, stream] : named_) {
    c10::Event last(device_.type());
    last.record(stream);
    last.block(compute_);
  }
}

// An event on an idle stream is reached between the host's call and its return. The shortest of a
// few such intervals maps the device's clock to the host's.
std::vector<OpTime> DeviceStreams::times() {
  constexpr int kLooks = 8;
  compute_.synchronize();
  std::deque<c10::Event> marks;
  std::size_t best = 0;
  Seconds middle{}, width = Seconds::max();
  for (std::size_t look = 0; look < kLooks; ++look) {
    c10::Event& mark = marks.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    const Seconds before = steady_now();
    mark.record(compute_);
    mark.synchronize();
    const Seconds after = steady_now();
    if (after - before >= width) continue;
    best = look;
    width = after - before;
    middle = before + width / 2;
  }
  const auto at = [&](const c10::Event& event) {
    return middle - Seconds(event.elapsedTime(marks[best]) * 1e-3);  // milliseconds
  };
  std::vector<OpTime> times;
  for (std::size_t i = 0; i < ops_; ++i)
    times.push_back({OpId(first_op_ + i), at(events_[i].start), at(events_[i].end)});
  return times;
}

}  // namespace polyphony::exec

#include "exec/runner/device_streams.h"

#include <algorithm>

#include "exec/on_device.h"
#include "exec/system/process.h"
#include "shared/error.h"

namespace polyphony::exec {

DeviceStreams::DeviceStreams(torch::Device device)
    : device_(device), compute_(default_stream(device)) {}

void DeviceStreams::begin(const Program& program, Rank rank, bool by_peer) {
  const std::scoped_lock lock(mutex_);
  program_ = &program;
  rank_ = rank;
  first_op_ = program.ops_of(rank).begin;
  ops_ = program.ops_of(rank).size();
  parts_.clear();
  prepared_.clear();
  later_starts_.clear();
  of_stream_.assign(program.streams.size(), compute_);
  for (std::size_t s = 0; s < program.streams.size(); ++s) {
    const Stream& stream = program.streams[s];
    if (stream.rank != rank || stream.kind == StreamKind::compute) continue;
    const bool messages = stream.kind == StreamKind::send || stream.kind == StreamKind::receive;
    if (!messages || !by_peer) of_stream_[s] = named(stream.name);
  }
  while (events_.size() < ops_)
    events_.push_back({c10::Event(device_.type(), c10::EventFlag::BACKEND_DEFAULT),
                       c10::Event(device_.type(), c10::EventFlag::BACKEND_DEFAULT)});
  phases_ = std::vector<std::atomic<std::uint8_t>>(ops_);
  ran_on_.assign(ops_, compute_);
  c10::Event before(device_.type());
  before.record(compute_);
  for (const auto& [name, stream] : named_) before.block(stream.get());
}

// Returns the stream of this name, which begins with what is queued on the compute stream now.
const c10::Stream& DeviceStreams::named(const std::string& name) {
  const auto [found, fresh] = named_.try_emplace(name, device_, Priority::urgent);
  if (fresh) {
    c10::Event before(device_.type());
    before.record(compute_);
    before.block(found->second.get());
  }
  return found->second.get();
}

c10::Stream DeviceStreams::of_messages(bool sends, Rank peer) {
  return named((sends ? "to " : "from ") + std::to_string(peer.value));
}

void DeviceStreams::start(OpId id, const c10::Stream& stream, bool first) {
  const Op& op = program_->ops[id.value];
  for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w) {
    const OpId before = program_->waits[w];
    if (ran_on_[before.value - first_op_] != stream) events(before).end.block(stream);
  }
  if (const auto ready = prepared_.find(id); !first && ready != prepared_.end())
    ready->second.block(stream);
  c10::Event& start =
      first ? events(id).start
            : later_starts_
                  .emplace_back(id, c10::Event(device_.type(), c10::EventFlag::BACKEND_DEFAULT))
                  .second;
  start.record(stream);
  phases_[id.value - first_op_] = begun;
}

void DeviceStreams::prepared(OpId id, const c10::Stream& stream) {
  prepared_.try_emplace(id, device_.type()).first->second.record(stream);
}

void DeviceStreams::end(OpId id, const c10::Stream& stream, bool last) {
  if (!last) {
    parts_[id].push_back(stream);
    return;
  }
  if (const auto parts = parts_.extract(id))
    for (const c10::Stream& part : parts.mapped()) {
      if (part == stream) continue;
      c10::Event done(device_.type());
      done.record(part);
      done.block(stream);
    }
  events(id).end.record(stream);
  ran_on_[id.value - first_op_] = stream;
  phases_[id.value - first_op_] = queued;
}

std::string DeviceStreams::unended() const {
  const std::scoped_lock lock(mutex_);
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
    last.record(stream.get());
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
  // Launches of an op are on streams of their own, of which any may be the first to get there.
  for (const auto& [op, start] : later_starts_) {
    OpTime& time = times[op.value - first_op_];
    time.start = std::min(time.start, at(start));
  }
  return times;
}

}  // namespace polyphony::exec

#include "shared/graph/memory.h"

#include <algorithm>
#include <tuple>

#include "shared/error.h"
#include "shared/graph/memory_curves.h"

namespace polyphony {
namespace {

constexpr std::uint32_t kNoBuffer = 0xffffffffu;
static_assert(static_cast<std::size_t>(BufferKind::host) + 1 == kBufferKinds);

using ByKind = std::array<Bytes, kBufferKinds>;

// Returns the memory on the device.
Bytes total(const ByKind& bytes) {
  Bytes sum{};
  for (const Bytes kind : bytes) sum += kind;
  return sum - bytes[static_cast<std::size_t>(BufferKind::host)];
}

// Finds the time of an op in a Timeline, which may have the ops of one rank only.
class Times {
 public:
  Times(const Program& program, const Timeline& timeline) : timeline_(timeline) {
    if (timeline.ops.size() == program.ops.size()) return;
    positions_.assign(program.ops.size(), kNoBuffer);
    for (std::uint32_t i = 0; i < timeline.ops.size(); ++i) {
      POLYPHONY_CHECK(timeline.ops[i].op.value < program.ops.size(), timeline.ops[i].op.value);
      positions_[timeline.ops[i].op.value] = i;
    }
  }

  // Returns null if the op was not recorded.
  const OpTime* find(std::uint32_t op) const {
    const std::uint32_t position = positions_.empty() ? op : positions_[op];
    return position == kNoBuffer ? nullptr : &timeline_.ops[position];
  }

 private:
  const Timeline& timeline_;
  std::vector<std::uint32_t> positions_;  // empty: op ids are positions
};

// The order of changes at the same time: first, buffers are freed by ops that started earlier, then
// new ones are allocated, then ops of zero duration free buffers.
enum class Action : std::uint8_t { free, allocate, free_at_once };

struct Change {
  Seconds time{};
  Action action = Action::allocate;
  BufferKind kind = BufferKind::tape;
  Bytes bytes{};  // negative when freed
  bool operator<(const Change& other) const {
    return std::tie(time, action) < std::tie(other.time, other.action);
  }
};

// Returns the memory that is resident for the whole step, by rank.
std::vector<ByKind> resident(const Program& program) {
  std::vector<char> allocated(program.buffers.size(), 0);
  for (const BufferUse& use : program.buffer_uses) {
    if (use.use == Use::allocate) allocated[use.buffer.value] = 1;
  }
  std::vector<ByKind> result(program.ranks);
  for (const ParamGroup& params : program.params) {
    result[params.rank.value][static_cast<std::size_t>(BufferKind::parameter)] += params.bytes;
  }
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    const bool state = buffer.kind == BufferKind::parameter ||
                       buffer.kind == BufferKind::gradient || buffer.kind == BufferKind::optimizer;
    if (!state || allocated[i]) continue;
    result[buffer.rank.value][static_cast<std::size_t>(buffer.kind)] += buffer.bytes;
  }
  return result;
}

void gather(const Program& program, const Times& times, Rank rank, std::vector<Change>& changes) {
  changes.clear();
  const Range range = program.ops_of(rank);
  for (std::uint32_t op = range.begin; op < range.end; ++op) {
    const OpTime* time = times.find(op);
    if (time == nullptr) continue;
    const Range uses = program.ops[op].buffers;
    for (std::uint32_t i = uses.begin; i < uses.end; ++i) {
      const BufferUse& use = program.buffer_uses[i];
      const Buffer& buffer = program.buffers[use.buffer.value];
      if (use.use == Use::allocate) {
        changes.push_back({time->start, Action::allocate, buffer.kind, buffer.bytes});
      } else if (use.use == Use::free) {
        const Action action = time->end > time->start ? Action::free : Action::free_at_once;
        changes.push_back({time->end, action, buffer.kind, Bytes(-buffer.bytes.value)});
      }
    }
  }
  std::stable_sort(changes.begin(), changes.end());
}

RankMemory find_peak(const ByKind& at_start, const std::vector<Change>& changes) {
  RankMemory result{total(at_start), Seconds(0), at_start, {}};
  ByKind now = at_start;
  Bytes sum = result.peak, host{};
  for (const Change& change : changes) {
    Bytes& kind = now[static_cast<std::size_t>(change.kind)];
    kind += change.bytes;
    if (change.kind == BufferKind::host) {
      host = std::max(host, kind);
      continue;
    }
    sum += change.bytes;
    if (sum > result.peak) result = {sum, change.time, now, {}};
  }
  result.host = host;
  return result;
}

MemoryCurve curve_of(Bytes device, const std::vector<Change>& changes) {
  const Seconds begin = changes.empty() ? Seconds(0) : std::min(Seconds(0), changes.front().time);
  MemoryCurve curve{{{begin, device}}, {}};
  Bytes host{};
  for (const Change& change : changes) {
    const bool on_host = change.kind == BufferKind::host;
    MemoryCurve::Points& points = on_host ? curve.host : curve.device;
    Bytes& sum = on_host ? host : device;
    sum += change.bytes;
    const bool falls_at_once =
        change.action == Action::free_at_once && !points.empty() && sum < points.back().second;
    if (points.empty() || points.back().first != change.time || falls_at_once)
      points.emplace_back(change.time, sum);
    points.back().second = sum;
  }
  return curve;
}

}  // namespace

std::vector<RankMemory> predict_memory(const Program& program, const Timeline& timeline) {
  const Times times(program, timeline);
  const std::vector<ByKind> at_start = resident(program);
  std::vector<RankMemory> result;
  result.reserve(program.ranks);
  std::vector<Change> changes;
  for (std::size_t rank = 0; rank < program.ranks; ++rank) {
    gather(program, times, Rank(rank), changes);
    result.push_back(find_peak(at_start[rank], changes));
  }
  return result;
}

std::vector<std::pair<Seconds, Bytes>> memory_curve(const Program& program,
                                                    const Timeline& timeline, Rank rank) {
  return memory_curves(program, timeline, {rank}).front().device;
}

std::vector<MemoryCurve> memory_curves(const Program& program, const Timeline& timeline,
                                       const std::vector<Rank>& ranks) {
  const Times times(program, timeline);
  const std::vector<ByKind> at_start = resident(program);
  std::vector<MemoryCurve> curves;
  std::vector<Change> changes;
  for (const Rank rank : ranks) {
    gather(program, times, rank, changes);
    curves.push_back(curve_of(total(at_start[rank.value]), changes));
  }
  return curves;
}

}  // namespace polyphony

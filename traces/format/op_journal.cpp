#include "traces/format/op_journal.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "shared/error.h"
#include "shared/fnv.h"

namespace polyphony::traces {
namespace {

constexpr std::string_view kHead = "polyphony journal 1\n";
constexpr const char* kHint = "remove it; the steps in other files of the run remain usable";
enum class Kind : std::uint8_t { clock = 1, step = 2 };

template <class Number>
void put(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put(std::string& bytes, Seconds time) { put(bytes, time.count()); }

std::string sealed(const std::string& payload) {
  std::string entry;
  put(entry, std::uint64_t{payload.size()});
  entry += payload;
  Fnv seal;
  seal.add(payload);
  put(entry, seal.value());
  return entry;
}

// Reads sequentially. `short_of` is set once fewer bytes were left than requested.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  template <class Number>
  Number take() {
    Number value{};
    if (rest_.size() < sizeof value) {
      short_of_ = true;
      rest_ = {};
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  Seconds time() { return Seconds(take<double>()); }
  std::size_t left() const { return rest_.size(); }
  bool whole() const { return !short_of_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool short_of_ = false;
};

// Size of one op in an entry.
constexpr std::size_t kOpBytes = sizeof(std::uint32_t) + 3 * sizeof(double);

// Returns the next entry; nothing at the end of the file, or if the entry is truncated.
std::optional<std::string> next(std::istream& in, const std::string& file, std::uint64_t& left) {
  std::uint64_t length = 0, seal = 0;
  if (left < sizeof length || !in.read(reinterpret_cast<char*>(&length), sizeof length)) return {};
  left -= sizeof length;
  if (left < sizeof seal || length > left - sizeof seal) return {};
  std::string payload(length, '\0');
  if (!in.read(payload.data(), static_cast<std::streamsize>(length)) ||
      !in.read(reinterpret_cast<char*>(&seal), sizeof seal))
    return {};
  left -= length + sizeof seal;
  Fnv expected;
  expected.add(payload);
  if (expected.value() != seal) throw InputError(file, "", "is damaged", kHint);
  return payload;
}

}  // namespace

RankClock::RankClock(std::vector<ClockSample> samples) : samples_(std::move(samples)) {}

Seconds RankClock::offset(Seconds at) const {
  if (samples_.empty()) return {};
  const auto after = std::find_if(samples_.begin(), samples_.end(),
                                  [&](const ClockSample& sample) { return sample.at > at; });
  if (after == samples_.begin()) return after->offset;
  const ClockSample& before = *(after - 1);
  if (after == samples_.end()) return before.offset;
  const double part = (at - before.at) / (after->at - before.at);
  return before.offset + part * (after->offset - before.offset);
}

Seconds RankClock::error() const {
  Seconds worst{};
  for (const ClockSample& sample : samples_) worst = std::max(worst, sample.error);
  return worst;
}

double RankClock::drift() const {
  if (samples_.size() < 2 || samples_.back().at <= samples_.front().at) return 0;
  return (samples_.back().offset - samples_.front().offset) /
         (samples_.back().at - samples_.front().at);
}

void move_to(const RankClock& clock, JournalStep& step) {
  for (OpTime& op : step.ops) {
    op.start += clock.offset(op.start);
    op.end += clock.offset(op.end);
  }
  step.data.start += clock.offset(step.data.start);
  step.data.end += clock.offset(step.data.end);
}

std::string journal_head() { return std::string(kHead); }

std::string journal_entry(const ClockSample& sample) {
  std::string bytes;
  put(bytes, Kind::clock);
  put(bytes, sample.at);
  put(bytes, sample.offset);
  put(bytes, sample.error);
  return sealed(bytes);
}

std::string journal_entry(const JournalStep& step) {
  std::string bytes;
  bytes.reserve(64 + step.ops.size() * kOpBytes);
  put(bytes, Kind::step);
  put(bytes, step.step);
  put(bytes, step.plan);
  put(bytes, std::uint8_t{step.late_plan});
  put(bytes, step.data.start);
  put(bytes, step.data.end);
  put(bytes, step.recorded_in);
  for (const OpTime& op : step.ops) {
    put(bytes, op.op.value);
    put(bytes, op.start);
    put(bytes, op.end);
    put(bytes, op.processor);
  }
  return sealed(bytes);
}

JournalReader::JournalReader(std::istream& in, std::string file) : in_(in), file_(std::move(file)) {
  in_.seekg(0, std::ios::end);
  std::uint64_t left = static_cast<std::uint64_t>(std::max<std::streamoff>(0, in_.tellg()));
  in_.seekg(0);
  std::string head(std::min<std::uint64_t>(left, kHead.size()), '\0');
  in_.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!kHead.starts_with(head))
    throw InputError(file_, "", "is not a journal of this version", kHint);
  left -= head.size();
  std::vector<ClockSample> clocks;
  while (true) {
    const std::streamoff place = in_.tellg();
    const std::optional<std::string> payload = next(in_, file_, left);
    if (!payload) break;
    Cursor bytes(*payload);
    const auto kind = bytes.take<Kind>();
    if (kind == Kind::step) {
      steps_.push_back(bytes.take<std::uint64_t>());
      places_.push_back(place);
      continue;
    }
    ClockSample sample;
    sample.at = bytes.time();
    sample.offset = bytes.time();
    sample.error = bytes.time();
    if (kind != Kind::clock || !bytes.whole() || (!clocks.empty() && clocks.back().at >= sample.at))
      throw InputError(file_, "", "is damaged", kHint);
    clocks.push_back(sample);
  }
  clock_ = RankClock(std::move(clocks));
}

std::optional<JournalStep> JournalReader::read(std::uint64_t step) {
  const auto found = std::find(steps_.begin(), steps_.end(), step);
  if (found == steps_.end()) return {};
  in_.clear();
  in_.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(in_.tellg());
  const std::streamoff place = places_[static_cast<std::size_t>(found - steps_.begin())];
  in_.seekg(place);
  std::uint64_t left = size - static_cast<std::uint64_t>(place);
  const std::optional<std::string> payload = next(in_, file_, left);
  if (!payload) return {};
  Cursor bytes(*payload);
  bytes.take<Kind>();
  JournalStep result;
  result.step = bytes.take<std::uint64_t>();
  result.plan = bytes.take<std::uint64_t>();
  result.late_plan = bytes.take<std::uint8_t>() != 0;
  result.data.start = bytes.time();
  result.data.end = bytes.time();
  result.recorded_in = bytes.time();
  result.ops.reserve(bytes.left() / kOpBytes);
  while (bytes.left() >= kOpBytes) {
    OpTime op;
    op.op = OpId(bytes.take<std::uint32_t>());
    op.start = bytes.time();
    op.end = bytes.time();
    op.processor = bytes.time();
    result.ops.push_back(op);
  }
  if (!bytes.whole()) throw InputError(file_, "", "is damaged", kHint);
  return result;
}

}  // namespace polyphony::traces

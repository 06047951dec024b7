#include "shared/program/held_samples.h"

#include <algorithm>
#include <map>
#include <optional>

#include "shared/error.h"
#include "shared/program/work.h"

namespace polyphony {
namespace {

using Shares = std::map<std::uint32_t, double>;  // by position in the batch; the sum is 1

Shares shares_of(const Program& program, const Compute& compute) {
  const Work& work = program.works[compute.work.value];
  Shares rows;
  if (program.model.modules[compute.module.value].kind == ModuleKind::language) {
    for (auto i = work.samples.begin; i < work.samples.end; ++i) {
      const std::uint32_t sample = program.work_samples[i];
      rows[sample] =
          static_cast<double>(language_rows(program.model, program.batch.samples[sample]));
    }
  } else {
    for (auto i = work.items.begin; i < work.items.end; ++i) {
      const ItemOfWork& item = program.items_of_works[i];
      const Item& what = program.batch.samples[item.sample].items[item.item];
      if (takes(program.model, compute.module, what.modality))
        rows[item.sample] += static_cast<double>(what.tokens);
    }
  }
  double sum = 0;
  for (const auto& [sample, count] : rows) sum += count;
  for (auto& [sample, count] : rows) count = sum > 0 ? count / sum : 0;
  return rows;
}

}  // namespace

std::vector<HeldSample> held_samples(const Program& program, const Timeline& timeline, Rank rank,
                                     Seconds when) {
  POLYPHONY_CHECK(timeline.ops.size() == program.ops.size(), "the Timeline must have all ops");
  std::map<BufferId, Compute> live;  // resident buffers, and the op that they belong to
  const Range ops = program.ops_of(rank);
  for (auto op = ops.begin; op < ops.end; ++op) {
    const OpTime& time = timeline.ops[op];
    std::optional<Compute> holder;
    if (const auto* compute = std::get_if<Compute>(&program.ops[op].what)) holder = *compute;
    if (const auto* copy = std::get_if<HostCopy>(&program.ops[op].what))
      holder = Compute{.module = copy->module, .layers = copy->layers, .work = copy->work};
    const Range uses = program.ops[op].buffers;
    for (auto i = uses.begin; i < uses.end; ++i) {
      const BufferUse& use = program.buffer_uses[i];
      if (program.buffers[use.buffer.value].kind == BufferKind::host) continue;
      if (use.use == Use::allocate && holder && time.start <= when) live[use.buffer] = *holder;
      const bool gone = time.end < when || (time.end == when && time.end > time.start);
      if (use.use == Use::free && gone) live.erase(use.buffer);
    }
  }
  std::map<std::uint32_t, double> bytes;
  for (const auto& [buffer, compute] : live)
    for (const auto& [sample, share] : shares_of(program, compute))
      bytes[sample] += share * static_cast<double>(program.buffers[buffer.value].bytes.value);
  std::vector<HeldSample> result;
  for (const auto& [sample, held] : bytes)
    if (held > 0) result.push_back({sample, Bytes(static_cast<std::int64_t>(held))});
  std::stable_sort(result.begin(), result.end(),
                   [](const HeldSample& a, const HeldSample& b) { return a.bytes > b.bytes; });
  return result;
}

}  // namespace polyphony

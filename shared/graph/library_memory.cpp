#include "shared/graph/library_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "shared/fp8_scaling.h"
#include "shared/program/expand_op.h"
#include "shared/program/waiting_kernels.h"

namespace polyphony {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kBase = 1'060'000'000, kWorkspaces = 2 * 32 * kMiB;
constexpr std::int64_t kReceives = 12 * kMiB, kSends = 2 * kMiB;
constexpr std::int64_t kChannelsOfSums = 24, kChannelsOfExchanges = 32, kChannelsToOtherNodes = 2;

// Returns, by rank, the most that the operands of an FP8 GEMM and a block of its result take.
std::vector<std::int64_t> fp8_bytes(const Program& program) {
  std::vector<std::int64_t> most(program.rank_ops.size());
  for (std::size_t r = 0; r < most.size(); ++r)
    for (std::uint32_t op = program.rank_ops[r].begin; op < program.rank_ops[r].end; ++op)
      for (const Kernel& kernel : expand(program, OpId(op)).kernels)
        if (is_in_narrow_format(kernel))
          most[r] = std::max(most[r], (kernel.m + kernel.n) * kernel.k + kFp8SumBytes);
  return most;
}

}  // namespace

std::vector<Bytes> library_memory(const Program& program, const Cluster& cluster,
                                  const HardwareProfile& profile) {
  std::vector<std::int64_t> bytes(program.rank_ops.size());
  std::vector<Bytes> result(bytes.size());
  if (profile.collectives != CollectiveLibrary::nccl ||
      profile.stack.memory.keeping != Keeping::polyphony)
    return result;
  const auto first = program.only.valid() ? program.only.value : 0;
  const auto add = [&](Rank rank, std::int64_t more) {
    const std::size_t at = rank.value - first;
    if (rank.value >= first && at < bytes.size()) bytes[at] += more;
  };
  for (std::size_t r = 0; r < bytes.size(); ++r) bytes[r] = kBase + kWorkspaces;
  for (const Group& group : program.groups) {
    const auto size = static_cast<std::int64_t>(group.members.size());
    if (group.kind == GroupKind::cell || size < 2) continue;
    const std::int64_t sums = kChannelsOfSums * (size > 2 ? 2 : 1) * (kReceives + kSends);
    std::map<int, std::int64_t> in_domain;
    if (exchanges_rows(group.kind))
      for (const Rank member : group.members) ++in_domain[cluster.domain_of(member)];
    for (const Rank member : group.members) {
      add(member, sums);
      if (!exchanges_rows(group.kind)) continue;
      const std::int64_t near = in_domain[cluster.domain_of(member)];
      add(member, ((near - 1) * kChannelsOfExchanges + (size - near) * kChannelsToOtherNodes) *
                      (kReceives + kSends));
    }
  }
  std::set<std::pair<Rank, Rank>> pairs;
  for (const Message& message : program.messages)
    if (message.source != message.destination) pairs.emplace(message.source, message.destination);
  for (const auto& [source, destination] : pairs) {
    const bool near = cluster.domain_of(source) == cluster.domain_of(destination);
    const std::int64_t channels = near ? kMessageProcessors : kChannelsToOtherNodes;
    add(source, channels * kSends);
    add(destination, channels * kReceives);
  }
  const std::vector<std::int64_t> casts = profile.stack.matrix == NumberFormat::fp8
                                              ? fp8_bytes(program)
                                              : std::vector<std::int64_t>(bytes.size());
  for (std::size_t r = 0; r < bytes.size(); ++r) result[r] = Bytes(bytes[r] + casts[r]);
  return result;
}

std::vector<RankMemory> predict_needed_memory(const Program& program, const Timeline& timeline,
                                              const Cluster& cluster,
                                              const HardwareProfile& profile) {
  std::vector<RankMemory> memory = predict_memory(program, timeline);
  const std::vector<Bytes> libraries = library_memory(program, cluster, profile);
  for (std::size_t r = 0; r < memory.size(); ++r) memory[r].libraries = libraries[r];
  return memory;
}

}  // namespace polyphony

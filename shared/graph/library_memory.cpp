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

bool is_counted(const HardwareProfile& profile) {
  return profile.collectives == CollectiveLibrary::nccl &&
         profile.stack.memory.keeping == Keeping::polyphony;
}

// Returns the buffers of the sums of a group, and of its exchanges with `near` members of the same
// domain (the member itself included).
std::int64_t of_sums(std::int64_t size) {
  return size < 2 ? 0 : kChannelsOfSums * (size > 2 ? 2 : 1) * (kReceives + kSends);
}
std::int64_t of_exchanges(std::int64_t size, std::int64_t near) {
  return ((near - 1) * kChannelsOfExchanges + (size - near) * kChannelsToOtherNodes) *
         (kReceives + kSends);
}

// Returns what the groups of one grid take at the least.
std::int64_t of_grid(const ModuleLayout& grid, const Cluster& cluster) {
  std::int64_t bytes = of_sums(grid.tp) + of_sums(grid.cp) + of_sums(grid.ep);
  // How many members of a group, `stride` ranks apart, lie in one domain at the least.
  const auto near = [&, domain = cluster.domain_size()](int size, int stride) {
    const int block = size * stride;
    if (grid.first_rank % std::min(block, domain) != 0) return 1;
    if (domain % block == 0) return size;
    return block % domain == 0 && domain % stride == 0 ? domain / stride : 1;
  };
  const int between = grid.experts_tp() == 1 ? 1 : grid.tp;  // members of an expert group
  if (grid.cp > 1) bytes += of_exchanges(grid.cp, near(grid.cp, grid.tp));
  if (grid.ep > 1) bytes += of_exchanges(grid.ep, near(grid.ep, between));
  const int lanes = grid.dp() * grid.cp;
  if (grid.shard == Shard::none || grid.shard_ranks == 0 || grid.shard_ranks >= lanes)
    return bytes + of_sums(lanes);
  if (lanes % grid.shard_ranks != 0) return bytes;
  return bytes + of_sums(grid.shard_ranks) + of_sums(lanes / grid.shard_ranks);
}

}  // namespace

Bytes least_library_memory(const Model& model, const Layout& layout, const Cluster& cluster,
                           const HardwareProfile& profile) {
  if (!is_counted(profile)) return {};
  std::int64_t least = -1;
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    if (grid_owner(model, ModuleId(m)) != ModuleId(m)) continue;
    const std::int64_t bytes = of_grid(layout.modules[m], cluster);
    least = least < 0 ? bytes : std::min(least, bytes);
  }
  return Bytes(kBase + kWorkspaces + std::max<std::int64_t>(0, least) +
               of_sums(world_size(layout)));
}

std::vector<Bytes> library_memory(const Program& program, const Cluster& cluster,
                                  const HardwareProfile& profile) {
  std::vector<std::int64_t> bytes(program.rank_ops.size());
  std::vector<Bytes> result(bytes.size());
  if (!is_counted(profile)) return result;
  const auto first = program.only.valid() ? program.only.value : 0;
  const auto add = [&](Rank rank, std::int64_t more) {
    const std::size_t at = rank.value - first;
    if (rank.value >= first && at < bytes.size()) bytes[at] += more;
  };
  for (std::size_t r = 0; r < bytes.size(); ++r) bytes[r] = kBase + kWorkspaces;
  for (const Group& group : program.groups) {
    const auto size = static_cast<std::int64_t>(group.members.size());
    if (group.kind == GroupKind::cell || size < 2) continue;
    std::map<int, std::int64_t> in_domain;
    if (exchanges_rows(group.kind))
      for (const Rank member : group.members) ++in_domain[cluster.domain_of(member)];
    for (const Rank member : group.members) {
      add(member, of_sums(size));
      if (!exchanges_rows(group.kind)) continue;
      const std::int64_t near = in_domain[cluster.domain_of(member)];
      add(member, of_exchanges(size, near));
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

#include "exec/checkpoint/checkpoint_parts.h"

#include "exec/checkpoint/checkpoint.h"
#include "shared/error.h"

namespace polyphony::exec {

std::string format_name(const Program& structure) {
  if (structure.precision == NumberFormat::bf16) return "BF16";
  return structure.precision == NumberFormat::fp64 ? "F64" : "F32";
}

// Of the ranks with the same shard of the same parameters, the first one writes it.
RankState rank_state(const Program& structure, Rank rank, std::vector<HeldParameters*> stores) {
  RankState state;
  const auto add = [&](const ParamGroup& group) {
    POLYPHONY_CHECK(state.groups.size() < stores.size(),
                    stores.size() << " stores for more parameter groups");
    const bool first =
        !group.replicas.valid() || structure.groups[group.replicas.value].members.front() == rank;
    state.groups.push_back({stores[state.groups.size()], first});
  };
  for (const ParamGroup& group : structure.params) {
    if (group.rank != rank || group.experts) continue;
    add(group);
    for (const ParamGroup& experts : structure.params)
      if (experts.rank == rank && experts.experts && experts.module == group.module &&
          experts.layers == group.layers)
        add(experts);
  }
  POLYPHONY_CHECK(state.groups.size() == stores.size(),
                  stores.size() << " stores for " << state.groups.size() << " groups");
  return state;
}

RankState runner_state(Runner& runner, Rank rank, const Program& structure,
                       const std::string& run) {
  RankState state = rank_state(structure, rank, runner.stores());
  state.updates = runner.updates();
  state.run = run;
  return state;
}

std::vector<TwoNumbers> gather(Transport& transport, TwoNumbers mine) {
  constexpr std::uint64_t kTag =
      kTagEnd - 1;  // no message of a step is in flight, and none has this tag
  std::vector<TwoNumbers> all{mine};
  torch::Tensor numbers = torch::tensor({mine.first, mine.second}, torch::kInt64);
  if (transport.rank().value != 0) {
    transport.send(numbers, Rank(0), kTag);
    return all;
  }
  for (int r = 1; r < transport.world_size(); ++r) {
    transport.receive(numbers, Rank(static_cast<std::size_t>(r)), kTag);
    const std::int64_t* values = numbers.const_data_ptr<std::int64_t>();
    all.emplace_back(values[0], values[1]);
  }
  return all;
}

}  // namespace polyphony::exec

#include "exec/device/device_family.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <thread>

#include "shared/program/group_rounds.h"
#include "shared/program/waiting_kernels.h"

namespace polyphony::exec {

namespace {

// Polls until all are ready.
void await(const std::vector<DeviceFamily*>& families) {
  constexpr std::chrono::milliseconds kLook{1};
  std::vector<DeviceFamily*> left = families;
  for (;;) {
    std::erase_if(left, [](DeviceFamily* family) { return family->ready(); });
    if (left.empty()) return;
    std::this_thread::sleep_for(kLook);
  }
}

int index_in(const NamedGroup& group, Rank self) {
  const auto found = std::find(group.members.begin(), group.members.end(), self);
  return found == group.members.end() ? -1 : static_cast<int>(found - group.members.begin());
}

DevicePart part_of(const NamedGroup& group, Rank self, int color) {
  return {color, group.name, index_in(group, self), static_cast<int>(group.members.size()),
          group.members};
}

// Makes the first call of a new group, of one element for each member.
//
// NCCL connects pairs at their first call, where the host waits for the other end (src/group.cc of
// NCCL 2.28), so this call is part of making a group. It is made only after all groups of this
// batch exist, because kernels that wait for peers can block the device operations with which NCCL
// makes a group (NVIDIA/nccl#581). It runs on the current stream, where the kernels of all groups
// come in the same order on all ranks. Calls of other sizes, for which NCCL may connect members in
// another way, connect in the first step, where all ranks come to them in the same order
// (shared/step/turns.h).
//
// Returns the call's tensors, which must exist until it is queued: several calls are queued when
// all have been made (DeviceMaking::together).
std::vector<torch::Tensor> first_call(DeviceBackend& backend, torch::Device device,
                                      FirstCall first) {
  const int size = backend->getSize(), self = backend->getRank();
  std::vector<torch::Tensor> tensors;
  c10::intrusive_ptr<c10d::Work> work;
  if (first == FirstCall::sum) {
    tensors = {torch::zeros({1}, device)};
    c10d::AllreduceOptions options;
    options.asyncOp = false;
    work = backend->allreduce(tensors, options);
  } else {
    std::vector<std::int64_t> sent(static_cast<std::size_t>(size), 1), received = sent;
    if (first == FirstCall::one_way) {
      sent = self == 0 ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{0, 0};
      received = self == 0 ? std::vector<std::int64_t>{0, 0} : std::vector<std::int64_t>{1, 0};
    }
    const auto zeros = [&](const std::vector<std::int64_t>& counts) {
      return torch::zeros({std::accumulate(counts.begin(), counts.end(), std::int64_t{0})}, device);
    };
    tensors = {zeros(received), zeros(sent)};
    c10d::AllToAllOptions options;
    options.asyncOp = false;
    work = backend->alltoall_base(tensors[0], tensors[1], received, sent, options);
  }
  if (work) work->wait();
  return tensors;
}

// Makes the first calls of all groups, all sums together and then all others. A group that
// exchanges rows also adds.
void first_calls(const DeviceMaking& making, std::vector<MadeGroup>& groups,
                 const std::function<FirstCall(const std::string& name)>& first) {
  const auto make = [&](const auto& calls_of) {
    std::vector<std::pair<MadeGroup*, FirstCall>> calls;
    for (MadeGroup& group : groups)
      if (const std::optional<FirstCall> call = calls_of(first(group.name)))
        calls.emplace_back(&group, *call);
    if (calls.empty()) return;
    making.guarded("the first calls of " + std::to_string(calls.size()) + " groups, " +
                       calls.front().first->name + " the first",
                   [&] {
                     std::vector<std::vector<torch::Tensor>> tensors;
                     making.together([&] {
                       for (const auto& [group, call] : calls)
                         tensors.push_back(first_call(group->backend, making.device, call));
                     });
                   });
  };
  make([](FirstCall call) {
    return call == FirstCall::one_way ? std::nullopt : std::optional(FirstCall::sum);
  });
  make([](FirstCall call) { return call == FirstCall::sum ? std::nullopt : std::optional(call); });
}

}  // namespace

std::vector<MadeGroup> split_in_rounds(const DeviceMaking& making, DeviceFamily& world, Rank self,
                                       const std::vector<NamedGroup>& all,
                                       const std::set<std::string>& exchanges) {
  making.guarded("joining the other ranks' GPUs", [&] { await({&world}); });
  std::vector<std::vector<Rank>> members;
  for (const NamedGroup& group : all) members.push_back(group.members);
  const std::vector<std::uint32_t> round_of = group_rounds(members);
  std::vector<std::vector<std::size_t>> rounds;
  for (std::size_t g = 0; g < all.size(); ++g) {
    if (round_of[g] >= rounds.size()) rounds.resize(round_of[g] + std::size_t{1});
    rounds[round_of[g]].push_back(g);
  }
  std::vector<MadeGroup> made;
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    DevicePart mine;
    for (std::size_t color = 0; color < rounds[round].size(); ++color)
      if (const NamedGroup& group = all[rounds[round][color]]; index_in(group, self) >= 0)
        mine = part_of(group, self, static_cast<int>(color));
    const std::string what = "round " + std::to_string(round + 1) + " of " +
                             std::to_string(rounds.size()) + " of making groups";
    making.guarded(mine.color < 0 ? what : "joining group " + mine.name + ", in " + what, [&] {
      world.split(mine);
      await({&world});
      if (mine.color >= 0) made.push_back({mine.name, world.part()});
    });
  }
  first_calls(making, made, [&](const std::string& name) {
    return exchanges.contains(name) ? FirstCall::exchange : FirstCall::sum;
  });
  return made;
}

std::vector<MadeGroup> make_apart(const DeviceMaking& making, Rank self,
                                  const std::vector<NamedGroup>& groups, FirstCall first) {
  const std::string where = groups.size() == 1
                                ? "joining " + groups.front().name
                                : "joining " + std::to_string(groups.size()) + " groups, " +
                                      groups.front().name + " the first";
  std::vector<MadeGroup> made;
  making.guarded(where, [&] {
    std::vector<FamilyPointer> families;
    std::vector<DeviceFamily*> waited;
    for (const NamedGroup& group : groups) {
      families.push_back(making.begin(group.name, group.members, index_in(group, self)));
      waited.push_back(families.back().get());
    }
    await(waited);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      DevicePart part = part_of(groups[g], self, 0);
      if (first == FirstCall::one_way) {
        part.members.clear();
        part.most_processors = kMessageProcessors;
      }
      families[g]->split(part);
    }
    await(waited);
    for (std::size_t g = 0; g < groups.size(); ++g)
      made.push_back({groups[g].name, families[g]->part()});
  });
  first_calls(making, made, [&](const std::string&) { return first; });
  return made;
}

}  // namespace polyphony::exec

// How groups of devices are made: by splitting a family of ranks, as NCCL's ncclCommSplit makes
// communicators from a parent. All operations only begin, and ready() polls for their end, so that
// one thread can begin many, watch for lost peers meanwhile, and abandon unfinished ones.
//
// Announced groups are splits of one family of all ranks, one split per round
// (shared/program/group_rounds.h).
//
// The groups of messages, and groups that were not announced, are each the split of a family of
// their own members: which pairs exchange messages varies from step to step, and a rank does not
// know the other ranks' pairs. All such families are begun before any is waited for.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "exec/device/device_group.h"
#include "exec/transport/announcing.h"

namespace polyphony::exec {

// This rank's part in a split.
struct DevicePart {
  int color = -1;    // the same for all members of a group; negative: in no group
  std::string name;  // the group's name, not used before
  int index = 0, size = 0;
  std::vector<Rank> members = {};  // for error messages, if the name does not list them
  // Largest number of multiprocessors that a kernel of the group takes; 0: the library's choice.
  int most_processors = 0;
};

// A set of ranks that can be split into groups. Used by one thread at a time, except for abort().
// It may be destroyed once its groups are made.
class DeviceFamily {
 public:
  virtual ~DeviceFamily() = default;
  // Returns true if the last operation has ended: first connecting the family, then each split.
  // Throws if it failed.
  virtual bool ready() = 0;
  // Begins a split. Collective over the family; all members make the splits in the same order.
  virtual void split(const DevicePart& mine) = 0;
  // Returns this rank's group of the finished split; null if its color was negative.
  virtual DeviceBackend part() = 0;
  // Ends the operation in progress, so that ready() throws. May be called from any thread.
  virtual void abort() = 0;
};
using FamilyPointer = std::shared_ptr<DeviceFamily>;

// The functions with which groups are made.
struct DeviceMaking {
  torch::Device device;
  // Begins a family of these ranks; this rank is `members[index]`.
  std::function<FamilyPointer(const std::string& name, const std::vector<Rank>& members, int index)>
      begin;
  // Runs a call. If it fails because a peer is lost, throws a LostPeer that names the lost rank.
  std::function<void(const std::string& where, const std::function<void()>& call)> guarded;
  // Runs calls of several groups as one, so that the groups connect at once and not one after
  // another.
  std::function<void(const std::function<void()>& calls)> together;
};

struct MadeGroup {
  std::string name;
  DeviceBackend backend;
};

// The first call of a group, which connects its members.
//   sum       an all-reduce: connects each member with few others
//   exchange  an all-to-all: connects each member with all others. On 8 GPUs of a node it takes 3.3
//             GB of buffers of each (NVIDIA/nccl#1685), so it is made only where rows are
//             exchanged
//   one_way   a message from the first member to the second
enum class FirstCall : std::uint8_t { sum, exchange, one_way };

// Makes the groups in `all` that `self` is a member of, makes their first calls, and returns them.
// Collective over the family; `all` is the same on all its ranks. `exchanges`: names of the groups
// whose first call is an exchange.
std::vector<MadeGroup> split_in_rounds(const DeviceMaking& making, DeviceFamily& world, Rank self,
                                       const std::vector<NamedGroup>& all,
                                       const std::set<std::string>& exchanges);

// Makes each group from a family of its own, and returns the groups. All members call it, with
// their common groups in the same order.
std::vector<MadeGroup> make_apart(const DeviceMaking& making, Rank self,
                                  const std::vector<NamedGroup>& groups, FirstCall first);

}  // namespace polyphony::exec

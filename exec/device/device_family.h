// How groups of devices come to be: a family of ranks, of which splits make groups, as NCCL's ncclCommSplit makes
// communicators of a parent. Nothing here waits: what is begun is asked whether it is done, so that one thread begins
// many, watches over lost peers meanwhile, and gives up what is half made.
//   Groups that ranks announce are splits of one family of the world, one for each round (shared/program/group_rounds.h).
//   Messages' groups, and those nobody announced, are each the split of a family of their members: which pairs have
//   messages varies from step to step, and no rank knows those of others. All are begun before any is waited for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/device/device_group.h"
#include "exec/transport/announcing.h"

namespace polyphony::exec {

// This rank's part in a split.
struct DevicePart {
  int color = -1;    // the same for the members of a group; none below 0
  std::string name;  // of the group; new
  int index = 0, size = 0;
  std::vector<Rank> members = {};  // for errors, where the name does not say them
};

// Used by one thread at a time, but for abort(). It may go when its groups are made.
class DeviceFamily {
 public:
  virtual ~DeviceFamily() = default;
  // Whether what was begun last is done: meeting the other members first, then each split. Throws when it failed.
  virtual bool ready() = 0;
  // Begins. Collective over the family, in one order.
  virtual void split(const DevicePart& mine) = 0;
  // Of the split that is done; null without a colour.
  virtual DeviceBackend part() = 0;
  // Of any thread: what is begun ends, and ready() throws.
  virtual void abort() = 0;
};
using FamilyPointer = std::shared_ptr<DeviceFamily>;

// What groups are made with.
struct DeviceMaking {
  torch::Device device;
  // Begins a family of these ranks, this one's being `members[index]`.
  std::function<FamilyPointer(const std::string& name, const std::vector<Rank>& members, int index)>
      begin;
  // Runs a call; when it fails because somebody is gone, says who.
  std::function<void(const std::string& where, const std::function<void()>& call)> guarded;
  // Runs calls of several groups, whose members connect at once and not one group after the other.
  std::function<void(const std::function<void()>& calls)> together;
};

struct MadeGroup {
  std::string name;
  DeviceBackend backend;
};

// Those of `all` that `self` is among, with its first calls done. Collective over the family; `all`: the same on all its
// ranks.
std::vector<MadeGroup> split_in_rounds(const DeviceMaking& making, DeviceFamily& world, Rank self,
                                       const std::vector<NamedGroup>& all);

// Each of a family of its own. `one_way`: pairs, of which the first sends to the second. All members, in one order.
std::vector<MadeGroup> make_apart(const DeviceMaking& making, Rank self,
                                  const std::vector<NamedGroup>& groups, bool one_way);

}  // namespace polyphony::exec

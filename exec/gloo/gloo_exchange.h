// Exchanges parcels as messages of the world's ProcessGroupGloo, for groups and tensors that are
// too large for direct connections (exec/wire/peer_links.h).
//
// Each group has a tag of its own (from kTagEnd on), which separates its messages from all others.
// One tag per group is enough, because messages with the same tag between two ranks arrive in the
// order in which they are sent.
//
// Gloo's own collectives are not used: they need connections and threads for every group, sum in
// orders that depend on the group's size, sum bfloat16 in bfloat16, and have no abort.
//
// Does not detect members that call different collectives: these wait for each other until a
// timeout ends the run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/gloo/gloo_context.h"
#include "exec/wire/peer_exchange.h"

namespace polyphony::exec {

class GlooExchange : public PeerExchange {
 public:
  // Agrees on the group's tag. Collective over the group.
  GlooExchange(std::shared_ptr<GlooContext> context, const std::string& name,
               std::vector<Rank> members, std::size_t index);

 private:
  void exchange(const std::vector<Parcel>& parcels, std::uint32_t kind) override;

  std::shared_ptr<GlooContext> context_;
  std::vector<Rank> members_;
  int tag_ = 0;
};

}  // namespace polyphony::exec

// Parcels as messages of the world's ProcessGroupGloo: for groups and tensors too big for direct
// connections (exec/wire/peer_links.h). A tag of its own, from kTagEnd on, keeps a group's messages
// apart from all others; one tag is enough, because messages with the same tag between two ranks
// arrive in the order in which they are sent.
//   Gloo's own collectives are left aside: they need connections and threads for every group, add
//   up in orders that depend on the group's size, bfloat16 in bfloat16, and cannot be aborted.
//   Members that call different things are not told apart: they wait for each other until one is
//   given up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/gloo/gloo_context.h"
#include "exec/wire/peer_exchange.h"

namespace polyphony::exec {

class GlooExchange : public PeerExchange {
 public:
  // Collective over the group: draws its tag.
  GlooExchange(std::shared_ptr<GlooContext> context, const std::string& name,
               std::vector<Rank> members, std::size_t index);

 private:
  void exchange(const std::vector<Parcel>& parcels, std::uint32_t kind) override;

  std::shared_ptr<GlooContext> context_;
  std::vector<Rank> members_;
  int tag_ = 0;
};

}  // namespace polyphony::exec

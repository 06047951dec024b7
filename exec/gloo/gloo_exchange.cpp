#include "exec/gloo/gloo_exchange.h"

#include <utility>

#include "exec/wire/store.h"

namespace polyphony::exec {

namespace {

// Member 0 takes the group's number from a counter in the store, because a rank does not know all
// groups.
int draw_tag(c10d::Store& store, const std::string& name, std::size_t index) {
  const std::string key = "group number/" + name;
  if (index == 0) set_text(store, key, std::to_string(store.add("group numbers", 1)));
  return static_cast<int>(kTagEnd) + std::stoi(get_text(store, key));
}

}  // namespace

GlooExchange::GlooExchange(std::shared_ptr<GlooContext> context, const std::string& name,
                           std::vector<Rank> members, std::size_t index)
    : PeerExchange(index, members.size()),
      context_(std::move(context)),
      members_(std::move(members)) {
  tag_ = connected(context_, [name, index](const GlooContext& shared) {
    return draw_tag(*shared.store, name, index);
  });
}

void GlooExchange::exchange(const std::vector<Parcel>& parcels, std::uint32_t) {
  std::vector<Transfer> transfers;
  // Receives come first, and each member begins with a different peer, so that not all send to the
  // same one.
  for (const bool sends : {false, true}) {
    for (std::size_t step = 1; step < size(); ++step) {
      const std::size_t peer = (sends ? index() + step : index() + size() - step) % size();
      const Parcel& parcel = parcels[peer];
      const std::size_t bytes = sends ? parcel.out_bytes : parcel.in_bytes;
      if (bytes == 0) continue;
      auto* const data = sends ? const_cast<std::byte*>(parcel.out) : parcel.in;
      transfers.push_back(
          {.tensor = torch::from_blob(data, {static_cast<std::int64_t>(bytes)}, torch::kUInt8),
           .peer = members_[peer],
           .tag = static_cast<std::uint64_t>(tag_),
           .sends = sends});
    }
  }
  context_->move(transfers);
}

}  // namespace polyphony::exec

// A case's view of a transport that several cases use one after another.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "exec/transport/forwarding.h"

namespace polyphony::exec::testing {

// The first `ranks` ranks of a world as a world of their own. `prefix` makes the names of its
// groups different from those of other cases. Groups are announced only where it has all ranks of
// the transport, because announcing is collective over all of them.
class TransportPart : public ForwardingTransport {
 public:
  TransportPart(Transport& whole, int ranks, std::string prefix)
      : ForwardingTransport(whole), ranks_(ranks), prefix_(std::move(prefix)) {}
  int world_size() const override { return ranks_; }
  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    return inner().make_group(prefix_ + name, members);
  }
  void announce(const std::vector<NamedGroup>& groups) override {
    if (ranks_ < inner().world_size()) return;
    std::vector<NamedGroup> renamed = groups;
    for (NamedGroup& group : renamed) group.name = prefix_ + group.name;
    ForwardingTransport::announce(renamed);
  }
  void barrier() override { throw std::logic_error("no barrier of a part"); }
  void post(const std::string& key, const std::string& bytes) override {
    inner().post(prefix_ + key, bytes);
  }
  std::string fetch(const std::string& key) override { return inner().fetch(prefix_ + key); }

 private:
  int ranks_;
  std::string prefix_;
};

}  // namespace polyphony::exec::testing

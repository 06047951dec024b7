// A transport that records its calls by op, and keeps the inner transport's memory out of the
// rank's ledger (tests/exec/support/tensor_ledger.h), because copies inside a transport do not
// count as the rank's memory.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/transport/forwarding.h"
#include "shared/program/program.h"

namespace polyphony::exec::testing {

struct SentMessage {
  std::uint64_t tag = 0;
  Rank peer;
  bool sends = false;
  Bytes bytes{};
  auto operator<=>(const SentMessage&) const = default;
};
struct GroupCall {
  std::string group;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes{};     // of the whole array; all_to_all: sent
  Bytes received{};  // all_to_all
};
struct OpTraffic {
  std::vector<SentMessage> messages;
  std::vector<GroupCall> calls;
};
using Traffic = std::map<OpId, OpTraffic>;

class CountedTransport : public ForwardingTransport {
 public:
  explicit CountedTransport(Transport& inner) : ForwardingTransport(inner) {}
  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override;
  void exchange(const std::vector<Transfer>& transfers) override;

  Traffic take();  // since the last call
  void note(const GroupCall& call);

 private:
  std::mutex mutex_;
  Traffic traffic_;  // protected by mutex_
};

// The first op of the rank whose messages or collectives are not the Program's, in words; empty:
// none. Exchanges between experts go where the router says: of those the bytes are an upper bound.
std::string wrong_traffic(const Program& program, Rank rank, const Traffic& traffic);

}  // namespace polyphony::exec::testing

// The request that polyphony-simulate reads and the result that it writes, as bytes.
//
// Both programs are built together and run on the same machine, so values are written as they lie
// in memory. A request begins with a mark of this form's version: a helper of another build refuses
// it instead of misreading it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/graph/compile.h"
#include "shared/units.h"

namespace polyphony::sim {

// What is simulated. Of `compiled`, only the graph is sent, not the tables by op.
struct PlayRequest {
  Compiled compiled;
  CostTable costs;
  Seconds precision{};  // two events closer than this happen at the same time
};
// When each node of the graph ran, and what ranks sent.
struct PlayResult {
  Seconds wall{};                     // time to build the platform and to run
  std::uint64_t flows = 0;            // transfers that crossed links
  std::vector<Bytes> sent_on_node;    // by rank, over links inside its node
  std::vector<Bytes> sent_on_fabric;  // by rank, over links between nodes
  std::vector<Seconds> start, end;    // by node of the graph
};

std::string to_bytes(const Compiled& compiled, const CostTable& costs, Seconds precision);
// Throws InternalError if the bytes are no request of this version.
PlayRequest read_request(std::string_view bytes);

std::string to_bytes(const PlayResult& result);
// Throws InternalError if the bytes are cut off or too many.
PlayResult read_result(std::string_view bytes);

}  // namespace polyphony::sim

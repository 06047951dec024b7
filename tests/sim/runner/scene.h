// A small handmade Program with the cost of each op, for tests whose times are derived by hand. A
// message has one row per 4 bytes. Every exchange has its own stream, so that only waits and
// rendezvous order the exchanges.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "sim/runner/simulate.h"
#include "tests/sim/random/program_builder.h"

namespace polyphony::tests {

// Small rates, so that times are small whole numbers.
inline constexpr BytesPerSecond kFabricRate{1000};
inline constexpr BytesPerSecond kNodeRate{2000};

class Scene {
 public:
  explicit Scene(std::vector<std::uint32_t> node_of);  // by rank

  Draft compute(std::uint32_t rank, Seconds time, std::vector<Draft> waits = {});
  MessageId message(std::uint32_t from, std::uint32_t to, Bytes bytes);
  Draft send(std::uint32_t rank, const std::vector<MessageId>& messages,
             std::vector<Draft> waits = {});
  Draft receive(std::uint32_t rank, const std::vector<MessageId>& messages,
                std::vector<Draft> waits = {});
  void set_delay(Seconds delay) { delay_ = delay; }  // of every message

  CostTable& costs();  // no op may be added after this, or after a run
  std::variant<sim::Playback, Infeasible> attempt();
  sim::Playback play();
  std::vector<OpTime> run();  // in the order of adding

 private:
  Draft exchange(std::uint32_t rank, bool sends, const std::vector<MessageId>& messages,
                 std::vector<Draft> waits);
  void build();

  ProgramBuilder builder_;
  std::vector<std::uint32_t> node_of_;
  std::vector<Seconds> times_;  // durations of compute ops, in the order of adding
  std::vector<Draft> added_;    // by final op: its position in the order of adding
  Seconds delay_{};
  std::optional<Program> program_;
  Compiled compiled_;
  CostTable costs_;
};

}  // namespace polyphony::tests

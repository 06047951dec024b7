#include <doctest/doctest.h>

#include "exec/transport/forwarding.h"
#include "shared/model/layout.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/transport/rank_processes.h"

namespace polyphony::exec::testing {
namespace {

constexpr int kRanks = 8;

// The first ranks of a larger world as a separate world.
class Part : public ForwardingTransport {
 public:
  Part(Transport& whole, int ranks, std::string prefix)
      : ForwardingTransport(whole), ranks_(ranks), prefix_(std::move(prefix)) {}
  int world_size() const override { return ranks_; }
  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    return inner().make_group(prefix_ + name, members);
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

// The same processes run all cases, one after another.
void run_pool(Transport& transport) {
  for (const Case& c : gloo_cases()) {
    const int ranks = world_size(c.layout);
    if (static_cast<int>(transport.rank().value) < ranks) {
      Part part(transport, ranks, c.name + "/");
      const Outcome outcome = run_case(part, c);
      if (transport.rank() == Rank(0)) {
        const std::string wrong = complaint(c, outcome);
        require(wrong.empty(), c.name + ": " + wrong);
      }
    }
    transport.barrier();
  }
}

const bool kRole = add_role("parity", run_pool);

}  // namespace

TEST_SUITE("parity") {
  TEST_CASE("layouts over processes and Gloo compute the step of the reference") {
    REQUIRE(kRole);
    for (const RankResult& result : run_rank_processes("parity", kRanks, Seconds(240))) {
      INFO(result.output);
      CHECK(result.exit_status == 0);
    }
  }
}

}  // namespace polyphony::exec::testing

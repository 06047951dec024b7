// Offloaded activations (ModuleLayout::offload_activations): which ones, when they are copied, what
// the device then holds, what it costs, and what is refused. Sequences by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

// Eight microbatches of one sequence on nodes of eight H100s.
Scenario one_stack(const std::string& layout, const std::string& cluster = "") {
  return read_scenario(
      R"({"polyphony": 1, "about": "Sizes chosen for speed. Source: none.",
          "model": {"language": {"layers": 8, "hidden": 1024, "heads": 16, "kv_heads": 16, "ffn": 4096,
                    "vocab": 512}},
          "cluster": {"node": {"device": "H100", "ranks": 8})" +
          cluster + R"(},
          "data": {"source": "synthetic", "text": {"tokens": 2048}, "global_batch": 8},
          "layout": {"placement": "homogeneous", )" +
          layout + R"(},
          "training": {"precision": "bf16"}})",
      "offload.json", test::file_text);
}
const std::string kGpipe = R"("schedule": "gpipe", "microbatches": 8, )";
const std::string k1f1b = R"("schedule": "1f1b", "microbatches": 8, )";

Program program_of(const Scenario& scenario) {
  REQUIRE_FALSE(check_layout(scenario, *scenario.layout));
  Program program = lower(scenario, *scenario.layout, make_plan(scenario, *scenario.layout),
                          typical_batch(scenario));
  for (const Fault& fault : verify(program)) FAIL_CHECK(fault.text);
  return program;
}
Estimate estimate_of(const Scenario& scenario, const Program& program) {
  const Compiled compiled = std::get<Compiled>(compile(program));
  return estimate(program, compiled,
                  price(program, compiled, scenario.cluster, *shipped_profile(scenario.cluster)));
}
// Of one rank.
std::vector<std::uint32_t> copies(const Program& program, std::size_t rank, bool to_host) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = program.rank_ops[rank].begin; i < program.rank_ops[rank].end; ++i)
    if (const auto* copy = std::get_if<HostCopy>(&program.ops[i].what);
        copy && copy->to_host == to_host)
      found.push_back(i);
  return found;
}
Bytes tape_at_peak(const RankMemory& memory) {
  return memory.at_peak[static_cast<std::size_t>(BufferKind::tape)];
}

}  // namespace

TEST_SUITE("activations offloaded") {
  // Eight forwards, then eight backwards: the nth backward is action 8 + n, so that all have at
  // least two actions in between and are offloaded. The copy to the host overlaps the next action,
  // the copy back the action before the backward. Memory is highest when the last forward and the
  // first backward meet: the saved activations of both, and those in transfer, of the forward
  // before or of the backward after: three of eight. The eighth arrives at the host when the first
  // has left it.
  TEST_CASE("under gpipe, saved activations of three microbatches of eight are on the device") {
    const Scenario kept = one_stack(kGpipe + R"("all": {"ranks": 1})"),
                   away = one_stack(kGpipe + R"("all": {"ranks": 1, "offload_activations": true})");
    const Program stay = program_of(kept), go = program_of(away);
    CHECK(copies(stay, 0, true).empty());
    CHECK(copies(go, 0, true).size() == 8);
    CHECK(copies(go, 0, false).size() == 8);
    const RankMemory before = predict_memory(stay, estimate_of(kept, stay).timeline)[0],
                     after = predict_memory(go, estimate_of(away, go).timeline)[0];
    const Bytes tape(tape_at_peak(before).value / 8);
    CHECK(tape > Bytes(0));
    CHECK(tape_at_peak(before) == 8 * tape);
    CAPTURE(tape.value);
    CAPTURE(tape_at_peak(after).value);
    CHECK(tape_at_peak(after) == 3 * tape);
    CHECK(before.host == Bytes(0));
    CHECK(after.host == 7 * tape);
    CHECK(before.peak - after.peak == 5 * tape);
  }

  // 1F1B, four stages, eight microbatches; of rank 2 the actions F0 F1 B0 F2 B1 … F7 B6 B7: two
  // actions lie between F1 and B1 and all later ones but the last's, one between F0 and B0 and
  // between F7 and B7. Rank 3's backwards follow at once. Rank 1: F0 F1 F2 B0 F3 B1 …: two between
  // F0 and B0, four in the middle, F7 B5 B6 B7: two. Rank 0 has more.
  TEST_CASE("activations that are needed soon are not offloaded") {
    const Scenario scenario =
        one_stack(k1f1b + R"("all": {"pp": 4, "ranks": 4, "offload_activations": true})");
    const Program program = program_of(scenario);
    CHECK(copies(program, 0, true).size() == 8);
    CHECK(copies(program, 1, true).size() == 8);
    CHECK(copies(program, 2, true).size() == 6);
    CHECK(copies(program, 3, true).empty());
  }

  TEST_CASE("an action's recipe overrides the layout") {
    Scenario scenario = one_stack(kGpipe + R"("all": {"ranks": 1, "offload_activations": true})");
    scenario.layout->actions =
        make_step_plan(scenario, *scenario.layout, make_plan(scenario, *scenario.layout),
                       typical_batch(scenario))
            .orders;
    Actions& actions = scenario.layout->actions.front();
    actions[0].recipe = Recipe::full;
    actions[1].recipe = Recipe::none;
    actions[2].recipe = Recipe::offload;
    CHECK(copies(program_of(scenario), 0, true).size() == 6);
    scenario.layout->modules.front().offload_activations = false;
    const std::vector<std::uint32_t> one = copies(program_of(scenario), 0, true);
    REQUIRE(one.size() == 1);
  }

  // An action waits until the saved activations of all actions but the one before it have left. A
  // copy back waits for its own copy to the host, and for the action but one before its backward.
  TEST_CASE("copies wait for actions, and actions for copies") {
    const Scenario scenario =
        one_stack(kGpipe + R"("all": {"ranks": 1, "offload_activations": true})");
    const Program program = program_of(scenario);
    const std::vector<std::uint32_t> out = copies(program, 0, true),
                                     back = copies(program, 0, false);
    std::vector<std::uint32_t> actions;
    for (std::uint32_t i = 0; i < program.ops.size(); ++i)
      if (std::holds_alternative<Compute>(program.ops[i].what)) actions.push_back(i);
    REQUIRE(actions.size() == 16);
    const auto waits = [&](std::uint32_t op, std::uint32_t for_op) {
      const Range range = program.ops[op].waits_for;
      return std::find(program.waits.begin() + range.begin, program.waits.begin() + range.end,
                       OpId(for_op)) != program.waits.begin() + range.end;
    };
    for (std::size_t n = 0; n < 8; ++n) {
      CHECK(waits(out[n], actions[n]));
      CHECK(waits(back[n], out[n]));
      CHECK(waits(back[n], actions[8 + n - 2]));
      CHECK(waits(actions[8 + n], back[n]));
      CHECK(waits(actions[n + 2], out[n]));
    }
  }

  TEST_CASE("verify() reports a copy that is too early, and one that is missing") {
    const Scenario scenario =
        one_stack(kGpipe + R"("all": {"ranks": 1, "offload_activations": true})");
    const Program sound = program_of(scenario);
    const std::uint32_t back = copies(sound, 0, false).front();
    Program early = sound;
    early.ops[back].waits_for.end = early.ops[back].waits_for.begin;
    REQUIRE_FALSE(verify(early).empty());
    CHECK(verify(early).front().kind == FaultKind::read_before_write);
    Program lost = sound;
    lost.ops[back].buffers.end = lost.ops[back].buffers.begin;
    REQUIRE_FALSE(verify(lost).empty());
    CHECK(verify(lost).front().kind == FaultKind::bad_index);  // it copies nothing
    Program lesser = sound;
    std::get<HostCopy>(lesser.ops[back].what).bytes -= Bytes(1);
    REQUIRE_FALSE(verify(lesser).empty());
    CHECK(verify(lesser).front().kind == FaultKind::bad_index);
  }

  // 63 GB/s, of which 0.876 are reached; 2 us of the link and 10 us of the software before.
  TEST_CASE("a copy takes its bytes over the link to the host") {
    const Scenario scenario =
        one_stack(kGpipe + R"("all": {"ranks": 1, "offload_activations": true})");
    const Program program = program_of(scenario);
    const Estimate found = estimate_of(scenario, program);
    for (const bool to_host : {true, false}) {
      const std::uint32_t op = copies(program, 0, to_host).front();
      const double bytes =
          static_cast<double>(std::get<HostCopy>(program.ops[op].what).bytes.value);
      const OpTime& time = found.timeline.ops[op];
      CHECK((time.end - time.start).count() ==
            doctest::Approx(12e-6 + bytes / (63e9 * 0.876)).epsilon(1e-6));
    }
    // Over a bus at half the rate, twice as long.
    const Scenario slow = one_stack(kGpipe + R"("all": {"ranks": 1, "offload_activations": true})",
                                    R"(, "bus": "31.5GBps")");
    const Program same = program_of(slow);
    const std::uint32_t op = copies(same, 0, true).front();
    const OpTime& time = estimate_of(slow, same).timeline.ops[op];
    CHECK((time.end - time.start).count() ==
          doctest::Approx(10e-6 +
                          static_cast<double>(std::get<HostCopy>(same.ops[op].what).bytes.value) /
                              (31.5e9 * 0.876))
              .epsilon(1e-6));
  }

  // Ranks 0 and 1 of a node to its memory of 50 B/s, over links of 40: each alone at 40. Its links:
  // 12 of switches, NICs and buses, up and down, then the memory.
  TEST_CASE("the ranks of a node share its memory") {
    Cluster cluster;
    cluster.nodes = cluster.ranks_per_node = 2;
    cluster.node_link.rate = cluster.fabric_link.rate = BytesPerSecond(100);
    cluster.host_link.rate = BytesPerSecond(40);
    cluster.host_memory = BytesPerSecond(50);
    const Network network = make_network(cluster, 4, HostCopies::all);
    CHECK(network.hosts == 2);
    CHECK(network.host(Rank(1)) == network.host(Rank(0)));
    CHECK(network.host(Rank(2)) != network.host(Rank(0)));
    const auto links = [&](Rank a, Rank b) {
      const Crossing path = network.crossing(a, b);
      return std::vector<std::uint32_t>(path.begin(), path.end());
    };
    const std::uint32_t memory = 6 * 4;
    CHECK(links(Rank(1), network.host(Rank(1))) ==
          std::vector<std::uint32_t>{2 * (2 * 4 + 1), memory});
    CHECK(links(network.host(Rank(1)), Rank(1)) ==
          std::vector<std::uint32_t>{memory, 2 * (2 * 4 + 1) + 1});
    CHECK(links(Rank(2), network.host(Rank(2)))[1] == memory + 2);
    CHECK(network.capacity(memory) == BytesPerSecond(50));
    CHECK(network.rate(Rank(0), network.host(Rank(0))) == BytesPerSecond(40));
    CHECK(network.way(Rank(0), Rank(1)) == Network::Way::domain);
    CHECK(network.way(Rank(0), Rank(2)) == Network::Way::leaf);
    // Folded: each kept rank has what would be its part.
    const Network folded = make_network(cluster, 4, HostCopies::folded);
    CHECK(folded.hosts == 4);
    CHECK(folded.rate(Rank(0), folded.host(Rank(0))) == BytesPerSecond(25));
    // No rate of the bus is given: no link becomes slower.
    cluster.host_memory = {};
    CHECK(make_network(cluster, 4, HostCopies::all).capacity(memory) == BytesPerSecond(160));
  }

  TEST_CASE("copies use the link of a shipped device, a stated link, or the bus") {
    const std::string grid = k1f1b + R"("all": {"ranks": 1, "offload_activations": true})";
    CHECK(one_stack(grid).cluster.host_link.rate == BytesPerSecond(63e9));
    CHECK(one_stack(grid).cluster.host_memory == BytesPerSecond(8 * 76.8e9));
    CHECK(one_stack(grid, R"(, "host_link": "20GBps", "host_memory_rate": "100GBps")")
              .cluster.host_memory == BytesPerSecond(100e9));
    CHECK_THROWS_WITH_AS(one_stack(grid, R"(, "host_link": "20GBps", "bus": "30GBps")"),
                         doctest::Contains("host_link must not be given together with bus"),
                         InputError);
    Scenario nowhere = one_stack(grid);
    nowhere.cluster.host_link = {};
    const auto no = check_layout(nowhere, *nowhere.layout);
    REQUIRE(no);
    CHECK(no->reason.find("host_link") != std::string::npos);
  }
}

}  // namespace polyphony

// Gradients sharded after every microbatch: unsharded ones exist one block at a time.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

// Two nodes of four H100s and a network so slow that the sums of whole gradients lag behind.
Scenario text(double network) {
  Scenario scenario = examples::small_on_cpu(8, 32);
  const ShippedDevice& h100 = *find_device("H100");
  scenario.cluster = {.device = h100.device,
                      .nodes = 2,
                      .ranks_per_node = 4,
                      .node_link = h100.node_link,
                      .fabric_link = {BytesPerSecond(network), h100.fabric_link.latency},
                      .profile = default_profile("H100")};
  scenario.model = {{scenario.model.modules.back()}, {}};
  Module& language = scenario.model.modules.front();
  language.layers = 16;
  language.hidden = language.ffn = 1024;
  language.heads = language.kv_heads = 8;
  language.head_dim = 128;
  language.vocab = 128;
  scenario.training.precision = NumberFormat::bf16;
  scenario.data.source =
      SyntheticData{examples::always(0), examples::always(64), examples::always(64)};
  return scenario;
}

struct Held {
  Bytes peak{}, whole{};  // of any rank; the most whole gradients at any time
};

Held held(const Scenario& scenario, Shard shard, int stages) {
  ModuleLayout grid;
  grid.ranks = 8;
  grid.pp = stages;
  grid.shard = shard;
  Layout layout{.placement = Placement::homogeneous, .modules = {grid}};
  layout.microbatches = 4;
  const Program program =
      lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
  const Compiled compiled = std::get<Compiled>(compile(program));
  const Estimate found =
      estimate(program, compiled,
               price(program, compiled, scenario.cluster, *find_profile("h100-roofline")));
  Held most;
  for (const RankMemory& rank : predict_memory(program, found.timeline))
    most.peak = std::max(most.peak, rank.peak);
  std::vector<std::pair<Seconds, Bytes>> changes;  // of rank 0's
  for (const OpTime& time : found.timeline.ops) {
    const Op& op = program.ops[time.op.value];
    if (program.rank_of(op) != Rank(0u)) continue;
    for (std::uint32_t i = op.buffers.begin; i < op.buffers.end; ++i) {
      const auto [id, use] = program.buffer_uses[i];
      const Buffer& buffer = program.buffers[id.value];
      if (buffer.kind != BufferKind::gradient) continue;
      if (use == Use::allocate) changes.push_back({time.start, buffer.bytes});
      if (use == Use::free) changes.push_back({time.end, Bytes(0) - buffer.bytes});
    }
  }
  std::sort(changes.begin(), changes.end());  // what goes before what comes
  Bytes now{};
  for (const auto& [when, bytes] : changes) most.whole = std::max(most.whole, now += bytes);
  return most;
}

}  // namespace

TEST_CASE(
    "sharded gradients: at most one block's whole gradient is resident, and another in transfer") {
  // q, k, v and out of 1024², the feed-forward part's matrices, two norms; fp32.
  const Module module = text(1e9).model.modules.front();
  const std::int64_t block = parameter_count(module) / module.layers;
  for (const double network : {50e9, 1e8})
    for (const int stages : {1, 2, 4}) {
      CAPTURE(network);
      CAPTURE(stages);
      const Held divided = held(text(network), Shard::gradients, stages);
      CHECK(divided.whole > Bytes(4 * block));
      CHECK(divided.whole < Bytes(11 * block));  // two, and the embedding
    }
}

TEST_CASE("each further level of sharding needs less memory") {
  for (const double network : {50e9, 1e8})
    for (const int stages : {1, 2}) {
      CAPTURE(network);
      CAPTURE(stages);
      const Scenario scenario = text(network);
      Bytes before{std::int64_t{1} << 60};
      for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::full}) {
        CAPTURE(name(shard));
        const Bytes peak = held(scenario, shard, stages).peak;
        CHECK(peak < before);
        before = peak;
      }
    }
}

}  // namespace polyphony

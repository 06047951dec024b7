// Memory of libraries on GPUs, against sums by hand and a published measurement.
#include "shared/graph/library_memory.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "tests/shared/support/one_pipeline.h"

using namespace polyphony;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kFixed = 1'060'000'000 + 64 * kMiB;

Program of_ranks(std::uint32_t ranks) {
  Program program;
  program.ranks = ranks;
  program.rank_ops.resize(ranks);
  return program;
}
RankList first(int count) { return RankList::spaced(Rank(0), 1, count); }

}  // namespace

TEST_CASE("an exchange of 8 H100s takes what NVIDIA/nccl#1685 measured, within 1 %") {
  const Scenario scenario = examples::vlm_on_h100();
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  REQUIRE(scenario.cluster.ranks_per_node == 8);
  Program sums = of_ranks(8), exchanges = of_ranks(8);
  sums.groups = {{GroupKind::data, first(8)}};
  exchanges.groups = {{GroupKind::expert, first(8)}};
  const auto added = library_memory(exchanges, scenario.cluster, profile)[3].value -
                     library_memory(sums, scenario.cluster, profile)[3].value;
  CHECK(static_cast<double>(added) == doctest::Approx(3.28e9).epsilon(0.01));
}

TEST_CASE("three layouts of 8 H100s, by hand: tensor parallel, pipeline, data parallel") {
  const Scenario scenario = examples::vlm_on_h100();
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const auto of = [&](const Program& program, std::size_t rank) {
    return library_memory(program, scenario.cluster, profile)[rank].value;
  };
  // A ring and a tree on 24 channels, 14 MiB for each connection in both directions.
  constexpr std::int64_t kSums = 24 * 2 * 14 * kMiB;
  Program tensor = of_ranks(8);
  tensor.groups = {{GroupKind::tensor, first(8)},
                   {GroupKind::tensor, first(8)},
                   {GroupKind::world, first(8)},
                   {GroupKind::cell, first(8)}};
  CHECK(of(tensor, 0) == kFixed + 3 * kSums);  // a cell is no communicator
  Program data = of_ranks(8);
  data.groups = {{GroupKind::data, first(8)}, {GroupKind::world, first(8)}};
  CHECK(of(data, 7) == kFixed + 2 * kSums);
  Program pipeline = of_ranks(8);
  pipeline.groups = {{GroupKind::world, first(8)}, {GroupKind::tensor, {Rank(4)}}};
  for (std::uint32_t rank = 0; rank + 1 < 8; ++rank)
    for (const bool back : {false, true})
      for (int stage = 0; stage < 12; ++stage) {  // virtual stages share a channel
        Message message;
        message.source = Rank(rank + (back ? 1 : 0));
        message.destination = Rank(rank + (back ? 0 : 1));
        pipeline.messages.push_back(message);
      }
  CHECK(of(pipeline, 3) == kFixed + kSums + 4 * 4 * 7 * kMiB);  // 2 sent to, 2 received from
  CHECK(of(pipeline, 0) == kFixed + kSums + 4 * 14 * kMiB);
}

TEST_CASE("other nodes take few channels; CPUs and other frameworks take nothing") {
  Scenario scenario = examples::vlm_on_h100();
  HardwareProfile profile = *shipped_profile(scenario.cluster);
  Program program = of_ranks(16);
  program.groups = {{GroupKind::context, first(16)}};
  CHECK(library_memory(program, scenario.cluster, profile)[0].value ==
        kFixed + (24 * 2 + 7 * 32 + 8 * 2) * 14 * kMiB);
  profile.stack.memory.keeping = Keeping::megatron;
  CHECK(library_memory(program, scenario.cluster, profile)[0] == Bytes(0));
  profile.stack.memory.keeping = Keeping::polyphony;
  profile.collectives = CollectiveLibrary::gloo;
  CHECK(library_memory(program, scenario.cluster, profile)[0] == Bytes(0));
}

TEST_CASE("FP8 operands, and a block of a weight gradient, are those of the largest GEMM") {
  Scenario scenario = examples::text_only(1, 2);
  scenario.model.modules = {examples::llama_70b()};
  scenario.model.modules[0].layers = 2;
  scenario.data.source =
      SyntheticData{examples::always(0), examples::always(8192), examples::always(8192)};
  const Layout layout = examples::one_grid(ScheduleKind::gpipe, 1, 1, 1, 8);
  const Program program =
      lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
  HardwareProfile profile = *find_profile("h100-roofline");
  const auto of = [&] { return library_memory(program, scenario.cluster, profile)[0].value; };
  CHECK(of() == kFixed);
  profile.stack.matrix = NumberFormat::fp8;
  // The gradient of the input of gate and up, both 28672 wide: dy and the weight.
  CHECK(of() == kFixed + (8192 + 8192) * 2 * 28672 + 64 * kMiB);
}

// Execution traces contain the simulated step: read by an independent reader and walked along their
// dependencies, the graphs end when the Timeline does.
#include "traces/chakra/execution_trace.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "shared/chance/jitter.h"
#include "shared/cost/compute_time.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/plan/plan.h"
#include "shared/program/expand_op.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/balanced_plan.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/traces/chakra/graph_player.h"
#include "tests/traces/sample_run.h"
#include "traces/chakra/wire.h"

namespace polyphony::traces {
namespace {

using test::GraphNode;

constexpr std::uint64_t kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7;

const HardwareProfile& roofline() { return *find_profile("cpu-core-roofline"); }

using Graphs = std::vector<std::vector<GraphNode>>;
Graphs graphs_of(const Program& program, const Timeline& timeline, const Cluster& cluster) {
  ExecutionTraces traces(program, timeline, cluster, roofline());
  Graphs graphs;
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank)
    graphs.push_back(test::read_graph(traces.rank(Rank(rank))));
  return graphs;
}

std::vector<const GraphNode*> of_type(const std::vector<GraphNode>& graph, std::uint64_t type) {
  std::vector<const GraphNode*> found;
  for (const GraphNode& node : graph)
    if (node.type == type) found.push_back(&node);
  return found;
}

// A Program with the times of the cost model under jitter.
struct Jittered {
  Program program;
  Cluster cluster;
  Timeline timeline;
  Jittered(Program from, const Cluster& on, std::uint64_t seed)
      : program(std::move(from)), cluster(on) {
    const Compiled compiled = hand_made::compile_sound(program);
    Jitter jitter;
    jitter.of.fill({.step = 0.1, .op = 0.3});
    const CostTable costs =
        draw_jitter(compiled, price(program, compiled, cluster, roofline()), jitter, seed);
    timeline = estimate(program, compiled, costs).timeline;
  }
};
Jittered jittered(const hand_made::PipelineShape& shape, std::uint64_t seed) {
  const Program program = test::varied_pipeline(shape);
  return {program, test::one_node(program, roofline()), seed};
}

void check_plays(const Program& program, const Timeline& timeline, const Graphs& graphs) {
  Seconds last{};
  for (const OpTime& op : timeline.ops) last = std::max(last, op.end);
  REQUIRE(program.ranks == graphs.size());
  // Times are rounded, and every node starts where another one ended, so rounding errors do not add
  // up.
  CHECK(test::play(graphs, true) == static_cast<std::uint64_t>(std::llround(last.count() * 1e9)));
  CHECK(test::play(graphs, false) == static_cast<std::uint64_t>(std::llround(last.count() * 1e6)));
}

}  // namespace

TEST_CASE("numbers, texts and packed lists are encoded as documented by Protocol Buffers") {
  std::string stream;
  // The examples of protobuf.dev's "Encoding": 150 is 96 01; "testing"; {3, 270, 86942}.
  WireMessage().number(1, 150).text(2, "testing").packed(6, {3, 270, 86942}).append_to(stream);
  CHECK(stream == std::string("\x14\x08\x96\x01\x12\x07testing\x32\x06\x03\x8e\x02\x9e\xa7\x05"));
}

TEST_CASE(
    "two stages, two microbatches: every op is a node, and the simulated end is that computed by "
    "hand") {
  // F 1 s, B 2 s, messages 0.25 s, collectives 0.5 s. Stage 1: F0 from 1.25, B0 2.25, F1 4.25, B1
  // 5.25 to 7.25; stage 0: B0 from 4.5, B1 from 7.5 to 9.5; step scalars until 10.
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 2});
  const Compiled compiled = hand_made::compile_sound(program);
  const Timeline timeline =
      estimate(program, compiled,
               hand_made::fixed_costs(program, compiled,
                                      {Seconds(1), Seconds(2), Seconds(0.25), Seconds(0.5)}))
          .timeline;
  const Cluster cluster = test::one_node(program, roofline());
  Graphs graphs = graphs_of(program, timeline, cluster);
  CHECK(test::play(graphs, false) == 10'000'000);
  for (const auto& graph :
       graphs) {  // two F, two B, the update; two messages each way; the scalars
    CHECK(of_type(graph, kCompute).size() == 5);
    CHECK(of_type(graph, kSend).size() == 2);
    CHECK(of_type(graph, kReceive).size() == 2);
    REQUIRE(of_type(graph, kCollective).size() == 1);
    const GraphNode& scalars = *of_type(graph, kCollective).front();
    CHECK(scalars.micros == 500'000);
    CHECK(scalars.numbers.at("comm_size") == 24);
    CHECK(scalars.numbers.at("comm_type") == 0);
    CHECK(scalars.texts.at("pg_name") == "1");  // the world is group 0
    for (const GraphNode* send : of_type(graph, kSend)) {
      CHECK(send->micros == 250'000);
      CHECK(send->numbers.at("comm_size") == 128);
    }
  }
  ExecutionTraces traces(program, timeline, cluster, roofline());
  CHECK(nlohmann::json::parse(traces.groups()) == nlohmann::json{{"1", {0, 1}}});
  const auto head = test::head_texts(traces.rank(Rank(1)));
  CHECK(head.at("version") == "0.0.4");
  CHECK(head.at("producer") == "polyphony");
  CHECK(head.at("rank") == "1");
  CHECK(head.at("world_size") == "2");
  // The simulation depends on durations: if B1 of stage 1 takes half a second longer, so does the
  // step.
  std::uint64_t longest = 0;
  GraphNode* last = nullptr;
  for (GraphNode& node : graphs[1])
    if (node.type == kCompute && node.id > longest && node.micros == 2'000'000) {
      longest = node.id;
      last = &node;
    }
  REQUIRE(last != nullptr);
  last->micros += 500'000;
  CHECK(test::play(graphs, false) == 10'500'000);
}

TEST_CASE(
    "under jitter, with lanes and tensor parallelism, the graphs end where the Timeline does") {
  for (const hand_made::PipelineShape shape :
       {hand_made::PipelineShape{.stages = 4, .microbatches = 6},
        hand_made::PipelineShape{.stages = 2, .microbatches = 3, .lanes = 2, .tensor = 2},
        hand_made::PipelineShape{
            .stages = 3, .microbatches = 5, .lanes = 1, .tensor = 4, .one_f_one_b = false}}) {
    const Jittered run = jittered(shape, 7);
    check_plays(run.program, run.timeline, graphs_of(run.program, run.timeline, run.cluster));
  }
}

TEST_CASE("a local copy of a rank is one node with which both its ops end") {
  const Program program = hand_made::local_bridge();
  const Jittered run(program, test::one_node(program, roofline()), 3);
  const Graphs graphs = graphs_of(run.program, run.timeline, run.cluster);
  CHECK(of_type(graphs[0], kSend).empty());
  CHECK(of_type(graphs[0], kReceive).empty());
  check_plays(run.program, run.timeline, graphs);
}

TEST_CASE(
    "collectives inside an op: the parts add up to its bytes and time, with the shares of the cost "
    "model") {
  const Jittered run = jittered({.stages = 2, .microbatches = 2, .lanes = 1, .tensor = 2}, 5);
  REQUIRE(roofline().stack.tensor_overlap == 0);
  REQUIRE(roofline().stack.pipelined == 0);
  const Graphs graphs = graphs_of(run.program, run.timeline, run.cluster);
  std::size_t cut = 0;
  for (std::uint32_t rank = 0; rank < run.program.ranks; ++rank) {
    const Range ops = run.program.ops_of(Rank(std::size_t{rank}));
    for (auto op = ops.begin; op < ops.end; ++op) {
      if (!std::holds_alternative<Compute>(run.program.ops[op].what)) continue;
      const Expansion inside = expand(run.program, OpId(op));
      const Group& group = run.program.groups[run.program.ops[op].group.value];
      const Ring ring = make_ring(group.members, run.cluster, roofline(), Others::alike);
      Bytes wanted{}, found{};
      Seconds closed{};  // without overlap: each in its closed form
      for (const InnerCollective& call : inside.collectives) {
        wanted += call.kind == CollectiveKind::all_gather ? call.bytes / 2 : call.bytes;
        closed += ring_time(ring, call.kind, call.bytes);
      }
      std::uint64_t nanos = 0, talking = 0, operations = 0;
      for (const GraphNode& node : graphs[rank]) {
        if (node.name != describe(run.program, OpId(op))) continue;
        nanos += node.nanos;
        if (node.type == kCollective) {
          talking += node.nanos;
          found += Bytes(static_cast<std::int64_t>(node.numbers.at("comm_size")));
          CHECK(node.texts.at("pg_name") == std::to_string(run.program.ops[op].group.value + 1));
        } else {
          operations += node.numbers.at("num_ops");
        }
      }
      const OpTime& time = run.timeline.ops[op];
      CHECK(found == wanted);
      CHECK(operations == static_cast<std::uint64_t>(std::llround(total_flops(inside).value)));
      CHECK(std::abs(static_cast<double>(nanos) - (time.end - time.start).count() * 1e9) < 2);
      const double share = closed / compute_time(run.program, OpId(op), run.cluster, roofline());
      REQUIRE(share > 0.001);
      CHECK(static_cast<double>(talking) / static_cast<double>(nanos) ==
            doctest::Approx(share).epsilon(1e-3));
      ++cut;
    }
  }
  CHECK(cut == 4 * 4);  // four ranks, two forwards and two backwards each
}

TEST_CASE(
    "every shipped layout of some ranks: bridges, grouped exchanges, shards, other schedules") {
  for (const char* file : {"scenarios/rehearse_8.json", "scenarios/tiny_non_colocated.json",
                           "scenarios/tiny_colocated.json", "scenarios/tiny_fan_out.json",
                           "scenarios/tiny_frozen.json", "scenarios/rehearse_4.json"}) {
    CAPTURE(std::string(file));
    const Scenario scenario = polyphony::test::scenario_at(file);
    const Plan plan = balanced_plan(scenario, *scenario.layout, roofline());
    const Program program = lower(scenario, with_blocks(*scenario.layout, plan), plan,
                                  typical_batch(scenario), StepKind::train, roofline().stack);
    const Jittered run(program, scenario.cluster, 11);
    check_plays(run.program, run.timeline, graphs_of(run.program, run.timeline, run.cluster));
  }
}

}  // namespace polyphony::traces

// Every variant of the dense layers, alone and combined, over 1, 2 and 4 tensor-parallel ranks: the
// loss and every gradient equal those of the plain reference; collectives and matrix
// multiplications are those of expand().
#include "tests/exec/support/variants.h"
#include "exec/data/positions.h"
#include "exec/data/synthetic_dataset.h"
#include "exec/transport/in_process.h"
#include "tests/exec/reference/reference.h"
#include "tests/exec/support/context_shares.h"
#include "tests/exec/support/expected.h"
#include "tests/exec/support/network.h"
#include "tests/exec/support/shards.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

// What a rank's network issued, to compare with expand().
struct Deed {
  std::size_t part;
  Phase phase;
  std::vector<InnerCollective> collectives;
  std::vector<Product> products;
};

struct Outcome {
  double loss = 0;
  std::map<std::string, Tensor> gradients;
  std::vector<Deed> deeds, expected;
};

Outcome run_rank(const Model& model, Communicator* group, const Packed& work,
                 const NetworkOptions& options) {
  Outcome out;
  Network network(model, group, options);
  network.watch([&](const Network::Part& part, Phase phase, const std::function<void()>& run) {
    const auto index = static_cast<std::size_t>(&part - network.parts().data());
    const std::vector<Product> products = products_of(run);
    out.deeds.push_back({index, phase, part.chunk->take_issued(), products});
    const Expansion expansion = expand(model.modules[part.module.value], part.layers, phase,
                                       work.sizes[part.module.value], part.context);
    out.expected.push_back({index, phase, expansion.collectives, expected_products(expansion)});
  });
  out.loss = network.forward(work).item<double>();
  network.backward();
  out.gradients = network.gradients();
  return out;
}

std::vector<Outcome> run_group(const Model& model, int tp, const Packed& work,
                               const NetworkOptions& options) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(tp));
  std::vector<Rank> members;
  for (int i = 0; i < tp; ++i) members.push_back(Rank(static_cast<std::size_t>(i)));
  run_in_process(tp, [&](Transport& transport) {
    torch::set_num_threads(1);
    const auto group = tp > 1 ? transport.make_group("tensor", members) : nullptr;
    outcomes[transport.rank().value] = run_rank(model, group.get(), work, options);
  });
  return outcomes;
}

// Under sequence parallelism expand() counts the largest share of rows, which the first rank has,
// except for patches next to class tokens and frames next to the ends of clips.
void check_deeds(const Outcome& outcome, const Network& names, bool products) {
  REQUIRE(outcome.deeds.size() == outcome.expected.size());
  for (std::size_t i = 0; i < outcome.deeds.size(); ++i) {
    const Network::Part& part = names.parts()[outcome.deeds[i].part];
    CAPTURE(part.module.value);
    CAPTURE(part.layers.begin);
    CAPTURE(name(outcome.deeds[i].phase));
    CHECK((outcome.deeds[i].collectives == outcome.expected[i].collectives));
    if (products) CHECK(outcome.deeds[i].products == outcome.expected[i].products);
  }
}

// Every rank's gradients, after the sums that Parameter::sums_over_tensor names, are the
// reference's.
void check_gradients(const Model& model, std::vector<Outcome>& ranks, bool sequence_parallel,
                     const ReferenceStep& truth) {
  const int tp = static_cast<int>(ranks.size());
  std::size_t compared = 0;
  for (const Module& module : model.modules) {
    for (const Parameter& spec : parameters(module)) {
      if (!spec.trained) continue;
      CAPTURE(spec.name);
      const Tensor& whole = truth.gradients.at(spec.name);
      const double bar = 1e-9 * std::max(whole.norm().item<double>(), 1e-6 * truth.gradient_norm);
      const Tensor sum = torch::zeros(spec.shape, torch::kFloat64), to = sum.view({-1});
      for (int t = 0; t < tp; ++t) {
        const ShardIndex shard{.tensor = tp, .tensor_index = t};
        const Tensor& mine = ranks[static_cast<std::size_t>(t)].gradients.at(spec.name);
        const bool partial = spec.sums_over_tensor(shard, sequence_parallel);
        for (const ElementRun& run : partial ? spec.runs(shard) : spec.owned_runs(shard))
          to.narrow(0, run.global, run.count) += mine.reshape({-1}).narrow(0, run.local, run.count);
        if (!partial) CHECK((mine - local_of(whole, spec, shard)).norm().item<double>() <= bar);
      }
      CHECK((sum - whole).norm().item<double>() <= bar);
      ++compared;
    }
  }
  CHECK(compared == truth.gradients.size());
  CHECK(compared == ranks.front().gradients.size());
}

}  // namespace

TEST_SUITE("variants") {
  TEST_CASE("loss, gradients, collectives and GEMMs") {
    for (const Variant& variant : variants()) {
      CAPTURE(variant.name);
      const Scenario scenario = scenario_of(variant);
      const Model& model = scenario.model;
      const SyntheticDataset dataset(scenario);
      const ReferenceStep truth =
          Reference(scenario, torch::kFloat64).step({samples()}, dataset, 0.0);
      const Packed work = pack(model, samples(), dataset, torch::kFloat64);
      for (const auto& [tp, sequence_parallel] :
           {std::pair(1, false), {2, false}, {4, false}, {2, true}, {4, true}}) {
        CAPTURE(tp);
        CAPTURE(sequence_parallel);
        for (const bool cut : {false, true}) {
          CAPTURE(cut);
          const NetworkOptions options{
              .seed = 3, .sequence_parallel = sequence_parallel, .cut = cut, .split = cut};
          std::vector<Outcome> ranks = run_group(model, tp, work, options);
          const Network names(model, nullptr, options);
          for (const Outcome& rank : ranks) {
            CHECK(std::abs(rank.loss - truth.loss) <= 1e-9 * truth.loss);
            check_deeds(rank, names, !sequence_parallel);
          }
          check_gradients(model, ranks, sequence_parallel, truth);
        }
      }
    }
  }

  TEST_CASE("context parallelism: each rank's tokens rotate by their own time, row and column") {
    std::vector<Stage> stages(1);
    stages[0].module = tiny_language();
    stages[0].module.qk_norm = stages[0].module.qkv_bias = stages[0].module.tied = true;
    stages[0].module.rope_sections = {1, 1, 1};
    stages[0].layers = {0, 4};
    stages[0].options.dtype = torch::kFloat64;
    stages[0].options.perturb = true;
    TestWork whole = uneven_work(torch::kFloat64);
    const std::int64_t tokens = whole.language.tokens;
    whole.input.positions = torch::randint(40, {3, tokens}, torch::kInt64);
    const Tensor image = torch::randn({whole.input.edge_rows.at(0).numel(), 16}, torch::kFloat64);
    // Loss and gradients, summed over the ranks of the context group.
    const auto train = [&](const Communicators& groups, const WorkInput& data, const Tensor& rows) {
      Chunk chunk(stages[0].module, stages[0].layers, groups, {}, stages[0].options);
      std::vector<Tensor> result = {chunk.forward(0, rows, data)};
      chunk.backward(0, Tensor());
      for (const LocalParameter& parameter : chunk.parameters()) result.push_back(parameter.grad);
      return result;
    };
    const std::vector<Tensor> expected = train({}, whole.input, image);
    for (const Named& named : deals()) {
      CAPTURE(named.name);
      const std::vector<Share> shares = deal(whole, named.ranks, named.deal);
      std::vector<std::vector<Tensor>> results(shares.size());
      run_in_process(named.ranks, [&](Transport& transport) {
        std::vector<Rank> members;
        for (std::size_t i = 0; i < shares.size(); ++i) members.emplace_back(i);
        const auto context = transport.make_group("context", members);
        const Share& share = shares[transport.rank().value];
        results[transport.rank().value] = train({.context = context.get()}, share.work.input,
                                                image.index_select(0, share.image_rows));
      });
      for (std::size_t i = 0; i < expected.size(); ++i) {
        Tensor sum = torch::zeros_like(expected[i]);
        for (const std::vector<Tensor>& result : results) sum += result[i];
        CHECK((sum - expected[i]).norm().item<double>() <=
              1e-11 * expected[i].norm().item<double>());
      }
    }
  }

  TEST_CASE("a tied matrix is counted once and owned once") {
    Module m = tiny_language();
    const std::int64_t untied = parameter_count(m);
    m.tied = true;
    CHECK(parameter_count(m) == untied - 24 * 16);
    const std::vector<Parameter> head = parameters(m, {3, 4});
    REQUIRE(head.size() == 2);
    CHECK(head[1].name == "language.embedding.weight");
    CHECK((head[1].tied && head[1].copy));
    CHECK(head[1].owned_runs({}).empty());
    CHECK(head[1].runs({}).size() == 1);
    const std::vector<Parameter> embedding = parameters(m, {0, 1});
    CHECK((embedding[0].tied && !embedding[0].copy));
    // Both copies start from the same values, whatever range they are in.
    CHECK(torch::equal(initial_value(head[1], {}, 5, torch::kFloat64, true),
                       initial_value(embedding[0], {}, 5, torch::kFloat64, true)));
  }

  TEST_CASE("positions of time, row and column by hand") {
    Model model = tiny_model();
    model.modules[4].rope_sections = {1, 1, 1};
    const Item image{Modality::image, 16, 0};
    const Sample sample{
        0, {{Modality::text, 2, 0}, image, {Modality::audio, 4, 0}, {Modality::text, 1, 1}}};
    // Text 0, 1; 2 × 2 cells from 2; audio and text go on from 2 + 2: two audio tokens, one of
    // text.
    const Tensor expected = torch::tensor(
        {{0, 1, 2, 2, 2, 2, 4, 5, 6}, {0, 1, 2, 2, 3, 3, 4, 5, 6}, {0, 1, 2, 3, 2, 3, 4, 5, 6}},
        torch::kInt64);
    CHECK(torch::equal(rope_positions(model, sample), expected));
    // 2 × 6 patches are 1 × 3 cells from 0; 6 × 2 are 3 × 1 cells from 0 + 3; text follows at 6.
    const Sample oblong{0, {image_item({2, 6}), image_item({6, 2}), {Modality::text, 1, 1}}};
    CHECK(torch::equal(
        rope_positions(model, oblong),
        torch::tensor({{0, 0, 0, 3, 3, 3, 6}, {0, 0, 0, 3, 4, 5, 6}, {0, 1, 2, 3, 3, 3, 6}},
                      torch::kInt64)));
    model.modules[4].rope_sections = {};
    CHECK(torch::equal(rope_positions(model, sample), torch::arange(9, torch::kInt64)));
  }
}

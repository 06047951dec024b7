// Chunks with experts on every kind of grid. Their results are those of the plain model; what they
// issue, count and save is what shared/ predicts.
#include <algorithm>

#include "exec/transport/in_process.h"
#include "shared/chunk/expand.h"
#include "shared/work/row_shares.h"
#include "tests/exec/reference/plain_model.h"
#include "tests/exec/support/context_shares.h"
#include "tests/exec/support/sparse_layer.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

// Lanes are data-parallel. Rank t + tp·(c + cp·lane); the ranks of an expert group are neighbors
// in this order, at one t when experts are cut.
struct Grid {
  int tp = 1, cp = 1, lanes = 1, ep = 1;
  bool sp = false;
  bool whole = false;  // experts are not cut

  int ranks() const { return tp * cp * lanes; }
  // Index among the ranks that experts are distributed over.
  int place(int rank) const { return whole ? rank : rank / tp; }
  ShardIndex shard(int rank) const {
    return {
        .tensor = tp, .tensor_index = rank % tp, .expert = ep, .expert_index = place(rank) % ep};
  }
  ShardIndex expert_shard(int rank) const {
    ShardIndex shard = this->shard(rank);
    if (whole) shard.tensor = 1, shard.tensor_index = 0;
    return shard;
  }
  ChunkContext context(NumberFormat precision) const {
    return {.tp = tp,
            .sp = sp && tp > 1,
            .cp = cp,
            .ep = ep,
            .expert_tp = whole ? 1 : tp,
            .precision = precision};
  }
};

Module whole_sparse() {
  Module module = sparse_language();
  module.shared_ffn = 8;
  return module;
}
std::vector<Stage> sparse_model(torch::Dtype dtype) {
  std::vector<Stage> stages = whole_model(dtype);
  stages[2].module = whole_sparse();
  return stages;
}
constexpr LayerRange kLayers{0, 4};

// Unequal lanes, one of them empty.
TestWork lane_work(int lane, torch::Dtype dtype) {
  const std::vector<std::vector<SampleShape>> lanes = {
      {{{16}, 5, 2}, {{}, 12, 4}}, {}, {{{}, 1, 1}, {{4}, 3, 0}, {{}, 20, 6}}, {{{4}, 2, 1}}};
  TestWork work = make_work(lanes[static_cast<std::size_t>(lane)], dtype, 30 + lane);
  work.input.balance_scale = 1.0 / 6;
  return work;
}

struct Outcome {
  double loss = 0;
  std::vector<InnerCollective> forward, backward, split, weight;
  std::vector<Tensor> gradients, again;
  Tensor input_gradient;
};

// Inputs of the language module of one replica, and each context-parallel rank's share of them.
struct Lane {
  TestWork work;
  Tensor image;
  std::vector<Share> shares;
};
std::vector<Lane> make_lanes(const Grid& grid, torch::Dtype dtype) {
  std::vector<Lane> lanes;
  for (int l = 0; l < grid.lanes; ++l) {
    Lane lane{lane_work(l, dtype), {}, {}};
    Chain chain(sparse_model(dtype), nullptr);
    lane.image =
        chain[1].forward(0, chain[0].forward(0, Tensor(), lane.work.input), lane.work.input);
    if (grid.cp == 1)
      lane.shares = {{lane.work, {}, indices({})}};
    else
      lane.shares = deal(lane.work, grid.cp, [&](auto s, std::int64_t p, auto) {
        return static_cast<int>((s + p / 2) % grid.cp);
      });
    lanes.push_back(lane);
  }
  return lanes;
}

Outcome run_chunk(const Grid& grid, int rank, const Communicators& groups, const Lane& lane,
                  const ChunkOptions& options) {
  const int t = rank % grid.tp, c = rank / grid.tp % grid.cp;
  const Share& share = lane.shares[static_cast<std::size_t>(c)];
  Tensor image = grid.cp == 1 ? lane.image : lane.image.index_select(0, share.image_rows);
  if (grid.sp) {
    const RowShares own{image.size(0), grid.tp};
    image = image.narrow(0, own.begin(t), own.count(t));
  }
  exec::Chunk chunk(whole_sparse(), kLayers, groups, grid.shard(rank), options);
  Outcome out;
  out.loss = chunk.forward(0, image, share.work.input).item<double>();
  out.forward = chunk.take_issued();
  out.input_gradient = chunk.backward(0, Tensor()).front();
  out.backward = chunk.take_issued();
  for (LocalParameter& parameter : chunk.parameters()) {
    out.gradients.push_back(parameter.grad.clone());
    parameter.grad.zero_();
  }
  chunk.forward(1, image, share.work.input);
  chunk.take_issued();
  chunk.backward_input(1, Tensor());
  out.split = chunk.take_issued();
  chunk.backward_weight(1);
  out.weight = chunk.take_issued();
  for (const LocalParameter& parameter : chunk.parameters()) out.again.push_back(parameter.grad);
  return out;
}

std::vector<Outcome> run_grid(const Grid& grid, const std::vector<Lane>& lanes,
                              ChunkOptions options) {
  options.sequence_parallel = grid.sp;
  options.expert_tp = grid.whole ? 1 : 0;
  std::vector<Outcome> outcomes(static_cast<std::size_t>(grid.ranks()));
  run_in_process(grid.ranks(), [&](Transport& transport) {
    torch::set_num_threads(1);
    const int rank = static_cast<int>(transport.rank().value);
    const auto group = [&](const char* kind, const auto& key) {  // the ranks with equal keys
      std::vector<Rank> members;
      for (int r = 0; r < grid.ranks(); ++r)
        if (key(r) == key(rank)) members.emplace_back(static_cast<std::size_t>(r));
      return transport.make_group(kind + std::to_string(key(rank)), members);
    };
    const auto tensor = group("tensor", [&](int r) { return r / grid.tp; });
    const auto context =
        group("context", [&](int r) { return r % grid.tp + grid.tp * (r / (grid.tp * grid.cp)); });
    const auto expert = group("expert", [&](int r) {
      return grid.place(r) / grid.ep + (grid.whole ? 0 : grid.ranks() * (r % grid.tp));
    });
    outcomes[transport.rank().value] = run_chunk(
        grid, rank, {.tensor = tensor.get(), .context = context.get(), .expert = expert.get()},
        lanes[static_cast<std::size_t>(rank / (grid.tp * grid.cp))], options);
  });
  return outcomes;
}

// Over all ranks, of every element once where copies are equal, and of every part of a sum.
Tensor summed(const std::vector<Outcome>& ranks, const Grid& grid, std::size_t p,
              const Parameter& spec) {
  Tensor whole = torch::zeros(spec.shape, torch::kFloat64);
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    const ShardIndex shard = spec.expert ? grid.expert_shard(rank) : grid.shard(rank);
    const Tensor from =
        ranks[static_cast<std::size_t>(rank)].gradients[p].to(torch::kFloat64).reshape({-1});
    const bool partial = !spec.expert && spec.sums_over_tensor(shard, grid.sp);
    for (const ElementRun& run : partial ? spec.runs(shard) : spec.owned_runs(shard))
      whole.view({-1}).narrow(0, run.global, run.count) += from.narrow(0, run.local, run.count);
  }
  return whole;
}

void check_values(const Grid& grid, const std::vector<Lane>& lanes,
                  const std::vector<Outcome>& ranks) {
  Tensors expected;
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    double loss = 0;
    for (int c = 0; c < grid.cp; ++c)
      loss += ranks[l * static_cast<std::size_t>(grid.tp * grid.cp) +
                    static_cast<std::size_t>(c * grid.tp)]
                  .loss;
    if (lanes[l].work.input.lengths.empty()) {
      CHECK(loss == 0);
      continue;
    }
    const PlainResult plain = plain_model(sparse_model(torch::kFloat64), lanes[l].work);
    CHECK(loss == doctest::Approx(plain.loss).epsilon(1e-12));
    for (const auto& [name, gradient] : plain.gradients)
      expected[name] = expected.count(name) ? expected[name] + gradient : gradient;
  }
  const std::vector<Parameter> specs = polyphony::parameters(whole_sparse(), kLayers);
  for (std::size_t p = 0; p < specs.size(); ++p) {
    CAPTURE(specs[p].name);
    const Tensor& wanted = expected.at(specs[p].name);
    CHECK(wanted.norm().item<double>() > 1e-6);
    CHECK((summed(ranks, grid, p, specs[p]) - wanted).norm().item<double>() <=
          1e-11 * wanted.norm().item<double>());
  }
}

void check_issued(const Grid& grid, const std::vector<Lane>& lanes,
                  const std::vector<Outcome>& ranks, NumberFormat precision, Recompute recompute) {
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    const Outcome& outcome = ranks[static_cast<std::size_t>(rank)];
    const Lane& lane = lanes[static_cast<std::size_t>(rank / (grid.tp * grid.cp))];
    const WorkSize& size =
        lane.shares[static_cast<std::size_t>(rank / grid.tp % grid.cp)].work.language;
    const auto expected = [&](Phase phase) {
      ChunkContext context = grid.context(precision);
      context.recompute = recompute;
      return expand(whole_sparse(), kLayers, phase, size, context).collectives;
    };
    CHECK((outcome.forward == expected(Phase::forward)));
    CHECK((outcome.backward == expected(Phase::backward)));
    CHECK((outcome.split == expected(Phase::backward_input)));
    CHECK(outcome.weight.empty());
    for (std::size_t p = 0; p < outcome.gradients.size(); ++p)
      CHECK(torch::equal(outcome.gradients[p], outcome.again[p]));
  }
}

void check_grid(const Grid& grid) {
  CAPTURE(grid.tp);
  CAPTURE(grid.cp);
  CAPTURE(grid.lanes);
  CAPTURE(grid.ep);
  CAPTURE(grid.sp);
  CAPTURE(grid.whole);
  ChunkOptions options;
  options.dtype = torch::kFloat64;
  options.perturb = true;
  const std::vector<Lane> lanes = make_lanes(grid, options.dtype);
  const std::vector<Outcome> ranks = run_grid(grid, lanes, options);
  check_values(grid, lanes, ranks);
  check_issued(grid, lanes, ranks, NumberFormat::fp64, Recompute::none);
  options.recompute = Recompute::full;
  check_issued(grid, lanes, run_grid(grid, lanes, options), NumberFormat::fp64, Recompute::full);
  options.dtype = torch::kBFloat16;
  options.recompute = Recompute::none;
  const std::vector<Lane> narrow = make_lanes(grid, options.dtype);
  check_issued(grid, narrow, run_grid(grid, narrow, options), NumberFormat::bf16, Recompute::none);
}

}  // namespace

TEST_SUITE("experts") {
  TEST_CASE("experts over data-parallel replicas, cut over tensor-parallel ranks or whole") {
    check_grid({});
    check_grid({.lanes = 2, .ep = 2});
    check_grid({.lanes = 4, .ep = 4});
    check_grid({.lanes = 4, .ep = 2});
    check_grid({.tp = 2, .lanes = 2, .ep = 2});
    check_grid({.tp = 4, .lanes = 2, .ep = 1});
    check_grid({.tp = 2, .lanes = 4, .ep = 4});
  }
  TEST_CASE("experts under sequence parallelism") {
    check_grid({.tp = 2, .lanes = 2, .ep = 2, .sp = true});
    check_grid({.tp = 4, .lanes = 1, .ep = 1, .sp = true});
    for (const int ep : {1, 2, 4, 8})
      check_grid({.tp = 2, .lanes = 4, .ep = ep, .sp = true, .whole = true});
    check_grid({.tp = 4, .lanes = 2, .ep = 2, .sp = true, .whole = true});
  }
  TEST_CASE("experts under context parallelism") {
    check_grid({.cp = 2, .lanes = 2, .ep = 4});
    check_grid({.tp = 2, .cp = 2, .lanes = 1, .ep = 2});
    check_grid({.tp = 2, .cp = 2, .lanes = 2, .ep = 2, .sp = true});
    check_grid({.tp = 2, .cp = 2, .lanes = 2, .ep = 4, .sp = true, .whole = true});
  }
}

#include <mutex>

#include "exec/chunk/edge_rows.h"
#include "exec/transport/in_process.h"
#include "shared/chunk/expand.h"
#include "shared/error.h"
#include "shared/work/row_shares.h"
#include "tests/exec/support/tiny_model.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

// The second half of the language module, with rows of two edges added to its input.
struct Second {
  explicit Second(torch::Dtype dtype, Communicator* group = nullptr, bool edge_grad = true,
                  bool sequence = false) {
    ChunkOptions options;
    options.dtype = dtype;
    options.perturb = true;
    options.edge_grad = edge_grad;
    options.sequence_parallel = sequence;
    options.input_edges = {4, 9};
    ShardIndex shard;
    if (group) shard = {.tensor = group->size(), .tensor_index = group->index()};
    chunk.emplace(tiny_language(), LayerRange{2, 4}, Communicators{.tensor = group}, shard,
                  options);
  }
  std::optional<Chunk> chunk;
};

struct EdgeRows {
  TestWork work;
  Tensor x, first, second;  // the input; rows of edge 4 (all images) and of edge 9 (two of them)
};
EdgeRows make_rows(torch::Dtype dtype) {
  EdgeRows rows{uneven_work(dtype), {}, {}, {}};
  const Tensor images = rows.work.input.edge_rows.at(0);
  rows.work.input.edge_rows = {{4, images}, {9, images.narrow(0, 1, 2)}};
  torch::manual_seed(8);
  rows.x = torch::randn({rows.work.language.tokens, 16}, dtype);
  rows.first = torch::randn({images.numel(), 16}, dtype);
  rows.second = torch::randn({2, 16}, dtype);
  return rows;
}

}  // namespace

TEST_SUITE("inner edges") {
  TEST_CASE("rows are added at the positions of their items, and their gradients are taken there") {
    const EdgeRows rows = make_rows(torch::kFloat64);
    Second with(torch::kFloat64), plain(torch::kFloat64);
    Tensor sum = rows.x.clone();
    const Tensor images = rows.work.input.edge_rows.at(4);
    for (std::int64_t i = 0; i < images.numel(); ++i)
      sum[images[i].item<std::int64_t>()] += rows.first[i];
    for (std::int64_t i = 0; i < 2; ++i) sum[images[i + 1].item<std::int64_t>()] += rows.second[i];
    const Tensor loss = with.chunk->forward(0, {rows.x, rows.first, rows.second}, rows.work.input);
    CHECK(torch::equal(loss, plain.chunk->forward(0, sum, rows.work.input)));
    const std::vector<Tensor> gradients = with.chunk->backward(0, Tensor());
    const Tensor whole = plain.chunk->backward(0, Tensor()).front();
    REQUIRE(gradients.size() == 3);
    CHECK(torch::equal(gradients[0], whole));
    for (std::int64_t i = 0; i < images.numel(); ++i)
      CHECK(torch::equal(gradients[1][i], whole[images[i].item<std::int64_t>()]));
    CHECK(torch::equal(gradients[2], gradients[1].narrow(0, 1, 2)));
    for (std::size_t i = 0; i < plain.chunk->parameters().size(); ++i)
      CHECK(torch::equal(with.chunk->parameters()[i].grad, plain.chunk->parameters()[i].grad));
  }

  TEST_CASE("an edge without rows, an absent input, and unwanted gradients") {
    const EdgeRows rows = make_rows(torch::kFloat64);
    EdgeRows none = rows;
    none.work.input.edge_rows[9] = torch::zeros({0}, torch::kInt64);
    Second chunk(torch::kFloat64), other(torch::kFloat64), quiet(torch::kFloat64, nullptr, false);
    const Tensor empty = torch::zeros({0, 16}, torch::kFloat64);
    const Tensor loss = chunk.chunk->forward(0, {none.x, none.first, empty}, none.work.input);
    CHECK(torch::equal(loss,
                       other.chunk->forward(0, {none.x, none.first, Tensor()}, none.work.input)));
    const std::vector<Tensor> gradients = chunk.chunk->backward(0, Tensor());
    CHECK(gradients[2].sizes() == empty.sizes());
    CHECK(torch::equal(gradients[1], other.chunk->backward(0, Tensor())[1]));
    quiet.chunk->forward(0, {rows.x, rows.first, rows.second}, rows.work.input);
    const std::vector<Tensor> main_only = quiet.chunk->backward(0, Tensor());
    CHECK(main_only[0].defined());
    CHECK_FALSE(main_only[1].defined());
    CHECK_THROWS_AS(quiet.chunk->forward(1, {rows.x, rows.second}, rows.work.input), InternalError);
  }

  TEST_CASE("tensor-parallel ranks add the same, and their collectives remain those of expand()") {
    const EdgeRows rows = make_rows(torch::kFloat64);
    Second alone(torch::kFloat64);
    const double loss =
        alone.chunk->forward(0, {rows.x, rows.first, rows.second}, rows.work.input).item<double>();
    const std::vector<Tensor> expected = alone.chunk->backward(0, Tensor());
    for (const bool sequence : {false, true}) {
      const ChunkContext context{
          .tp = 2, .sp = sequence, .precision = NumberFormat::fp64, .added_edges = 2};
      std::vector<InnerCollective> listed;
      for (const Phase phase : {Phase::forward, Phase::backward})
        for (const InnerCollective& collective :
             expand(tiny_language(), {2, 4}, phase, rows.work.language, context).collectives)
          listed.push_back(collective);
      std::mutex mutex;
      run_in_process(2, [&](Transport& transport) {
        const auto group = transport.make_group("tensor", {Rank(0), Rank(1)});
        const auto own = [&](const Tensor& whole) {
          const RowShares shares{whole.size(0), 2};
          return sequence
                     ? whole.narrow(0, shares.begin(group->index()), shares.count(group->index()))
                     : whole;
        };
        Second one(torch::kFloat64, group.get(), true, sequence);
        const double found =
            one.chunk->forward(0, {own(rows.x), own(rows.first), own(rows.second)}, rows.work.input)
                .item<double>();
        const std::vector<Tensor> gradients = one.chunk->backward(0, Tensor());
        const std::lock_guard lock(mutex);
        CHECK(std::abs(found - loss) < 1e-12 * loss);
        CHECK((one.chunk->take_issued() == listed));
        for (std::size_t i = 0; i < 3; ++i)
          CHECK(torch::allclose(gradients[i], own(expected[i]), 1e-10, 1e-13));
      });
    }
  }
}

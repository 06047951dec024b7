// Tensor-parallel layers in pieces of rows give what they give whole.
#include "exec/autograd/linear.h"
#include "exec/transport/in_process.h"
#include "tests/exec/support/expected.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

constexpr std::int64_t kIn = 6, kOut = 4, kRank = 3;

// Small whole numbers: every sum of their products is exact, in any order.
Tensor numbers(const std::vector<std::int64_t>& shape, std::int64_t seed) {
  const Tensor counted = torch::arange(torch::zeros(shape).numel(), torch::dtype(torch::kFloat64));
  return (counted * 37 + seed * 11).remainder(17).sub(8).reshape(shape);
}

LocalParameter parameter(const std::vector<std::int64_t>& shape, std::int64_t seed, bool trains) {
  LocalParameter made;
  made.value = numbers(shape, seed);
  if (trains) made.grad = torch::zeros(shape, torch::kFloat64);
  return made;
}

struct Way {
  int tp = 2;
  std::int64_t rows = 10;
  bool column = false, sp = false, lora = false;
};

// y, dx and the gradients of weight, bias and pair, then what was recorded, of one rank.
struct Result {
  std::vector<Tensor> tensors;
  std::vector<InnerCollective> collectives;
};

Result run_layer(Communicator& group, const Way& way, int pieces) {
  const int t = group.index();
  InnerGroups groups{Communicators{.tensor = &group}};
  Pass pass{&groups, std::make_shared<WeightQueue>(),
            torch::zeros({}, torch::kFloat64).requires_grad_(true)};
  pass.pieces = pieces;
  const RowShares shares{way.rows, way.tp};
  std::int64_t first = 0, own = way.rows;
  if (way.sp) {
    pass.rows = std::make_shared<SequenceRows>(groups.tensor, way.rows);
    first = shares.begin(t), own = shares.count(t);
  }
  LocalParameter weight = parameter({kOut, kIn}, 1 + t, !way.lora),
                 bias = parameter({kOut}, 9, !way.lora),
                 a = parameter({kRank, kIn}, 3 + t, way.lora),
                 b = parameter({kOut, kRank}, 5 + t, way.lora);
  if (way.lora) weight.lora_a = &a, weight.lora_b = &b, weight.lora_scale = 2;
  // Of a column-parallel layer x and dx are the rows of this rank, of a row-parallel one y and dy.
  const Tensor all_x = numbers({way.rows, kIn}, way.column ? 2 : 2 + t),
               all_dy = numbers({way.rows, kOut}, way.column ? 7 + t : 7);
  const auto part = [&](const Tensor& all) { return all.narrow(0, first, own).clone(); };
  const Tensor x = (way.column ? part(all_x) : all_x.clone()).requires_grad_(true);
  const Tensor dy = way.column ? all_dy : part(all_dy);
  const Tensor y =
      way.column ? column_linear(pass, x, &weight, &bias) : row_linear(pass, x, &weight, &bias);
  REQUIRE(y.size(0) == dy.size(0));
  torch::autograd::backward({y}, {dy});
  pass.queue->run();
  Result result{{y.detach(), x.grad()}, groups.take_issued()};
  for (const LocalParameter* p : {&weight, &bias, &a, &b})
    if (p->grad.defined()) result.tensors.push_back(p->grad);
  return result;
}

std::vector<Result> run_ranks(const Way& way, int pieces) {
  std::vector<Result> results(static_cast<std::size_t>(way.tp));
  std::vector<Rank> members;
  for (int i = 0; i < way.tp; ++i) members.push_back(Rank(static_cast<std::size_t>(i)));
  run_in_process(way.tp, [&](Transport& transport) {
    torch::set_num_threads(1);
    const auto group = transport.make_group("tensor", members);
    results[transport.rank().value] = run_layer(*group, way, pieces);
  });
  return results;
}

}  // namespace

TEST_SUITE("pieced product") {
  // Rows that do not divide, that are fewer than pieces or ranks, or none; every kind of layer.
  TEST_CASE("pieces give the bits of the whole") {
    int compared = 0;
    for (const int tp : {2, 3})
      for (const std::int64_t rows : {0, 1, 5, 12, 23})
        for (const bool column : {false, true})
          for (const bool sp : {false, true})
            for (const bool lora : {false, true}) {
              const Way way{tp, rows, column, sp, lora};
              const std::vector<Result> whole = run_ranks(way, 1);
              for (const int pieces : {2, 3, 7}) {
                CAPTURE(tp);
                CAPTURE(rows);
                CAPTURE(column);
                CAPTURE(sp);
                CAPTURE(lora);
                CAPTURE(pieces);
                const std::vector<Result> cut = run_ranks(way, pieces);
                for (std::size_t t = 0; t < cut.size(); ++t) {
                  REQUIRE(cut[t].tensors.size() == whole[t].tensors.size());
                  for (std::size_t i = 0; i < cut[t].tensors.size(); ++i) {
                    CAPTURE(i);
                    CHECK(torch::equal(cut[t].tensors[i], whole[t].tensors[i]));
                    ++compared;
                  }
                }
              }
            }
    CHECK(compared == 3 * (2 + 3) * 5 * 2 * 2 * (4 + 4));
  }

  // 12 rows on 2 ranks, 3 pieces: of a row-parallel layer 4 rows a sum, [4, 4] of 8 bytes; of 6-row shares 2
  // rows of each.
  TEST_CASE("as many collectives as pieces") {
    const Bytes out(4 * kOut * 8), in(4 * kIn * 8), x(12 * kIn * 8);
    using Kind = CollectiveKind;
    using List = std::vector<InnerCollective>;
    const auto issued = [](bool column, bool sp) {
      return run_ranks({2, 12, column, sp, false}, 3)[1].collectives;
    };
    CHECK((issued(false, false) == List(3, {Kind::all_reduce, out})));
    CHECK((issued(true, false) == List(3, {Kind::all_reduce, in})));
    const InnerCollective scatter{Kind::reduce_scatter, out}, gather{Kind::all_gather, out};
    CHECK((issued(false, true) == List{scatter, scatter, scatter, gather, gather, gather}));
    const InnerCollective in_gather{Kind::all_gather, in}, in_scatter{Kind::reduce_scatter, in};
    CHECK((issued(true, true) == List{in_gather,
                                      in_gather,
                                      in_gather,
                                      {Kind::all_gather, x},
                                      in_scatter,
                                      in_scatter,
                                      in_scatter}));
  }
}

// Tensor-parallel layers in chunks of rows compute the same as whole.
#include "tests/exec/support/linear_layer.h"
#include "tests/exec/support/tensor_ranks.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

std::vector<LinearResult> run_ranks(const LinearWay& way, int pieces) {
  std::vector<LinearResult> results(static_cast<std::size_t>(way.tp));
  on_tensor_ranks(way.tp, [&](std::size_t rank, Communicator* group) {
    results[rank] = run_linear(*group, way, pieces);
  });
  return results;
}

}  // namespace

TEST_SUITE("pieced product") {
  // Rows that are not divisible, fewer than chunks or ranks, or none; for every kind of layer.
  TEST_CASE("chunks of rows are bitwise identical to the whole") {
    int compared = 0;
    for (const int tp : {2, 3})
      for (const std::int64_t rows : {0, 1, 5, 12, 23})
        for (const bool column : {false, true})
          for (const bool sp : {false, true})
            for (const bool lora : {false, true}) {
              const LinearWay way{tp, rows, column, sp, lora};
              const std::vector<LinearResult> whole = run_ranks(way, 1);
              for (const int pieces : {2, 3, 7}) {
                CAPTURE(tp);
                CAPTURE(rows);
                CAPTURE(column);
                CAPTURE(sp);
                CAPTURE(lora);
                CAPTURE(pieces);
                const std::vector<LinearResult> cut = run_ranks(way, pieces);
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

  // 12 rows on 2 ranks, 3 pieces: of a row-parallel layer 4 rows a sum, [4, 4] of 8 bytes; of 6-row
  // shares 2 rows of each.
  TEST_CASE("as many collectives as chunks") {
    const Bytes out(4 * kLinearOut * 8), in(4 * kLinearIn * 8), x(12 * kLinearIn * 8);
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

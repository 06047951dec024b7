// What a chunk holds between its forward and backward pass: tape_bytes() (shared/chunk/sizes.h),
// its inputs, and the indices and tables of tests/exec/support/row_plans.h; and between the input
// and the weight part of its backward: held_for_weights(). Exact to the byte, for every kind of
// layer, trained or not, recomputed or not, number format, and cut over ranks.
#include <functional>
#include <mutex>

#include "exec/transport/in_process.h"
#include "shared/chunk/sizes.h"
#include "tests/exec/chunk/tape_setups.h"
#include "tests/exec/support/context_shares.h"
#include "tests/exec/support/counted_transport.h"
#include "tests/exec/support/row_plans.h"
#include "tests/exec/support/tensor_ledger.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

struct Held {
  std::int64_t tape = 0;     // from forward to backward
  std::int64_t weights = 0;  // from the backward's input part to its weight part
  std::int64_t most = 0;     // while the input part runs
};

Held held(const Setup& setup, const Communicators& groups = {}, const Seat& seat = {}) {
  ShardIndex shard{.tensor = setup.context.tp, .tensor_index = seat.tensor};
  if (groups.expert)
    shard.expert = groups.expert->size(), shard.expert_index = groups.expert->index();
  exec::Chunk chunk(setup.module, setup.layers, groups, shard, setup.options);
  TensorLedger ledger;
  const LedgerScope scope(&ledger);
  std::vector<std::int64_t> shape;
  {
    std::vector<Tensor> inputs;
    for (const auto& [rows, width] : setup.inputs) {
      const RowShares shares{rows, setup.context.sp ? setup.context.tp : 1};
      inputs.push_back(torch::randn({shares.count(setup.context.sp ? seat.tensor : 0), width},
                                    setup.options.dtype));
    }
    shape = chunk.forward(0, inputs, setup.input).sizes().vec();
  }
  Held result{ledger.live().value};
  ledger.most();
  if (setup.options.trainable || setup.options.input_grad)
    chunk.backward_input(0, shape.empty() ? Tensor() : torch::ones(shape, setup.options.dtype));
  result.weights = ledger.live().value;
  result.most = ledger.most().value;
  return result;
}

Held expected(const Setup& setup, const Seat& seat = {}) {
  const RankContext context(setup.context, seat.tensor);
  Bytes tape = tape_bytes(setup.module, setup.layers, setup.size, context) -
               input_in_tape(setup.module, setup.layers, setup.size, context) +
               row_plan_bytes(setup.module, setup.layers, setup.input, setup.context, seat);
  for (const auto& [rows, width] : setup.inputs)
    tape +=
        size_of(setup.context.precision) *
        (width * (setup.context.sp ? RowShares{rows, setup.context.tp}.count(seat.tensor) : rows));
  const Bytes weights =
      held_for_weights(setup.module, setup.layers, setup.size, context) +
      weight_plan_bytes(setup.module, setup.layers, setup.input, setup.context, seat);
  return {tape.value, weights.value};
}

std::string difference(const Setup& setup, const Held& is, const Held& says) {
  std::string text;
  if (is.tape != says.tape)
    text += setup.name + ": holds " + std::to_string(is.tape) + " bytes, " +
            std::to_string(is.tape - says.tape) + " too many\n";
  // A layer without weights runs its backward whole.
  if (is.weights != says.weights && setup.module.trainable != Trainable::frozen)
    text += setup.name + ": weight parts wait with " + std::to_string(is.weights) + " bytes, " +
            std::to_string(is.weights - says.weights) + " too many\n";
  return text;
}

// On every rank.
std::string differences(
    int ranks, const std::vector<Setup>& setups,
    const std::function<void(CountedTransport&, Setup&, Communicators&, Seat&)>& join) {
  std::mutex mutex;
  std::string text;
  for (const Setup& setup : setups) {
    run_in_process(ranks, [&](Transport& transport) {
      CountedTransport counted(transport);
      std::vector<Rank> members;
      for (int r = 0; r < ranks; ++r) members.emplace_back(static_cast<std::size_t>(r));
      const auto group = counted.make_group("all", members);
      Setup mine = setup;
      Communicators groups{.tensor = group.get()};
      Seat seat{.tensor = group->index()};
      join(counted, mine, groups, seat);
      const Held is = held(mine, groups, seat), says = expected(mine, seat);
      const std::scoped_lock lock(mutex);
      text += difference(mine, is, says);
    });
  }
  return text;
}

}  // namespace

TEST_SUITE("tape") {
  TEST_CASE("of every layer") {
    for (const torch::Dtype dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
      std::string text;
      for (const Setup& setup : all_setups(dtype))
        text += difference(setup, held(setup), expected(setup));
      CAPTURE(dtype);
      CHECK(text == "");
    }
  }

  TEST_CASE("what weight gradients need replaces the saved activations, layer by layer") {
    const TestWork work = uneven_work(torch::kFloat64);
    Setup setup{"16 blocks", tiny_language(), {1, 17},
                work.input,  work.language,   {{work.language.tokens, 16}}};
    setup.module.layers = 16;
    setup = spread({setup}, torch::kFloat64).front();
    const Held is = held(setup);
    const std::int64_t made =
        made_for_weights(setup.module, setup.layers, setup.size, setup.context).value;
    const std::int64_t ends = std::max(is.tape, is.weights);
    CAPTURE(is.tape);
    CAPTURE(is.weights);
    CAPTURE(is.most);
    CAPTURE(made);
    CHECK(is.most > ends);
    // Those of one layer, and three times as much for temporaries of its kernels; not those of all
    // 16.
    CHECK(is.most < ends + 4 * made);
  }

  TEST_CASE("of layers cut over tensor-parallel ranks, with and without sequence parallelism") {
    for (const int tp : {2, 4}) {
      for (const bool sp : {false, true}) {
        std::vector<Setup> setups = all_setups(torch::kFloat32);
        // Under sequence parallelism two layers save amounts that rows alone do not determine: loss
        // rows are where the labels are, and a convolution reads one row of the rank before.
        if (sp)
          std::erase_if(setups, [](const Setup& setup) {
            return (setup.layers.end == 4 && setup.module.kind == ModuleKind::language) ||
                   setup.module.kind == ModuleKind::audio;
          });
        for (Setup& setup : setups) {
          setup.context.tp = tp;
          setup.context.expert_tp = tp;
          setup.context.sp = setup.options.sequence_parallel = sp;
          setup.name += ", tp " + std::to_string(tp) + (sp ? " sp" : "");
        }
        CHECK(differences(tp, setups, [](auto&, Setup&, Communicators&, Seat&) {}) == "");
      }
    }
  }

  TEST_CASE("of decoder blocks whose tokens are split over a context-parallel group") {
    for (const Named& named : deals()) {
      const std::vector<Share> shares = deal(uneven_work(torch::kFloat32), named.ranks, named.deal);
      std::vector<Setup> setups;
      for (const Module& module : {tiny_language(), sparse_language()})
        setups.push_back({named.name, module, {1, 3}, {}, {}, {}});
      setups = spread(setups, torch::kFloat32);
      for (Setup& setup : setups) setup.context.cp = named.ranks;
      for (const AttentionWay& way : ways(4, named.ranks)) {
        CAPTURE(name(way));
        for (Setup& setup : setups) {
          setup.options.attention = way;
          set_way(setup.context, way);
        }
        CHECK(differences(named.ranks, setups,
                          [&](auto&, Setup& mine, Communicators& groups, Seat& seat) {
                            const Share& share = shares[static_cast<std::size_t>(seat.tensor)];
                            mine.input = share.work.input;
                            mine.size = share.work.language;
                            mine.inputs = {{mine.size.tokens, 16}};
                            groups = {.context = groups.tensor};
                            seat = {.tensor = 0, .context = seat.tensor};
                          }) == "");
      }
    }
  }
}

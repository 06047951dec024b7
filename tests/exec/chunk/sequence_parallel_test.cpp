#include <algorithm>
#include <string>

#include "exec/chunk/chunk.h"
#include "exec/transport/in_process.h"
#include "shared/work/row_shares.h"
#include "tests/exec/reference/plain_model.h"
#include "tests/exec/support/expected.h"
#include "tests/exec/support/shards.h"
#include "tests/exec/support/tensor_ranks.h"
#include "tests/exec/support/tiny_model.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

std::vector<Stage> sequence_parallel(std::vector<Stage> stages) {
  for (Stage& stage : stages) stage.options.sequence_parallel = true;
  return stages;
}

// By stage: what one rank gave to the next and to the one before, and issued.
struct SequenceOutcome {
  Tensor loss, predicted;
  std::vector<Tensor> outputs, input_gradients, gradients;
  std::vector<std::vector<InnerCollective>> forward, backward, again;  // again: the two parts
  std::vector<std::vector<Product>> products;                          // forward, then backward
};

SequenceOutcome run_sequence_rank(const std::vector<Stage>& stages, Communicator* group,
                                  const TestWork& work) {
  SequenceOutcome out;
  Chain chain(stages, group);
  Tensor x;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    out.products.push_back(products_of([&] { x = chain[i].forward(0, x, work.input); }));
    out.outputs.push_back(x);
    out.forward.push_back(chain[i].take_issued());
  }
  out.loss = x;
  Tensor gradient;
  out.input_gradients.resize(chain.size());
  out.backward.resize(chain.size());
  std::vector<std::vector<Product>> back(chain.size());
  for (std::size_t i = chain.size(); i-- > 0;) {
    back[i] = products_of([&] { gradient = chain[i].backward(0, gradient).front(); });
    out.input_gradients[i] = gradient;
    out.backward[i] = chain[i].take_issued();
  }
  out.products.insert(out.products.end(), back.begin(), back.end());
  for (const LocalParameter* parameter : chain.parameters())
    out.gradients.push_back(parameter->grad.clone());
  for (const LocalParameter* parameter : chain.parameters()) parameter->grad.zero_();
  chain.forward(1, work.input);
  for (std::size_t i = 0; i < chain.size(); ++i) chain[i].take_issued();
  chain.backward_split(1);
  for (std::size_t i = 0; i < chain.size(); ++i) out.again.push_back(chain[i].take_issued());
  x = Tensor();
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) x = chain[i].forward(2, x, work.input);
  if (stages.back().layers.end == 4)
    out.predicted = chain[chain.size() - 1].predict({x}, work.input).ids;
  // The split backward gives bitwise identical gradients.
  const auto parameters = chain.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    CHECK(torch::equal(parameters[i]->grad, out.gradients[i]));
  return out;
}

std::vector<SequenceOutcome> run_sequence_group(const std::vector<Stage>& stages, int tp,
                                                const TestWork& work) {
  std::vector<SequenceOutcome> outcomes(static_cast<std::size_t>(tp));
  on_tensor_ranks(tp, [&](std::size_t rank, Communicator* group) {
    outcomes[rank] = run_sequence_rank(stages, group, work);
  });
  return outcomes;
}

// Gradients of the parameters whose gradients are partial sums, summed over the ranks that hold the
// element: what comes after the backward, here by hand.
Tensor summed(const std::vector<SequenceOutcome>& ranks, std::size_t i, const Parameter& spec) {
  Tensor whole = torch::zeros(spec.shape, torch::kFloat64);
  for (std::size_t t = 0; t < ranks.size(); ++t) {
    const ShardIndex shard{.tensor = static_cast<int>(ranks.size()),
                           .tensor_index = static_cast<int>(t)};
    add_gradient(whole, spec, shard, true, ranks[t].gradients[i]);
  }
  return whole;
}

double distance(const Tensor& a, const Tensor& b) {
  return (a - b).norm().item<double>() / std::max(1e-300, b.norm().item<double>());
}

// The parts of one boundary by rank: as RowShares says, and together the whole.
void check_parts(const std::vector<SequenceOutcome>& ranks,
                 std::vector<Tensor> SequenceOutcome::* which, std::size_t stage,
                 const Tensor& whole) {
  std::vector<Tensor> parts;
  const RowShares shares{whole.size(0), static_cast<int>(ranks.size())};
  for (std::size_t t = 0; t < ranks.size(); ++t) {
    parts.push_back((ranks[t].*which)[stage]);
    CHECK(parts.back().size(0) == shares.count(static_cast<int>(t)));
  }
  const Tensor together = torch::cat(parts);
  CHECK((together - whole).norm().item<double>() <= 1e-12 * whole.norm().item<double>());
}

}  // namespace

TEST_SUITE("sequence parallel") {
  TEST_CASE("2 and 4 ranks compute the same as one and as a plain model") {
    for (const TestWork& work : {uneven_work(torch::kFloat64), text_only_work(torch::kFloat64),
                                 make_work({{{4}, 1, 1}}, torch::kFloat64, 6),
                                 make_work({{{16}, 0, 0}, {{}, 3, 2}}, torch::kFloat64, 7)}) {
      const PlainResult plain = plain_model(whole_model(torch::kFloat64), work);
      for (const auto& stages : {whole_model(torch::kFloat64), cut_model(torch::kFloat64),
                                 in_pieces(whole_model(torch::kFloat64), 2)}) {
        const SequenceOutcome whole = run_sequence_rank(stages, nullptr, work);
        CHECK(std::abs(whole.loss.item<double>() - plain.loss) <= 1e-9 * plain.loss);
        Chain names(stages, nullptr);
        for (const int tp : {2, 4}) {
          const auto ranks = run_sequence_group(sequence_parallel(stages), tp, work);
          for (const SequenceOutcome& rank : ranks) {
            CHECK(std::abs(rank.loss.item<double>() - plain.loss) <= 1e-9 * plain.loss);
            CHECK(torch::equal(rank.predicted, plain.predicted));
          }
          for (std::size_t i = 0; i < names.parameters().size(); ++i) {
            const Parameter& spec = names.parameters()[i]->spec;
            CAPTURE(spec.name);
            const Tensor& expected = plain.gradients.at(spec.name);
            const Tensor got = summed(ranks, i, spec);
            if (expected.norm().item<double>() == 0)
              CHECK(got.norm().item<double>() == 0);
            else
              CHECK(distance(got, expected) <= 1e-9);
            CHECK((got - whole.gradients[i]).norm().item<double>() <=
                  1e-12 * whole.gradients[i].norm().item<double>());
          }
          for (std::size_t s = 0; s < stages.size(); ++s) {
            CAPTURE(s);
            if (s + 1 < stages.size())
              check_parts(ranks, &SequenceOutcome::outputs, s, whole.outputs[s]);
            if (whole.input_gradients[s].defined())
              check_parts(ranks, &SequenceOutcome::input_gradients, s, whole.input_gradients[s]);
          }
        }
      }
    }
  }

  TEST_CASE("the issued collectives are those of expand(), in order, split or not") {
    for (const torch::Dtype dtype : {torch::kFloat64, torch::kFloat32}) {
      for (const auto& [tp, pieces] : {std::pair(2, 1), {4, 1}, {2, 3}, {4, 2}}) {
        const auto stages = in_pieces(sequence_parallel(cut_model(dtype)), pieces);
        CAPTURE(pieces);
        for (const TestWork& work : {uneven_work(dtype), text_only_work(dtype),
                                     no_label_work(dtype), make_work({}, dtype, 1)}) {
          for (const SequenceOutcome& rank : run_sequence_group(stages, tp, work)) {
            for (std::size_t i = 0; i < stages.size(); ++i) {
              CAPTURE(stages[i].module.name);
              CAPTURE(stages[i].layers.begin);
              const auto expected = [&](Phase phase) {
                return expand(stages[i].module, stages[i].layers, phase,
                              size_for(work, stages[i].module), context_of(stages[i], tp))
                    .collectives;
              };
              CHECK((rank.forward[i] == expected(Phase::forward)));
              CHECK((rank.backward[i] == expected(Phase::backward)));
              CHECK((rank.again[i] == expected(Phase::backward_input)));
              CHECK(expected(Phase::backward_weight).empty());
            }
          }
        }
      }
    }
  }

  TEST_CASE("the issued matrix multiplications are those of expand()") {
    const TestWork work = make_work({{{16}, 5, 2}, {{4, 16}, 8, 2}}, torch::kFloat32, 3);
    // T = 9 + 13 rows and 36 patches on 2 ranks: shares without padding, so that all have the most.
    for (const int pieces : {1, 3}) {
      const auto stages = in_pieces(sequence_parallel(cut_model(torch::kFloat32)), pieces);
      for (const SequenceOutcome& rank : run_sequence_group(stages, 2, work)) {
        for (std::size_t i = 0; i < stages.size(); ++i) {
          CAPTURE(i);
          const auto expected = [&](Phase phase) {
            return expected_products(expand(stages[i].module, stages[i].layers, phase,
                                            size_for(work, stages[i].module),
                                            context_of(stages[i], 2)));
          };
          CHECK((rank.products[i] == expected(Phase::forward)));
          CHECK((rank.products[stages.size() + i] == expected(Phase::backward)));
        }
      }
    }
  }

  TEST_CASE("a frozen module gathers nothing for weights and sums no unneeded input gradients") {
    const TestWork work = uneven_work(torch::kFloat64);
    auto stages = sequence_parallel(whole_model(torch::kFloat64));
    stages[0].options.trainable = false;   // nothing is saved
    stages[1].options.input_grad = false;  // so no gradient before the projector
    stages[2].options.trainable = false;   // frozen, passes the gradient on
    run_in_process(2, [&](Transport& transport) {
      const auto group = transport.make_group("tensor", {Rank(0), Rank(1)});
      Chain chain(stages, group.get());
      chain.forward(0, work.input);
      for (std::size_t i = 0; i < chain.size(); ++i) chain[i].take_issued();
      chain[1].backward(0, chain[2].backward(0, Tensor()).front());
      for (const std::size_t i : {1u, 2u}) {
        const auto expected = expand(stages[i].module, stages[i].layers, Phase::backward,
                                     size_for(work, stages[i].module), context_of(stages[i], 2));
        CHECK((chain[i].take_issued() == expected.collectives));
      }
    });
  }

  TEST_CASE("rows are split as evenly as equal parts allow") {
    // 10 rows on 4 ranks: parts of 3, the last has 1. 2 rows: two ranks have none. None: none.
    const auto counts = [](std::int64_t rows) {
      const RowShares shares{rows, 4};
      return std::vector<std::int64_t>{shares.count(0), shares.count(1), shares.count(2),
                                       shares.count(3), shares.padded()};
    };
    CHECK((counts(10) == std::vector<std::int64_t>{3, 3, 3, 1, 12}));
    CHECK((counts(2) == std::vector<std::int64_t>{1, 1, 0, 0, 4}));
    CHECK((counts(9) == std::vector<std::int64_t>{3, 3, 3, 0, 12}));
    CHECK((counts(0) == std::vector<std::int64_t>{0, 0, 0, 0, 0}));
  }
}

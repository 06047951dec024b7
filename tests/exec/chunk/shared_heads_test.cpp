// More tensor-parallel ranks than key/value heads, and a vocabulary not divisible by the ranks.
#include <string>

#include "exec/chunk/chunk.h"
#include "exec/transport/in_process.h"
#include "shared/work/row_shares.h"
#include "tests/exec/reference/plain_model.h"
#include "tests/exec/support/context_shares.h"
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

// 8 query heads share 2 (or 1) key/value heads; 26 = 6 + 7 + 6 + 7 words.
std::vector<Stage> stages_with(int kv_heads, bool sequence_parallel) {
  auto stages = whole_model(torch::kFloat64);
  for (Stage& stage : stages) stage.options.sequence_parallel = sequence_parallel;
  stages[2].module.kv_heads = kv_heads;
  stages[2].module.vocab = 26;
  return stages;
}

struct SharedOutcome {
  double loss = 0;
  Tensor predicted;
  std::vector<Tensor> gradients;
  std::vector<std::vector<InnerCollective>> forward, backward;
  std::vector<std::vector<Product>> products;  // forward, then backward, by stage
};
SharedOutcome run_shared_rank(const std::vector<Stage>& stages, Communicator* group,
                              const TestWork& work) {
  SharedOutcome out;
  Chain chain(stages, group);
  Tensor x, gradient;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    out.products.push_back(products_of([&] { x = chain[i].forward(0, x, work.input); }));
    out.forward.push_back(chain[i].take_issued());
  }
  out.loss = x.item<double>();
  out.products.resize(2 * chain.size());
  out.backward.resize(chain.size());
  for (std::size_t i = chain.size(); i-- > 0;) {
    out.products[chain.size() + i] =
        products_of([&] { gradient = chain[i].backward(0, gradient).front(); });
    out.backward[i] = chain[i].take_issued();
  }
  for (const LocalParameter* parameter : chain.parameters())
    out.gradients.push_back(parameter->grad);
  x = chain[1].forward(1, chain[0].forward(1, Tensor(), work.input), work.input);
  out.predicted = chain[2].predict({x}, work.input).ids;
  return out;
}

std::vector<SharedOutcome> run_shared_group(const std::vector<Stage>& stages, int tp,
                                            const TestWork& work) {
  std::vector<SharedOutcome> outcomes(static_cast<std::size_t>(tp));
  on_tensor_ranks(tp, [&](std::size_t rank, Communicator* group) {
    outcomes[rank] = run_shared_rank(stages, group, work);
  });
  return outcomes;
}

}  // namespace

TEST_SUITE("shared heads") {
  TEST_CASE("copies of a key/value head, uneven vocabulary: same as one rank and a plain model") {
    const TestWork work = uneven_work(torch::kFloat64, 2);
    for (const int kv_heads : {2, 1}) {
      const PlainResult plain = plain_model(stages_with(kv_heads, false), work);
      Chain names(stages_with(kv_heads, false), nullptr);
      for (const bool sequence_parallel : {false, true}) {
        const auto stages = stages_with(kv_heads, sequence_parallel);
        const auto ranks = run_shared_group(stages, 4, work);
        for (std::size_t t = 0; t < ranks.size(); ++t) {
          CHECK(std::abs(ranks[t].loss - plain.loss) <= 1e-9 * plain.loss);
          CHECK(torch::equal(ranks[t].predicted, plain.predicted));
        }
        for (std::size_t i = 0; i < names.parameters().size(); ++i) {
          const Parameter& spec = names.parameters()[i]->spec;
          CAPTURE(spec.name);
          Tensor whole = torch::zeros(spec.shape, torch::kFloat64);
          for (int t = 0; t < 4; ++t)
            add_gradient(whole, spec, {.tensor = 4, .tensor_index = t}, sequence_parallel,
                         ranks[static_cast<std::size_t>(t)].gradients[i]);
          const Tensor& expected = plain.gradients.at(spec.name);
          CHECK((whole - expected).norm().item<double>() <= 1e-9 * expected.norm().item<double>());
        }
      }
    }
  }

  TEST_CASE("collectives and GEMMs are those of expand(), for the rank with the most words") {
    const TestWork work = make_work({{{16}, 5, 2}, {{4, 16}, 6, 2}}, torch::kFloat64, 3);
    for (const bool sequence_parallel : {false, true}) {
      const auto stages = stages_with(2, sequence_parallel);
      const auto ranks = run_shared_group(stages, 4, work);
      for (std::size_t i = 0; i < stages.size(); ++i) {
        CAPTURE(i);
        const auto expected = [&](Phase phase) {
          return expand(stages[i].module, stages[i].layers, phase, size_for(work, stages[i].module),
                        context_of(stages[i], 4));
        };
        for (const SharedOutcome& rank : ranks) {
          CHECK((rank.forward[i] == expected(Phase::forward).collectives));
          CHECK((rank.backward[i] == expected(Phase::backward).collectives));
        }
        // T = 9 + 11 rows and 36 patches on 4 ranks: even shares. Rank 1 has 7 of the 26 words.
        CHECK((ranks[1].products[i] == expected_products(expected(Phase::forward))));
        CHECK(
            (ranks[1].products[stages.size() + i] == expected_products(expected(Phase::backward))));
      }
    }
  }

  TEST_CASE("copies of a key/value head under context parallelism") {
    const TestWork work = uneven_work(torch::kFloat64, 3);
    const auto model = stages_with(2, true);
    const Stage& language = model[2];
    const std::vector<Stage> alone = {language};
    const PlainResult plain = plain_model(stages_with(2, false), work);
    Chain front({stages_with(2, false)[0], stages_with(2, false)[1]}, nullptr);
    const Tensor image = front.forward(0, work.input);
    const Named dealt = deals()[5];
    const std::vector<Share> shares =
        deal(work, 2, [&](auto s, auto p, auto n) { return dealt.deal(s, p, n) % 2; });
    std::vector<std::vector<Tensor>> gradients(8);
    std::vector<double> losses(8);
    run_in_process(8, [&](Transport& transport) {
      torch::set_num_threads(1);
      const auto rank = transport.rank().value;
      const std::size_t t = rank % 4, c = rank / 4;
      const auto tensor =
          transport.make_group("tensor " + std::to_string(c),
                               {Rank(4 * c), Rank(4 * c + 1), Rank(4 * c + 2), Rank(4 * c + 3)});
      const auto context =
          transport.make_group("context " + std::to_string(t), {Rank(t), Rank(t + 4)});
      Chain chain(alone, Communicators{.tensor = tensor.get(), .context = context.get()});
      const RowShares own{shares[c].image_rows.numel(), 4};
      const int index = static_cast<int>(t);
      const Tensor rows =
          image.index_select(0, shares[c].image_rows).narrow(0, own.begin(index), own.count(index));
      losses[rank] = chain[0].forward(0, rows, shares[c].work.input).item<double>();
      chain[0].backward(0, Tensor());
      for (const LocalParameter& parameter : chain[0].parameters())
        gradients[rank].push_back(parameter.grad);
    });
    CHECK(std::abs(losses[0] + losses[4] - plain.loss) <= 1e-9 * plain.loss);
    const std::vector<Parameter> specs = parameters(language.module);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      CAPTURE(specs[i].name);
      Tensor whole = torch::zeros(specs[i].shape, torch::kFloat64);
      for (std::size_t rank = 0; rank < 8; ++rank)
        add_gradient(whole, specs[i], {.tensor = 4, .tensor_index = static_cast<int>(rank % 4)},
                     true, gradients[rank][i]);
      const Tensor& expected = plain.gradients.at(specs[i].name);
      CHECK((whole - expected).norm().item<double>() <= 1e-9 * expected.norm().item<double>());
    }
  }
}

#include <algorithm>
#include <string>

#include "exec/chunk/chunk.h"
#include "exec/transport/in_process.h"
#include "shared/work/row_shares.h"
#include "tests/exec/reference/plain_model.h"
#include "tests/exec/support/context_shares.h"
#include "tests/exec/support/expected.h"
#include "tests/exec/support/shards.h"
#include "tests/exec/support/tiny_model.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

struct Outcome {
  double loss = 0;
  Tensor predicted, input_gradient;
  std::vector<Tensor> gradients, again;
  std::vector<std::vector<InnerCollective>> forward, backward, split;
};

// The language model on one rank; `image` [rows over the edge on this context rank, H].
Outcome run_rank(const std::vector<Stage>& stages, const Communicators& groups,
                 const WorkInput& data, const Tensor& image) {
  Outcome out;
  Chain chain(stages, groups);
  const auto forward = [&](std::uint64_t work, std::size_t end) {
    Tensor x = image;
    for (std::size_t i = 0; i < end; ++i) x = chain[i].forward(work, x, data);
    return x;
  };
  out.loss = forward(0, chain.size()).item<double>();
  for (std::size_t i = 0; i < chain.size(); ++i) out.forward.push_back(chain[i].take_issued());
  Tensor gradient;
  out.backward.resize(chain.size());
  for (std::size_t i = chain.size(); i-- > 0;) {
    gradient = chain[i].backward(0, gradient).front();
    out.backward[i] = chain[i].take_issued();
  }
  out.input_gradient = gradient;
  for (const LocalParameter* parameter : chain.parameters()) {
    out.gradients.push_back(parameter->grad.clone());
    parameter->grad.zero_();
  }
  forward(1, chain.size());
  for (std::size_t i = 0; i < chain.size(); ++i) chain[i].take_issued();
  chain.backward_split(1);
  for (std::size_t i = 0; i < chain.size(); ++i) out.split.push_back(chain[i].take_issued());
  for (const LocalParameter* parameter : chain.parameters()) out.again.push_back(parameter->grad);
  out.predicted = chain[chain.size() - 1].predict({forward(2, chain.size() - 1)}, data).ids;
  return out;
}

// rank = tensor index + tp · context index.
std::vector<Outcome> run_grid(const std::vector<Stage>& stages, int tp,
                              const std::vector<Share>& shares, const Tensor& image) {
  const int cp = static_cast<int>(shares.size());
  std::vector<Outcome> outcomes(static_cast<std::size_t>(tp * cp));
  run_in_process(tp * cp, [&](Transport& transport) {
    torch::set_num_threads(1);
    const int rank = static_cast<int>(transport.rank().value), t = rank % tp, c = rank / tp;
    const auto members = [&](int count, int first, int step) {
      std::vector<Rank> list;
      for (int i = 0; i < count; ++i) list.emplace_back(static_cast<std::size_t>(first + i * step));
      return list;
    };
    const auto tensor = transport.make_group("tensor " + std::to_string(c), members(tp, c * tp, 1));
    const auto context = transport.make_group("context " + std::to_string(t), members(cp, t, tp));
    const Share& share = shares[static_cast<std::size_t>(c)];
    Tensor rows = image.index_select(0, share.image_rows);
    if (stages.front().options.sequence_parallel && tp > 1) {
      const RowShares own{rows.size(0), tp};
      rows = rows.narrow(0, own.begin(t), own.count(t));
    }
    outcomes[transport.rank().value] =
        run_rank(stages, {.tensor = tp > 1 ? tensor.get() : nullptr, .context = context.get()},
                 share.work.input, rows);
  });
  return outcomes;
}

std::vector<Stage> language(std::vector<Stage> stages, const AttentionWay& way,
                            bool sequence_parallel = false) {
  std::erase_if(stages,
                [](const Stage& stage) { return stage.module.kind != ModuleKind::language; });
  for (Stage& stage : stages) {
    stage.options.sequence_parallel = sequence_parallel;
    stage.options.attention = way;
  }
  return stages;
}

// Summed over the ranks that hold an element, where gradients are parts of a sum: over all
// contexts, and over tensor ranks as Parameter says.
Tensor summed(const std::vector<Outcome>& ranks, int tp, bool sequence_parallel, std::size_t i,
              const Parameter& spec) {
  Tensor whole = torch::zeros(spec.shape, torch::kFloat64);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const ShardIndex shard{.tensor = tp, .tensor_index = static_cast<int>(rank) % tp};
    add_gradient(whole, spec, shard, sequence_parallel, ranks[rank].gradients[i]);
  }
  return whole;
}

bool close(const Tensor& a, const Tensor& b, double bar) {
  return (a - b).norm().item<double>() <= bar * b.norm().item<double>();
}

// Inputs of the language model from tiny images, and the results of one rank and of a plain model.
struct Wanted {
  Tensor image, predicted, input_gradient;
  std::vector<Tensor> gradients;
  double loss = 0;
  PlainResult plain;
};
Wanted want(const TestWork& work) {
  Wanted wanted;
  const auto stages = whole_model(torch::kFloat64);
  Chain chain(stages, nullptr);
  wanted.image = chain[1].forward(0, chain[0].forward(0, Tensor(), work.input), work.input);
  wanted.loss = chain[2].forward(0, wanted.image, work.input).item<double>();
  wanted.input_gradient = chain[2].backward(0, Tensor()).front();
  for (const LocalParameter& parameter : chain[2].parameters())
    wanted.gradients.push_back(parameter.grad);
  wanted.predicted = chain[2].predict({wanted.image}, work.input).ids;
  wanted.plain = plain_model(stages, work);
  return wanted;
}

void check_grid(const std::vector<Outcome>& ranks, int tp, bool sequence_parallel,
                const std::vector<Share>& shares, const Wanted& wanted) {
  double loss = 0;
  Tensor input_gradient = torch::zeros_like(wanted.input_gradient);
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const Outcome* const first = &ranks[c * static_cast<std::size_t>(tp)];
    loss += first->loss;
    std::vector<Tensor> parts;
    for (int t = 0; t < (sequence_parallel ? tp : 1); ++t) parts.push_back(first[t].input_gradient);
    input_gradient.index_copy_(0, shares[c].image_rows, torch::cat(parts));
  }
  CHECK(std::abs(loss - wanted.plain.loss) <= 1e-9 * wanted.plain.loss);
  CHECK(std::abs(loss - wanted.loss) <= 1e-12 * wanted.loss);
  CHECK(close(input_gradient, wanted.input_gradient, 1e-12));
  const std::vector<Parameter> specs = parameters(tiny_language());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CAPTURE(specs[i].name);
    const Tensor got = summed(ranks, tp, sequence_parallel, i, specs[i]);
    CHECK(close(got, wanted.gradients[i], 1e-12));
    CHECK(close(got, wanted.plain.gradients.at(specs[i].name), 1e-9));
    for (const Outcome& rank : ranks) CHECK(torch::equal(rank.gradients[i], rank.again[i]));
  }
}

void check_predicted(const std::vector<Outcome>& ranks, int tp, const TestWork& work,
                     const std::vector<Share>& shares, const Wanted& wanted) {
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const Tensor mine = find_rows(work.input.loss_rows, shares[c].rows).second;
    for (int t = 0; t < tp; ++t)
      CHECK(torch::equal(
          ranks[c * static_cast<std::size_t>(tp) + static_cast<std::size_t>(t)].predicted,
          wanted.predicted.index_select(0, mine)));
  }
}

}  // namespace

TEST_SUITE("context parallel") {
  TEST_CASE("any assignment of tokens computes the same as one rank and a plain model") {
    const TestWork work = uneven_work(torch::kFloat64);
    const Wanted wanted = want(work);
    for (const Named& named : deals()) {
      CAPTURE(named.name);
      const std::vector<Share> shares = deal(work, named.ranks, named.deal);
      for (const AttentionWay& way : ways(4, named.ranks)) {
        CAPTURE(name(way));
        for (const auto& stages : {language(whole_model(torch::kFloat64), way),
                                   language(cut_model(torch::kFloat64), way)}) {
          const auto ranks = run_grid(stages, 1, shares, wanted.image);
          check_grid(ranks, 1, false, shares, wanted);
          check_predicted(ranks, 1, work, shares, wanted);
        }
      }
    }
  }

  TEST_CASE("together with tensor and sequence parallelism") {
    const TestWork work = uneven_work(torch::kFloat64, 4);
    const Wanted wanted = want(work);
    for (const bool sequence_parallel : {false, true}) {
      for (const Named& named : deals()) {
        CAPTURE(named.name);
        const std::vector<Share> shares = deal(work, named.ranks, named.deal);
        for (const AttentionWay& way : ways(2, named.ranks)) {
          CAPTURE(name(way));
          const auto stages = language(whole_model(torch::kFloat64), way, sequence_parallel);
          const auto ranks = run_grid(stages, 2, shares, wanted.image);
          check_grid(ranks, 2, sequence_parallel, shares, wanted);
          check_predicted(ranks, 2, work, shares, wanted);
        }
      }
    }
  }

  TEST_CASE("the issued collectives are those of expand(), in order, split or not") {
    for (const TestWork& work : {uneven_work(torch::kFloat32), no_label_work(torch::kFloat32)}) {
      const Tensor image = torch::randn({work.projector.tokens, 16});
      for (const Named& named : deals()) {
        const std::vector<Share> shares = deal(work, named.ranks, named.deal);
        for (const auto& [tp, recompute] : {std::pair{1, Recompute::none},
                                            {1, Recompute::selective},
                                            {2, Recompute::none},
                                            {2, Recompute::full}}) {
          for (const AttentionWay& way : ways(4 / tp, named.ranks)) {
            auto stages = language(cut_model(torch::kFloat32), way, tp > 1);
            for (Stage& stage : stages) stage.options.recompute = recompute;
            const auto ranks = run_grid(stages, tp, shares, image);
            for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
              const WorkSize& size = shares[rank / static_cast<std::size_t>(tp)].work.language;
              for (std::size_t i = 0; i < stages.size(); ++i) {
                ChunkContext context = context_of(stages[i], tp);
                context.cp = named.ranks;
                set_way(context, way);
                const auto expected = [&](Phase phase) {
                  return expand(stages[i].module, stages[i].layers, phase, size, context)
                      .collectives;
                };
                CHECK((ranks[rank].forward[i] == expected(Phase::forward)));
                CHECK((ranks[rank].backward[i] == expected(Phase::backward)));
                CHECK((ranks[rank].split[i] == expected(Phase::backward_input)));
              }
            }
          }
        }
      }
    }
  }

  TEST_CASE("recomputed blocks are bitwise identical") {
    const TestWork work = uneven_work(torch::kFloat64);
    const Tensor image = torch::randn({work.projector.tokens, 16}, torch::kFloat64);
    for (const Named& named : deals()) {
      CAPTURE(named.name);
      const std::vector<Share> shares = deal(work, named.ranks, named.deal);
      for (const AttentionWay& way : ways(4, named.ranks)) {
        CAPTURE(name(way));
        const auto kept = run_grid(language(whole_model(torch::kFloat64), way), 1, shares, image);
        for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
          auto stages = language(whole_model(torch::kFloat64), way);
          stages.front().options.recompute = recompute;
          const auto ranks = run_grid(stages, 1, shares, image);
          for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            CHECK(torch::equal(ranks[rank].input_gradient, kept[rank].input_gradient));
            for (std::size_t i = 0; i < kept[rank].gradients.size(); ++i) {
              CHECK(torch::equal(ranks[rank].gradients[i], kept[rank].gradients[i]));
              CHECK(torch::equal(ranks[rank].again[i], kept[rank].gradients[i]));
            }
          }
        }
      }
    }
  }

  TEST_CASE("keys and values are sent once in each direction") {
    // 32 of 100 tokens here: gathered k and v of 100 tokens, 4 heads of 6 on 2 tensor ranks, 8
    // bytes.
    const WorkSize size{.tokens = 32,
                        .pairs = 60,
                        .text_tokens = 32,
                        .loss_tokens = 1,
                        .sequences = 1,
                        .gathered = 100};
    const ChunkContext context{.tp = 2, .cp = 3, .precision = NumberFormat::fp64};
    const Bytes moved(100 * 2 * (4 / 2 * 6) * 8), sum(32 * 16 * 8);
    const InnerCollective summed{CollectiveKind::all_reduce, sum};
    CHECK((expand(tiny_language(), {1, 2}, Phase::forward, size, context).collectives ==
           std::vector<InnerCollective>{
               {CollectiveKind::all_gather, moved, GroupKind::context}, summed, summed}));
    CHECK((expand(tiny_language(), {1, 2}, Phase::backward, size, context).collectives ==
           std::vector<InnerCollective>{
               summed, {CollectiveKind::reduce_scatter, moved, GroupKind::context}, summed}));
  }

  TEST_CASE("a head's keys and values are sent during attention over the previous head") {
    // As above, for one of the 2 heads. Backward: keys of the first; those of the second during the
    // first's attention; gradients of the first during the second's; those of the second.
    const WorkSize size{.tokens = 32, .sequences = 1, .gathered = 100};
    const ChunkContext context{.tp = 2, .cp = 3, .cp_heads = 1, .precision = NumberFormat::fp64};
    const Bytes moved(100 * 2 * 6 * 8), sum(32 * 16 * 8);
    const InnerCollective summed{CollectiveKind::all_reduce, sum},
        keys{CollectiveKind::all_gather, moved, GroupKind::context},
        gradients{CollectiveKind::reduce_scatter, moved, GroupKind::context};
    const auto collectives = [&](Phase phase) {
      return expand(tiny_language(), {1, 2}, phase, size, context).collectives;
    };
    const auto beside = [&](Phase phase) {
      std::string text;
      for (const InnerCollective& one : collectives(phase))
        text += one.beside_attention ? "b" : ".";
      return text;
    };
    CHECK(
        (collectives(Phase::forward) == std::vector<InnerCollective>{keys, keys, summed, summed}));
    CHECK(beside(Phase::forward) == ".b..");
    CHECK((collectives(Phase::backward) ==
           std::vector<InnerCollective>{summed, keys, keys, gradients, gradients, summed}));
    CHECK(beside(Phase::backward) == "..bb..");
  }

  TEST_CASE("heads are exchanged and returned in each pass") {
    // As above on 2 context ranks: of 100 tokens q, k and v there, the output back, of half
    // of the 4 query and 2 key/value heads of 6.
    const WorkSize size{.tokens = 32, .sequences = 1, .gathered = 100};
    const ChunkContext context{.tp = 2,
                               .cp = 2,
                               .cp_attention = ContextAttention::ulysses,
                               .precision = NumberFormat::fp64};
    const InnerCollective there{CollectiveKind::all_to_all, Bytes(100 * (2 + 1 + 1) * 6 * 8),
                                GroupKind::context},
        back{CollectiveKind::all_to_all, Bytes(100 * 2 * 6 * 8), GroupKind::context},
        summed{CollectiveKind::all_reduce, Bytes(32 * 16 * 8)};
    CHECK((expand(tiny_language(), {1, 2}, Phase::forward, size, context).collectives ==
           std::vector<InnerCollective>{there, back, summed, summed}));
    CHECK((expand(tiny_language(), {1, 2}, Phase::backward, size, context).collectives ==
           std::vector<InnerCollective>{summed, back, there, summed}));
  }
}

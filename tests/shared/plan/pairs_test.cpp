// The sizes of works: query-key pairs by mask, tokens and labels, by hand.
#include <doctest/doctest.h>

#include "shared/step/assign.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/small_diffusion.h"

namespace polyphony {
namespace {

Sample text(std::int32_t tokens, std::int32_t labels) {
  return {0, {{Modality::text, tokens, labels}}};
}

WorkSize size_of(const Model& model, std::size_t module, const std::vector<Sample>& samples) {
  const Batch batch{samples};
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < samples.size(); ++i) all.push_back(i);
  return work_size(model, ModuleId(module), batch, all.data(), all.size());
}

TokenMask packed(const std::vector<std::int64_t>& lengths) {
  TokenMask mask;
  for (const std::int64_t tokens : lengths)
    mask.add(tokens, mask.groups, true, {mask.groups, mask.groups + 1});
  return mask;
}

// The work of each context-parallel rank, for the language module alone.
std::vector<WorkSize> assigned(TokenAssignment policy, const std::vector<Sample>& samples,
                               int ranks) {
  Model model{{examples::llama_70b()}, {}};
  Plan plan;
  ModuleLayout grid;
  grid.cp = ranks;
  grid.ranks = ranks;
  grid.tokens = policy;
  const Chunk all{ModuleId(0), {0, 82}};
  plan.branches = {{grid, {Stage{{all}}}, 1}};
  const Batch batch{samples};
  const WorkTable table = assign_work(model, plan, batch);
  std::vector<WorkSize> sizes;
  for (const Work& work : table.works)
    sizes.push_back(work_size(model, ModuleId(0), batch, table, work));
  return sizes;
}

}  // namespace

TEST_CASE("causal pairs of packed samples: n (n + 1) / 2 of each, none between") {
  const Model model{{examples::llama_70b()}, {}};
  // 3·4/2 + 5·6/2 = 21, not 8·9/2 = 36.
  const WorkSize size = size_of(model, 0, {text(3, 2), text(5, 1)});
  CHECK(size == WorkSize{.tokens = 8,
                         .pairs = 21,
                         .text_tokens = 8,
                         .loss_tokens = 3,
                         .sequences = 2,
                         .samples = 2,
                         .gathered = 8,
                         .gathered_pairs = 21});
}

TEST_CASE("images: all pairs inside each; their merged rows in a causal sequence") {
  const Model model =
      examples::chain(examples::vision_12b(), examples::projector_12b_70b(), examples::llama_70b());
  // Two images of 16 and 4 patches, merged 2 × 2 to 4 and 1 rows, and 6 tokens of text.
  const Sample sample{0,
                      {{Modality::image, 16, 0}, {Modality::image, 4, 0}, {Modality::text, 6, 2}}};
  // 16² + 4²; 11·12/2 causal rows, the images' included.
  CHECK(size_of(model, 0, {sample}).pairs == 272);
  CHECK(size_of(model, 0, {sample}).tokens == 20);
  CHECK(size_of(model, 0, {sample}).sequences == 2);
  CHECK(size_of(model, 1, {sample}).tokens == 5);
  const WorkSize language = size_of(model, 2, {sample});
  CHECK(language.tokens == 11);
  CHECK(language.pairs == 66);
  CHECK(language.text_tokens == 6);
  CHECK(language.loss_tokens == 2);
}

TEST_CASE("windows in works") {
  Module vision = examples::vision_12b();
  vision.window = 3;
  const Model model = examples::chain(vision, examples::projector_12b_70b(), examples::llama_70b());
  // 4 × 4 patches in windows of 9, 3, 3 and 1: 81 + 9 + 9 + 1; two images.
  const Sample sample{0,
                      {{Modality::image, 16, 0}, {Modality::image, 16, 0}, {Modality::text, 6, 2}}};
  CHECK(size_of(model, 0, {sample}).window_pairs == 200);
  CHECK(size_of(model, 0, {sample}).pairs == 512);
}

TEST_CASE("a latent attends to itself, and across to its sample's rows") {
  Model model{{examples::llama_70b(), examples::small_diffusion()}, {{ModuleId(0), ModuleId(1)}}};
  const Sample with{0, {{Modality::text, 5, 5}, {Modality::latent, 16, 0}}};
  const WorkSize size = size_of(model, 1, {with, text(9, 9), with});
  CHECK(size.tokens == 32);
  CHECK(size.pairs == 2 * 256);
  CHECK(size.condition == 10);
  CHECK(size.cross_pairs == 2 * 16 * 5);
  CHECK(size.sequences == 2);
  CHECK(size_of(model, 0, {with}).tokens == 5);  // it takes no place in the sequence
}

TEST_CASE("context-parallel ranks: a query attends to all keys before it, on any rank") {
  // 8 tokens, 36 pairs. Two halves: 4·5/2 = 10 and 26.
  const auto halves = assigned(TokenAssignment::contiguous, {text(8, 2)}, 2);
  REQUIRE(halves.size() == 2);
  CHECK(halves[0].pairs == 10);
  CHECK(halves[1].pairs == 26);
  CHECK(halves[0].loss_tokens == 0);
  CHECK(halves[1].loss_tokens == 2);
  // Zigzag: quarters 0 and 3 | 1 and 2: 3 + (36 − 21), (10 − 3) + (21 − 10): both 18.
  const auto zigzag = assigned(TokenAssignment::zigzag, {text(8, 2)}, 2);
  CHECK(zigzag[0].pairs == 18);
  CHECK(zigzag[1].pairs == 18);
  for (const WorkSize& size : zigzag) {
    CHECK(size.tokens == 4);
    CHECK(size.gathered == 8);
    CHECK(size.samples == 1);
  }
}

TEST_CASE("balanced assignment: 32 tokens of one sample over two ranks, token by token") {
  // 16 blocks a rank: one token each, of cost 1 to 32. The most expensive goes first to the rank
  // with the least: 32 | 31 30 | 29 28 | 27 26 | 25 …, so that after each four both have as much:
  // the costs that leave 0 or 1 over 4 go to the first rank. 16 tokens and 32·33/2/2 = 264 pairs
  // each.
  const auto parts = divide_tokens(TokenAssignment::balanced, packed({32}), 0, 2, {});
  REQUIRE(parts.size() == 2);
  for (const auto& intervals : parts) {
    std::int64_t tokens = 0, pairs = 0;
    for (const Interval& interval : intervals)
      for (std::int64_t token = interval.begin; token < interval.end; ++token) {
        ++tokens;
        pairs += token + 1;
      }
    CHECK(tokens == 16);
    CHECK(pairs == 264);
  }
  CHECK(parts[0].front() == Interval{0, 1});
  CHECK(parts[0][1] == Interval{3, 5});
  CHECK(parts[0].back() == Interval{31, 32});
  // Two samples of 16, and linear work that dwarfs attention: as many tokens each.
  for (const auto& intervals :
       divide_tokens(TokenAssignment::balanced, packed({16, 16}), 0, 2, TokenCosts{1, 0, 1e6})) {
    std::int64_t tokens = 0;
    for (const Interval& interval : intervals) tokens += interval.size();
    CHECK(tokens == 16);
  }
}

}  // namespace polyphony

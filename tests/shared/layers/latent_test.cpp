// Latent attention: weights, FLOPs and gathers of tensor-parallel ranks, for DeepSeek-V3's
// published dimensions (its config.json): H 7168, 128 heads of 128 + 64, latents of 1536 and 512.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/chunk/expand.h"
#include "shared/chunk/parameters.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

Module deepseek() {
  Module module = examples::llama_70b();
  module.hidden = 7168;
  module.heads = module.kv_heads = 128;
  module.head_dim = 128;
  module.key_value_rank = 512;
  module.query_rank = 1536;
  module.rotary_dim = 64;
  module.ffn = 0;
  module.experts = 256;
  module.experts_per_token = 8;
  module.expert_ffn = module.shared_ffn = 2048;
  return module;
}
constexpr std::int64_t kTokens = 4096, kPairs = kTokens * (kTokens + 1) / 2;
const WorkSize kSize{.tokens = kTokens,
                     .pairs = kPairs,
                     .text_tokens = kTokens,
                     .loss_tokens = kTokens,
                     .sequences = 1,
                     .samples = 1,
                     .gathered = kTokens};

// 7168·1536 + 1536·24576 + 7168·576 + 512·32768 + 16384·7168.
constexpr double kAttentionWeights = 11010048.0 + 37748736 + 4128768 + 16777216 + 117440512;

double flops_of(KernelKind kind, Phase phase, int heads_only) {
  double flops = 0;
  Module module = deepseek();
  module.experts = module.experts_per_token = module.expert_ffn = module.shared_ffn = 0;
  module.ffn = heads_only;
  for (const Kernel& kernel : expand(module, {1, 2}, phase, kSize, {}).kernels)
    if (kernel.kind == kind) flops += kernel.flops.value;
  return flops;
}

}  // namespace

TEST_CASE("latent attention: weights of a block") {
  std::int64_t attention = 0, norms = 0;
  for (const Parameter& p : parameters(deepseek(), {1, 2})) {
    const std::string name = p.name.substr(p.name.rfind("block0.") + 7);
    std::int64_t count = 1;
    for (const std::int64_t side : p.shape) count *= side;
    if (name.starts_with("q_") || name.starts_with("kv_") || name.starts_with("out"))
      (name.find("norm") == std::string::npos ? attention : norms) += count;
  }
  CHECK(static_cast<double>(attention) == kAttentionWeights);
  CHECK(norms == 1536 + 512);
}

TEST_CASE("latent attention: FLOPs of a block, backward twice the forward") {
  // With a feed-forward part of width 2048: 3 · 7168 · 2048 weights.
  const double feed = 3.0 * 7168 * 2048;
  const double products = 2.0 * kTokens * (kAttentionWeights + feed);
  CHECK(flops_of(KernelKind::gemm, Phase::forward, 2048) == doctest::Approx(products));
  CHECK(flops_of(KernelKind::gemm, Phase::backward, 2048) == doctest::Approx(2 * products));
  // Scores of 192 numbers per head, and their GEMM with values of 128.
  const double attention = 2.0 * kPairs * 128 * (192 + 128);
  CHECK(flops_of(KernelKind::attention, Phase::forward, 2048) == doctest::Approx(attention));
  CHECK(flops_of(KernelKind::attention, Phase::backward, 2048) == doctest::Approx(2 * attention));
}

TEST_CASE("latent attention: tensor-parallel ranks gather latents, not queries and keys") {
  const ChunkContext context{.tp = 8, .sp = true, .expert_tp = 1, .precision = NumberFormat::bf16};
  std::vector<std::int64_t> gathered;
  for (const InnerCollective& c :
       expand(deepseek(), {1, 2}, Phase::forward, kSize, context).collectives)
    if (c.kind == CollectiveKind::all_gather && c.group == GroupKind::tensor)
      gathered.push_back(c.bytes.value);
  REQUIRE(gathered.size() >= 2);
  CHECK(gathered[0] == kTokens * 1536 * 2);
  CHECK(gathered[1] == kTokens * 576 * 2);
}

TEST_CASE("latent attention supports neither context parallelism nor head norms") {
  Scenario scenario = examples::vlm_on_h100();
  scenario.model = {{examples::llama_70b()}, {}};
  Module& language = scenario.model.modules[0];
  language.kv_heads = language.heads;
  language.key_value_rank = 512;
  language.rotary_dim = 64;
  ModuleLayout grid;
  grid.cp = 2;
  grid.ranks = scenario.cluster.ranks();
  const Layout layout{.modules = {grid}};
  const auto refused = [&] {
    const auto no = check_layout(scenario, layout);
    return no ? no->reason : "";
  };
  CHECK(refused().find("cp 2 is not supported with latent attention") != std::string::npos);
  language.qk_norm = true;
  CHECK(refused().find("latent attention does not support qk_norm; leave it out") !=
        std::string::npos);
}

TEST_CASE("latent attention: bytes of memory-bound passes") {
  // bf16, without a feed-forward part. Rotation of 64 numbers in each of 128 + 1 heads has 9
  // passes; concatenation of queries and keys of 128 heads of 192 has 4; 2 bytes per element.
  const double rotated = 2.0 * kTokens * (9.0 * 129 * 64 + 4.0 * 128 * 192);
  Module module = deepseek(), flat = deepseek();
  flat.rotary_dim = 128;
  const auto bytes = [](const Module& m, KernelKind kind) {
    double sum = 0;
    for (const Kernel& kernel :
         expand(m, {1, 2}, Phase::forward, kSize, {.precision = NumberFormat::bf16}).kernels)
      if (kernel.kind == kind) sum += static_cast<double>(kernel.bytes.value);
    return sum;
  };
  // Among memory-bound kernels only the rotation depends on the number of rotated elements, which
  // is doubled here.
  const double doubled = 2.0 * kTokens * (9.0 * 129 * 128 + 4.0 * 128 * 256);
  CHECK(bytes(flat, KernelKind::elementwise) - bytes(module, KernelKind::elementwise) ==
        doctest::Approx(doubled - rotated));
  // Attention: queries and keys of 192, values and output of 128, of 128 heads.
  CHECK(bytes(module, KernelKind::attention) ==
        doctest::Approx(2.0 * kTokens * 128 * (2 * 192 + 2 * 128)));
}

}  // namespace polyphony

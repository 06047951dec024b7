// Mixture of experts in shared/: parameter counts, sharding, kernels, collectives, files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "shared/chunk/expand.h"
#include "shared/chunk/parameters.h"
#include "shared/chunk/sizes.h"
#include "shared/model/hf_config.h"
#include "shared/model/presets.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/validate/validate.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

constexpr LayerRange kFirstBlock{1, 2};

Module mixtral() {
  Module module = find_preset("mixtral-8x7b")->module;
  module.name = "language";
  return module;
}
WorkSize text_of(std::int64_t tokens) {
  return {.tokens = tokens,
          .pairs = tokens * (tokens + 1) / 2,
          .text_tokens = tokens,
          .loss_tokens = tokens,
          .sequences = 3,
          .samples = 3,
          .gathered = tokens};
}
const Parameter& named(const std::vector<Parameter>& all, const std::string& name) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const Parameter& p) { return p.name == "language.block0." + name; });
}

std::string tiny_with(const std::string& from, const std::string& to) {
  std::string text = test::file_text("scenarios/tiny.json");
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}
std::string invalid(const std::function<void(Module&)>& change) {
  Scenario scenario = test::scenario_at("scenarios/tiny_text_only.json");
  scenario.file = "s.json";
  Module& module = scenario.model.modules.back();
  module.ffn = 0;
  module.experts = 8;
  module.experts_per_token = 2;
  module.expert_ffn = 16;
  change(module);
  try {
    validate(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("published parameter counts of models with experts") {
  // Mixtral: 32·(2·4096·128·(32 + 8) + 8·3·4096·14336 + 8·4096 + 2·4096) + 2·32000·4096 + 4096.
  CHECK(parameter_count(mixtral()) == 46'702'792'704);
  // Qwen3: 48·(2·2048·128·(32 + 4) + 128·3·2048·768 + 128·2048 + 2·2048 + 2·128) + 2·151936·2048 +
  // 2048.
  CHECK(parameter_count(find_preset("qwen3-30b-a3b")->module) == 30'532'122'624);
}

TEST_CASE("experts split over ranks") {
  Module module = mixtral();
  module.shared_ffn = 64;
  const std::vector<Parameter> all = parameters(module, kFirstBlock);
  const Parameter& gate_up = named(all, "experts.gate_up.weight");
  CHECK(gate_up.shape == std::vector<std::int64_t>{8, 28672, 4096});
  CHECK(gate_up.deviation == 1 / std::sqrt(4096.0));
  const ShardIndex shard{.tensor = 2, .tensor_index = 1, .expert = 4, .expert_index = 3};
  CHECK(gate_up.local_shape(shard) == std::vector<std::int64_t>{2, 14336, 4096});
  // Experts 6 and 7, the second half of the rows of each.
  const std::int64_t one = 28672LL * 4096;
  CHECK(gate_up.runs(shard) == std::vector<ElementRun>{{0, 6 * one + one / 2, one / 2},
                                                       {one / 2, 7 * one + one / 2, one / 2}});
  const Parameter& down = named(all, "experts.down.weight");
  CHECK(down.local_shape(shard) == std::vector<std::int64_t>{2, 4096, 7168});
  CHECK(named(all, "router.weight").local_shape(shard) == std::vector<std::int64_t>{8, 4096});
  CHECK_FALSE(named(all, "router.weight").expert);
  CHECK(named(all, "shared.down.weight").local_shape(shard) == std::vector<std::int64_t>{4096, 32});
}

TEST_CASE("biases of experts split over ranks") {
  Module module = mixtral();
  module.expert_bias = true;
  const std::vector<Parameter> all = parameters(module, kFirstBlock);
  const ShardIndex shard{.tensor = 2, .tensor_index = 1, .expert = 4, .expert_index = 3};
  const Parameter &router = named(all, "router.bias"),
                  &gate_up = named(all, "experts.gate_up.bias"),
                  &down = named(all, "experts.down.bias");
  CHECK(router.local_shape(shard) == std::vector<std::int64_t>{8});
  CHECK(gate_up.local_shape(shard) == std::vector<std::int64_t>{2, 14336});
  CHECK(gate_up.runs(shard) ==
        std::vector<ElementRun>{{0, 6 * 28672 + 14336, 14336}, {14336, 7 * 28672 + 14336, 14336}});
  // Replicated on both tensor-parallel ranks, each with the whole gradient; owned by the first.
  CHECK(down.local_shape(shard) == std::vector<std::int64_t>{2, 4096});
  CHECK(down.runs(shard) == std::vector<ElementRun>{{0, 6 * 4096, 2 * 4096}});
  CHECK(down.owned_runs(shard).empty());
  for (const bool sequence : {false, true}) {
    CHECK_FALSE(down.sums_over_tensor(shard, sequence));
    CHECK_FALSE(gate_up.sums_over_tensor(shard, sequence));
    CHECK(router.sums_over_tensor(shard, sequence) == sequence);  // each sees its own rows
  }
}

TEST_CASE("reads and writes of the gates and biases of experts") {
  Module module = mixtral();
  const WorkSize size = text_of(1024);
  const auto bytes = [&](Phase phase) {
    std::int64_t sum = 0;
    for (const Kernel& kernel : expand(module, kFirstBlock, phase, size, {}).kernels)
      sum += kernel.bytes.value;
    return sum;
  };
  const std::int64_t slots = 2 * 1024, forward = bytes(Phase::forward),
                     input = bytes(Phase::backward_input), weight = bytes(Phase::backward_weight);
  module.activation = Activation::gelu;
  CHECK(bytes(Phase::forward) == forward);
  CHECK(bytes(Phase::backward_input) == input);
  // 13 for 5 passes over the slots' features, and 29 for 13.
  module.activation = Activation::clamped;
  CHECK(bytes(Phase::forward) - forward == 8 * slots * 14336 * 4);
  CHECK(bytes(Phase::backward_input) - input == 16 * slots * 14336 * 4);
  CHECK(bytes(Phase::backward_weight) == weight);
  // Sums over the rows that each matrix is applied to.
  module.expert_bias = true;
  CHECK(bytes(Phase::backward_weight) - weight == slots * (2 * 14336 + 4096) * 4);
}

TEST_CASE("kernels of a block with experts") {
  const Module module = mixtral();
  const WorkSize size = text_of(1024);
  const double attention = 4.0 * 1024 * 1025 / 2 * 32 * 128;
  const double weights = 2.0 * 4096 * 128 * (32 + 8) + 2 * 3.0 * 4096 * 14336 + 8 * 4096;
  const auto flops = [&](Phase phase, const ChunkContext& context) {
    return total_flops(expand(module, kFirstBlock, phase, size, context)).value;
  };
  // A token visits 2 of the 8 experts.
  CHECK(flops(Phase::forward, {}) == doctest::Approx(2 * 1024 * weights + attention));
  CHECK(flops(Phase::backward, {}) == doctest::Approx(4 * 1024 * weights + 2 * attention));
  CHECK(flops(Phase::backward_weight, {}) == doctest::Approx(2 * 1024 * weights));
  // Over ranks with equal numbers of tokens every rank does the same: fewer experts, more rows
  // each.
  CHECK(flops(Phase::forward, {.ep = 4}) == doctest::Approx(flops(Phase::forward, {})));
  const auto expert_gemm = [&](const ChunkContext& context) {
    const Expansion block = expand(module, kFirstBlock, Phase::forward, size, context);
    return *std::find_if(block.kernels.begin(), block.kernels.end(),
                         [](const Kernel& k) { return k.k == 14336 || k.k == 7168; });
  };
  CHECK(expert_gemm({.ep = 4}).launches == 2);
  CHECK(expert_gemm({.ep = 4}).m == 1024);  // 2·1024 slots of 4 ranks each, on 8 experts
  CHECK(expert_gemm({}).launches == 8);
  CHECK(expert_gemm({}).m == 256);
  CHECK(expert_gemm({.tp = 2, .expert_tp = 2}).k == 7168);
}

TEST_CASE("inner collectives of a block with experts") {
  using Kind = CollectiveKind;
  using Group = GroupKind;
  Module module = mixtral();
  module.balance_weight = 0.01;
  const WorkSize size = text_of(100);
  const ChunkContext context{
      .tp = 2, .cp = 2, .ep = 4, .expert_tp = 2, .precision = NumberFormat::bf16};
  const InnerCollective rows{Kind::all_reduce, Bytes(100 * 4096 * 2), Group::tensor};
  const InnerCollective slots{Kind::all_to_all, Bytes(200 * 4096 * 2), Group::expert};
  const InnerCollective counts{Kind::all_gather, Bytes(4 * 8 * 8), Group::expert};
  // Keys and values of both context ranks: 8 heads of 128 over tp 2.
  const Bytes keys(size.gathered * 2 * 4 * 128 * 2);
  const InnerCollective gather{Kind::all_gather, keys, Group::context},
      scatter{Kind::reduce_scatter, keys, Group::context};
  const auto of = [&](Phase phase) {
    return expand(module, kFirstBlock, phase, size, context).collectives;
  };
  // After the attention's collectives.
  CHECK(of(Phase::forward) ==
        std::vector<InnerCollective>{gather, rows, counts, slots, slots, rows});
  // Gradients of routing weights in fp32; 3 samples × 8 experts; before the attention's
  // collectives.
  CHECK(of(Phase::backward) ==
        std::vector<InnerCollective>{{Kind::all_reduce, Bytes(200 * 4), Group::tensor},
                                     slots,
                                     slots,
                                     rows,
                                     {Kind::all_reduce, Bytes(3 * 8 * 8), Group::context},
                                     scatter,
                                     rows});
  CHECK(of(Phase::backward_input) == of(Phase::backward));
  CHECK(of(Phase::backward_weight).empty());
  module.shared_ffn = 64;
  CHECK(of(Phase::forward) ==
        std::vector<InnerCollective>{gather, rows, counts, slots, slots, rows, rows});
  CHECK(of(Phase::backward).size() == 8);
}

TEST_CASE("saved activations of a block with experts") {
  Module module = mixtral(), empty = mixtral();
  empty.experts = 0;
  const auto bytes = [&](const Module& m, const ChunkContext& context) {
    return tape_bytes(m, kFirstBlock, text_of(100), context).value;
  };
  // 200 slots, each with two rows of 4096, three of 14336, a weight and four indices.
  const ChunkContext plain{.precision = NumberFormat::bf16};
  CHECK(bytes(module, plain) - bytes(empty, plain) ==
        200 * (2 * (2 * 4096 + 3 * 14336) + 4 + 4 * 8));
  const ChunkContext full{.recompute = Recompute::full, .precision = NumberFormat::bf16};
  CHECK(bytes(module, full) == 100 * 4096 * 2 + 200 * 8);
}

TEST_CASE(
    "a gated shared expert: FLOPs, parameters and saved activations beyond one without gate") {
  Module plain = mixtral();
  plain.shared_ffn = 512;
  Module gated = plain;
  gated.shared_gate = true;
  const auto flops = [](const Module& m, Phase phase) {
    return total_flops(expand(m, kFirstBlock, phase, text_of(100), {})).value;
  };
  // One product of each of 100 rows of 4096 with the gate's row; backward the same for the input
  // and for the weight.
  const double product = 2.0 * 100 * 4096;
  for (const auto& [phase, products] : {std::pair{Phase::forward, 1},
                                        {Phase::backward, 2},
                                        {Phase::backward_input, 1},
                                        {Phase::backward_weight, 1}})
    CHECK(flops(gated, phase) - flops(plain, phase) == doctest::Approx(products * product));
  CHECK(parameter_count(gated) == parameter_count(plain) + 32 * 4096);
  // The shared expert's output and one number per row, in bf16.
  const ChunkContext bf16{.precision = NumberFormat::bf16};
  CHECK(tape_bytes(gated, kFirstBlock, text_of(100), bf16).value -
            tape_bytes(plain, kFirstBlock, text_of(100), bf16).value ==
        100 * (4096 + 1) * 2);
}

TEST_CASE("experts in a scenario") {
  const std::string keys =
      R"("experts": 8, "experts_per_token": 2, "expert_ffn": 16, "shared_ffn": 24, "balance_weight": 0.01)";
  const std::string ffn = R"("ffn": 64, "vocab")";
  const std::string sparse = keys + R"(, "vocab")";
  const Scenario scenario = read_scenario(tiny_with(ffn, sparse), "s.json", test::file_text);
  const Module& module = scenario.model.modules.back();
  CHECK(module.ffn == 0);
  CHECK(module.experts == 8);
  CHECK(module.expert_ffn == 16);
  CHECK(module.shared_ffn == 24);
  CHECK(module.balance_weight == 0.01);
  CHECK(read_scenario(resolved_text(scenario), "s.json", test::file_text).model == scenario.model);
  CHECK(test::refusal(tiny_with(ffn, keys + ", " + ffn), test::file_text) ==
        "s.json: /model/language/ffn: ffn must not be given: every block has experts, none a dense "
        "feed-forward layer (write \"expert_ffn\", or \"shared_ffn\" for the expert that processes "
        "all tokens)");
}

TEST_CASE("refused experts") {
  CHECK(invalid([](Module&) {}).empty());
  CHECK(invalid([](Module& m) { m.experts_per_token = 9; }) ==
        "s.json: /model/language/experts_per_token: experts_per_token must be from 1 to 8, got 9 "
        "(write a whole number)");
  CHECK(invalid([](Module& m) { m.expert_ffn = 0; }) ==
        "s.json: /model/language/expert_ffn: expert_ffn must be from 1 to 1048576, got 0 (write a "
        "whole "
        "number)");
  CHECK(invalid([](Module& m) { m.shared_ffn = -1; }) ==
        "s.json: /model/language/shared_ffn: shared_ffn must be from 0 to 1048576, got -1 (0: no "
        "shared "
        "expert)");
  CHECK(
      invalid([](Module& m) { m.balance_weight = -0.1; }) ==
      "s.json: /model/language/balance_weight: balance_weight must be at least 0 (0.001 to 0.01 is "
      "usual)");
  CHECK(invalid([](Module& m) { m.experts = 0; }) ==
        "s.json: /model/language/experts_per_token: experts_per_token needs experts (remove the "
        "key, or "
        "write \"experts\", the number of experts per layer)");
}

TEST_CASE("configurations of models with experts") {
  const HfModule read = read_hf_config(
      R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
          "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
          "rope_theta": 1000000.0, "vocab_size": 32000, "sliding_window": null, "router_aux_loss_coef": 0.02})",
      "config.json", ModuleKind::language);
  CHECK(read.module == find_preset("mixtral-8x7b")->module);
  CHECK(read.notes.size() == 1);  // the balance loss

  const std::string qwen =
      R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 32,
          "num_hidden_layers": 48, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
          "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": true, "mlp_only_layers": [],
          "decoder_sparse_step": 1, "rope_theta": 1000000.0, "vocab_size": 151936})";
  const HfModule other = read_hf_config(qwen, "config.json", ModuleKind::language);
  CHECK(other.module == find_preset("qwen3-30b-a3b")->module);
  CHECK(other.notes == find_preset("qwen3-30b-a3b")->notes);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = qwen;
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK(read_hf_config(changed("\"norm_topk_prob\": true", "\"norm_topk_prob\": false"),
                       "config.json", ModuleKind::language)
            .notes.size() == 1);
  CHECK_THROWS_AS(
      read_hf_config(changed("\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2"),
                     "config.json", ModuleKind::language),
      InputError);
  CHECK_THROWS_AS(read_hf_config(changed("[]", "[0]"), "config.json", ModuleKind::language),
                  InputError);
}

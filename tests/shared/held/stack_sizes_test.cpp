// Memory of other frameworks (shared/held/stack_sizes.h), against tensors summed by hand.
#include "shared/held/stack_sizes.h"

#include <doctest/doctest.h>

#include "shared/graph/memory.h"
#include "shared/lower/lower.h"
#include "shared/plan/plan.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

using examples::llama_70b;

const SoftwareStack& stack(const char* name) { return *find_stack(name); }

// The 22B model of arXiv 2205.05198, Table 3; four samples of 2048 tokens.
Module gpt_22b() {
  Module module;
  module.kind = ModuleKind::language;
  module.layers = 48;
  module.hidden = 6144;
  module.heads = module.kv_heads = 64;
  module.head_dim = 96;
  module.ffn = 24576;
  module.vocab = 51200;
  module.norm = Norm::layer;
  return module;
}
constexpr std::int64_t kStream = 4 * 2048 * 6144;  // s·b·h
WorkSize sequences(std::int64_t count, std::int64_t tokens) {
  WorkSize size;
  size.tokens = size.gathered = size.text_tokens = size.loss_tokens = count * tokens;
  size.pairs = count * tokens * (tokens + 1) / 2;
  size.sequences = size.samples = static_cast<std::int32_t>(count);
  return size;
}

ChunkContext half(int tp, bool sp) {
  return {.tp = tp, .sp = sp, .expert_tp = tp, .precision = NumberFormat::bf16};
}

std::int64_t kept(const SoftwareStack& of, const Module& module, const WorkSize& size,
                  const ChunkContext& context, Recompute recompute) {
  return block_held(of, module, size, context, recompute).kept;
}

}  // namespace

TEST_CASE("memory of Megatron-LM's blocks follows the formulas of arXiv 2205.05198, Table 2") {
  const SoftwareStack& of = stack("megatron-2022");
  const Module module = gpt_22b();
  const WorkSize size = sequences(4, 2048);
  // 5·a·s²·b / t: softmax and what dropout leaves of it in two bytes each, the mask in one. Not in
  // the formulas: mean and deviation of a row, fp32, of two norms.
  const std::int64_t scores = 5ll * 64 * 2048 * 2048 * 4 / 8, rows = 4 * 2048 * 2 * 8;
  const auto block = [&](bool sp, Recompute recompute) {
    return kept(of, module, size, half(8, sp), recompute);
  };
  CHECK(block(false, Recompute::none) == kStream * (10 + 24 / 8) + scores + rows);
  CHECK(block(true, Recompute::none) == kStream * 34 / 8 + scores + rows / 8);
  CHECK(block(false, Recompute::selective) == kStream * 13 + rows);
  CHECK(block(true, Recompute::selective) == kStream * 34 / 8 + rows / 8);
  CHECK(block(false, Recompute::full) == kStream * 2);
  // Figure 1: 59.25 and 9.5625 GiB in 48 blocks.
  CHECK(48 * (block(false, Recompute::none) - rows) == std::int64_t{59} * (1 << 30) + (1 << 28));
  CHECK(48 * (block(true, Recompute::selective) - rows / 8) == 9'5625ll * (1 << 30) / 10'000);
}

TEST_CASE("scores are saved whole, masked ones included") {
  const SoftwareStack& of = stack("megatron-2022");
  Module module = gpt_22b();
  WorkSize size = sequences(4, 2048);
  const std::int64_t causal = kept(of, module, size, half(8, true), Recompute::none);
  // Of text and images that see themselves alone, both ways: some other number of pairs.
  module.mask = Mask::isolated;
  for (const std::int64_t pairs : {4 * 2048 * 300, 4 * 2048 * 1500}) {
    size.pairs = pairs;
    CHECK(kept(of, module, size, half(8, true), Recompute::none) == causal);
  }
  // Windows hide scores, too.
  module.mask = Mask::causal;
  module.mixers = {Mixer::window};
  module.sliding_window = 256;
  size.pairs = 4 * (2048 * 256 - 256 * 255 / 2);
  REQUIRE(block_at(module, 0).attention == AttentionKind::window);
  CHECK(kept(of, module, size, half(8, true), Recompute::none) == causal);
}

TEST_CASE("a block under Transformer Engine") {
  const Module module = llama_70b();
  const WorkSize size = sequences(1, 4096);
  const SoftwareStack& of = stack("megatron-core");
  // bf16: inputs and outputs of two norms 4·8192, q and attention's output 8192 each, k and v 1024
  // each, gate, up and their product 3·28672; fp32: log-sum-exp of 64 heads, two scales a row.
  const std::int64_t stream = 4096 * 8192 * 2, heads = 4096 * (2 * 8192 + 2 * 1024) * 2,
                     ffn = 4096 * 3 * 28672 * 2, lse = 4096 * 64 * 4, scales = 4096 * 2 * 4;
  const std::int64_t all = 4 * stream + heads + ffn + lse + scales;
  CHECK(kept(of, module, size, half(1, false), Recompute::none) == all);
  CHECK(kept(of, module, size, half(8, true), Recompute::none) == all / 8);
  CHECK(kept(of, module, size, half(8, false), Recompute::none) ==
        4 * stream + (heads + ffn + lse) / 8 + scales);
  CHECK(kept(of, module, size, half(1, false), Recompute::selective) == all - lse);
  CHECK(kept(of, module, size, half(1, false), Recompute::full) == stream);

  // The backward of the activation: gradients of gate and up, and of the stream.
  const LayerHeld held = block_held(of, module, size, half(1, false), Recompute::none);
  CHECK(held.backward == all + stream + 2 * 4096 * 28672 * 2);
  CHECK(block_held(of, module, size, half(1, false), Recompute::full).backward == held.backward);

  // Operands in fp8: outputs of the norms and the product in one byte, attention's output once
  // more.
  SoftwareStack eight = of;
  eight.matrix = NumberFormat::fp8;
  CHECK(kept(eight, module, size, half(1, false), Recompute::none) ==
        all - stream - 4096 * 28672 + 4096 * 8192);
  // Context parallelism: own keys and values alone; exchanged heads' output is another tensor.
  ChunkContext ring = half(1, false);
  ring.cp = 4;
  WorkSize share = size;
  share.gathered = 4 * 4096;
  SoftwareStack exchanged = of;
  exchanged.memory.head_exchange = true;
  CHECK(kept(of, module, share, ring, Recompute::none) == all);
  CHECK(kept(exchanged, module, share, ring, Recompute::none) == all + 4096 * 8192 * 2);
  // Dropout after attention and after the feed-forward part: a byte an element.
  CHECK(kept(stack("megatron-mimo"), module, size, half(1, false), Recompute::none) ==
        all + stream);
}

TEST_CASE("a block under FSDP2") {
  const Module module = llama_70b();
  const WorkSize size = sequences(1, 4096);
  SoftwareStack of = stack("fsdp");
  const std::int64_t stream = 4096 * 8192 * 2, heads = 4096 * (2 * 8192 + 2 * 1024) * 2,
                     wide = 4096 * 28672 * 2, lse = 4096 * 64 * 4, scales = 4096 * 2 * 4;
  // Of two norms the input in fp32, what they divided, the output. Gate, its silu, up, the product.
  CHECK(kept(of, module, size, half(1, false), Recompute::none) ==
        2 * (2 + 1 + 1) * stream + heads + 4 * wide + lse + scales);
  // Rows between blocks cut by eight; matrices keep whole what they gathered.
  CHECK(kept(of, module, size, half(8, true), Recompute::none) ==
        2 * 3 * stream / 8 + 2 * stream + (heads + 4 * wide + lse + scales) / 8);
  of.memory.compiled = true;  // norms, silu and product again
  CHECK(kept(of, module, size, half(1, false), Recompute::none) ==
        2 * stream + heads + 2 * wide + lse + scales);
  // By operator: of q, k, v, out, gate, up, down every second is made again: q, v, gate, down stay,
  // and attention's own.
  of.memory.by_operator = true;
  const std::int64_t read = stream + 4096 * (8192 + 1024 + 28672) * 2 + 4096 * 8192 * 2 + lse;
  CHECK(kept(of, module, size, half(1, false), Recompute::selective) == read);
  // Forward, besides: the stream, its norm, up and the product.
  const auto besides = [&] {
    const LayerHeld held = block_held(of, module, size, half(1, false), Recompute::selective);
    return held.forward - held.kept;
  };
  CHECK(besides() == 2 * stream + 2 * wide);
  of.memory.compiled = false;  // down's output, too, although no op reads it; silu's
  CHECK(kept(of, module, size, half(1, false), Recompute::selective) == read + stream);
  CHECK(besides() == 2 * stream + 3 * wide - stream);
}

TEST_CASE("logits and their loss") {
  // 4096 rows of 8192, 16032 words on each of eight ranks.
  const Module module = llama_70b();
  const WorkSize size = sequences(1, 4096);
  const LayerRange head{81, 82};
  const std::int64_t rows = 2 * 4096 * 8192 * 2 / 8 + 4096 * 4 / 8, logits = 4096ll * 16032;
  const auto held = [&](const SoftwareStack& of) {
    return chunk_held(of, module, head, size, half(8, true));
  };
  SoftwareStack of = stack("megatron-core");
  CHECK(held(of).tape == Bytes(rows + 4 * logits));
  CHECK(held(of).forward == Bytes(2 * logits));
  CHECK(held(of).loss == Bytes(2 * logits));
  CHECK(held(of).backward == Bytes(0));  // blocks'
  of.memory.fused_loss = true;
  CHECK(held(of).tape == Bytes(rows + 2 * logits));
  CHECK(held(of).forward == Bytes(0));
  // The gradient of the head's input, of all rows and summed to own ones.
  CHECK(held(of).loss == Bytes(4096 * 8192 * 2 * 9 / 8));
  of = stack("fsdp");
  CHECK(held(of).tape == Bytes(4096 * 8192 * 2 / 8 + 4096 * 8192 * 2 + 4096 * 4 / 8 + 4 * logits));
  // In addition to the logarithms, fp32 each. Forward: the logits as computed, the shifted ones,
  // and their exponentials, in turn with the logarithms. Backward: the gradients of the loss, the
  // exponentials, and their product.
  CHECK(held(of).forward == Bytes((8 + 2) * logits));
  CHECK(held(of).loss == Bytes(12 * logits));
  const std::int64_t all = 4096ll * 128256;  // not cut: one kernel from logits to logarithms
  CHECK(chunk_held(of, module, head, size, half(1, false)).forward == Bytes((4 + 2) * all));
  CHECK(chunk_held(of, module, head, size, half(1, false)).loss == Bytes(8 * all));
  of.memory.fused_loss = true;
  CHECK(held(of).tape == Bytes(4096 * 8192 * 2 / 8 + 4096 * 8192 * 2 + 4096 * 4 / 8 + 2 * logits));
  CHECK(held(of).loss == Bytes(2 * logits));
}

TEST_CASE("parameters, gradients and optimizer state") {
  const HeldElements million{1'000'000, 0};
  const auto bytes = [&](const char* name, Shard shard, int shards, bool pipelined = false) {
    const HeldBytes held =
        stack_held_bytes(stack(name), million, shard, shards, 0, pipelined, NumberFormat::bf16);
    return (held.values + held.gradient + held.optimizer).value;
  };
  CHECK(bytes("megatron-2022", Shard::none, 1) == 18'000'000);
  CHECK(bytes("megatron-core", Shard::optimizer, 4) == (6 + 12 / 4) * 1'000'000);
  CHECK(bytes("megatron-bridge", Shard::optimizer, 4) == (4 + 12 / 4) * 1'000'000);
  CHECK(bytes("fsdp", Shard::full, 8) == 16 / 8 * 1'000'000);
  CHECK(bytes("fsdp", Shard::none, 1) == 16'000'000);
  // Between a pipeline's works gathered values in bf16, whole gradients in fp32.
  CHECK(bytes("fsdp2", Shard::full, 8, true) == (16 / 8 + 2 + 4) * 1'000'000);
  CHECK(bytes("fsdp2", Shard::none, 1, true) == 16'000'000);
  CHECK(bytes("fsdp2", Shard::gradients, 8) == (16 / 8 + 2) * 1'000'000);
  CHECK(bytes("fsdp2", Shard::gradients, 8, true) == bytes("fsdp2", Shard::full, 8, true));
  CHECK(bytes("megatron-core", Shard::full, 8, true) == bytes("megatron-core", Shard::full, 8));
}

TEST_CASE("gathered layers, unsharded gradients, gradients that are never written") {
  const Module module = llama_70b();
  const ShardIndex place{.tensor = 2};
  // A block: qkv 10240·8192, out 8192·8192, three of 8192·28672, two norms; halves of the matrices.
  const std::int64_t block = (10240ll * 8192 + 8192ll * 8192 + 3ll * 8192 * 28672) / 2 + 2 * 8192;
  const std::int64_t head = 128256ll * 8192 / 2 + 8192;
  const auto units = [&](const char* name, int end) {
    return unit_elements(stack(name), parameters(module, {1, static_cast<std::uint16_t>(end)}),
                         place, 82);
  };
  const auto gathered = [&](const char* name, int end, bool pipelined) {
    return stack_gathered_bytes(stack(name), units(name, end), pipelined, NumberFormat::bf16);
  };
  const auto whole = [&](const char* name, int end, bool pipelined) {
    return stack_whole_gradient_bytes(stack(name), units(name, end), pipelined, NumberFormat::bf16);
  };
  CHECK(gathered("megatron-core", 3, false) == Bytes(4 * block));
  CHECK(gathered("megatron-core", 82, false) == Bytes(2 * (head + block)));
  CHECK(whole("megatron-core", 82, false) == Bytes((2 + 4) * head + 4 * block));
  // The head is no unit of its own: gathered with the embedding, and into a buffer first.
  CHECK(units("fsdp2", 82) == std::vector<std::int64_t>(80, block));
  CHECK(gathered("fsdp2", 82, false) == Bytes(4 * block));
  CHECK(whole("fsdp2", 82, false) == Bytes((2 + 4) * block + 4 * block));
  CHECK(end_copies(stack("fsdp2"), head, false) == 2 * head);
  // Of a pipeline all is gathered: what is left is one layer's own gradient.
  CHECK(gathered("fsdp2", 82, true) == Bytes(0));
  CHECK(whole("fsdp2", 82, true) == Bytes(2 * block));
  CHECK(end_copies(stack("fsdp2"), head, true) == head);

  MatrixShapes shapes;
  add_matrix_shapes(parameters(module), place, true, shapes);
  CHECK(shapes.size() == 80 * 4 + 1);
  Module tied = module;
  tied.tied = true;
  MatrixShapes first, all;
  add_matrix_shapes(parameters(tied, {0, 2}), place, false, first);
  CHECK(first.size() == 4);
  add_matrix_shapes(parameters(tied), place, true, all);
  CHECK(all.size() == 80 * 4 + 1);
  const SoftwareStack& core = stack("megatron-core");
  const Bytes matrices(2 * (block - 2 * 8192 + head - 8192));
  CHECK(standing_bytes(core, {shapes, 1000}, NumberFormat::bf16) ==
        core.memory.workspaces + matrices + Bytes(2000));
  CHECK(standing_bytes(stack("megatron-mimo"), {shapes}, NumberFormat::bf16) ==
        core.memory.workspaces);
  CHECK(standing_bytes(stack("fsdp2"), {shapes, 1000, 500}, NumberFormat::bf16) ==
        stack("fsdp2").memory.workspaces + Bytes(1000));
}

TEST_CASE("another stack changes only the sizes of buffers") {
  Scenario scenario;
  Module module = llama_70b();
  module.layers = 8;
  module.name = "language";
  scenario.model.modules = {module};
  scenario.cluster.nodes = 1;
  scenario.cluster.ranks_per_node = 8;
  scenario.data.source =
      SyntheticData{examples::always(0), examples::always(4096), examples::always(4096)};
  scenario.data.global_batch = 8;
  scenario.training.precision = NumberFormat::bf16;
  ModuleLayout grid;
  grid.tp = 2, grid.pp = 2, grid.sp = true, grid.ranks = 8, grid.shard = Shard::optimizer;
  Layout layout{.placement = Placement::homogeneous, .modules = {grid}};
  layout.microbatches = 4;
  const Plan plan = make_plan(scenario, layout);
  const Batch batch = typical_batch(scenario);
  const Program ours = lower(scenario, layout, plan, batch);
  CHECK(hash(ours) == hash(lower(scenario, layout, plan, batch, StepKind::train, {})));
  const Program theirs =
      lower(scenario, layout, plan, batch, StepKind::train, stack("megatron-core"));
  CHECK(theirs.ops.size() == ours.ops.size());
  CHECK(theirs.messages.size() == ours.messages.size());
  CHECK(theirs.waits == ours.waits);
  CHECK(theirs.params.size() == ours.params.size());
  CHECK(theirs.buffers.size() > ours.buffers.size());
}

}  // namespace polyphony

// Compares what an op queues on a GPU with the prediction of expand(): the number and FLOPs of its
// GEMMs, and the number of all its kernels and collectives, for which expand_own() is used
// (shared/kernels/kernel_form.h). The bytes of collectives are compared wherever the parity set
// runs (RunnerOptions::check_collectives).
//
// A kernel is one call of LibTorch, a library or exec/cuda/, whatever it launches inside: a GEMM,
// the attention of all sequences, a sum, a copy. Forms are those of GPUs: our kernels' bodies,
// flash attention.
//
// Not compared: kernels of context-parallel ranks, which are only printed (the number of attention
// calls depends on which rank has which rows); FLOPs of experts on several ranks (they depend on
// routing); windows, linear and latent attention, diffusion, audio, rows that edges add; bf16, for
// which this device has no GEMM into fp32. Only the first tensor-parallel rank is compared: others
// may have rows to pad.
#include <doctest/doctest.h>

#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "shared/kernels/kernel_form.h"
#include "shared/lower/lower.h"
#include "shared/program/expand_op.h"
#include "tests/exec/device_double/attention_kernels.h"
#include "tests/exec/device_double/device_world.h"
#include "tests/exec/fused/operation.h"
#include "tests/exec/parity/parity_layouts.h"

namespace polyphony::exec::testing {

namespace {

// Counts over one rank's ops of a phase.
struct Counted {
  std::int64_t ops = 0, products = 0, kernels = 0, expected = 0;
};
using Table = std::map<std::string, Counted>;

// Additional kernels that the runner queues for an op (exec/runner/runner_ops.cpp): the maximum
// over the numbers computed for other ranks, the loss on a rank that counts it, and zeros for
// gradients that exist from a backward until their sum over the ranks that share the parameters.
std::int64_t beside_layers(const Program& program, const Op& op, const Compute& compute) {
  constexpr std::int64_t kLargest = 1, kLoss = 1, kOpened = 1;
  const Module& module = program.model.modules[compute.module.value];
  const bool last = compute.layers.end == layers(module).size();
  if (compute.phase == Phase::forward)
    return kLargest + (last && module.kind == ModuleKind::language ? kLoss : 0);
  const bool opens = compute.phase != Phase::backward_input &&
                     module.trainable == Trainable::full &&
                     program.layout.modules[compute.module.value].shard == Shard::full;
  std::int64_t made = 0;
  for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u) {
    const BufferUse& use = program.buffer_uses[u];
    const Buffer& buffer = program.buffers[use.buffer.value];
    made +=
        use.use == Use::write && buffer.kind == BufferKind::boundary_gradient && buffer.rows > 0;
  }
  return made * kLargest + (opens ? kOpened : 0);
}

// Rows with a label, of which each rank has a different number: every gather and sum of them
// consists of messages and reductions, and a copy of the rank's own rows
// (exec/device/device_group.h).
std::int64_t unequal_parts(const QueuedCounts& counts) {
  std::int64_t moved = 0;
  for (const char* name : {"messages", "reductions"})
    if (const auto found = counts.names.find(name); found != counts.names.end())
      moved += found->second;
  return moved;
}

std::string described(const std::map<std::string, std::int64_t>& names) {
  std::string text;
  for (const auto& [name, count] : names) text += std::to_string(count) + " " + name + ", ";
  return text;
}
std::string described(const Expansion& expansion) {
  std::map<std::string, std::int64_t> names;
  constexpr std::array kKinds{"products", "attention", "passes", "of embedding", "of loss"};
  for (const Kernel& kernel : expansion.kernels)
    names[name(kernel.layer) + std::string(" ") +
          kKinds.at(static_cast<std::size_t>(kernel.kind))] += kernel.launches;
  for (const InnerCollective& collective : expansion.collectives) ++names[name(collective.kind)];
  return described(names);
}

enum class Compared { all, kernels, products };  // kernels: without FLOPs; products: GEMMs only

Table step(const Case& c, Transport& transport, torch::Device device, Compared compared) {
  const Scenario scenario = make_scenario(c);
  const auto dataset = make_dataset(c, scenario);
  const Program program = whole_program(c);
  Table table;
  RunnerOptions options{.device = device};
  options.watch = [&](OpId id, bool starts) {
    const Op& op = program.ops[id.value];
    const auto* compute = std::get_if<Compute>(&op.what);
    if (compute == nullptr) return;
    const QueuedCounts counts = take_counts(device);
    if (starts) return;  // earlier calls
    const Module& module = program.model.modules[compute->module.value];
    const ChunkContext context = chunk_context(program, *compute);
    const WorkSize& size = program.size_of(compute->work, compute->module);
    const Expansion plain = expand(program, id),
                    own = expand_own(module, compute->layers, compute->phase, size, context);
    std::int64_t products = 0;
    double flops = 0;
    for (const Kernel& kernel : plain.kernels) {
      if (kernel.kind != KernelKind::gemm) continue;
      products += kernel.launches;
      flops += kernel.flops.value;
    }
    INFO(describe(program, id));
    CHECK(counts.products == products);
    if (compared != Compared::kernels)
      CHECK(counts.product_flops == doctest::Approx(flops).epsilon(1e-12));
    CHECK((own.collectives == plain.collectives));
    std::int64_t expected = beside_layers(program, op, *compute) + unequal_parts(counts) +
                            static_cast<std::int64_t>(own.collectives.size());
    for (const Kernel& kernel : own.kernels) expected += kernel.launches;
    INFO("queued:   " << described(counts.names));
    INFO("expanded: " << described(own) << beside_layers(program, op, *compute)
                      << " of the runner");
    if (compared != Compared::products &&
        transport.rank().value % static_cast<std::uint32_t>(context.tp) == 0)
      CHECK(counts.kernels == expected);
    Counted& row = table[name(compute->phase)];
    ++row.ops;
    row.products += counts.products;
    row.kernels += counts.kernels;
    row.expected += expected;
  };
  Runner runner(transport, scenario, program, options);
  const auto inputs =
      pack_inputs(program, transport.rank(), *dataset, {scenario.data.seed, 0}, device);
  runner.train_step(
      program, [&](WorkId work) -> const WorkInput& { return inputs.at(work); }, 1e-3);
  return table;
}

// Heads of width 8, as attention kernels require; then applies `change`.
Case with_heads(Case c, const std::function<void(Module&)>& change = {}) {
  c.variant = [before = c.variant, change](Model& model) {
    if (before) before(model);
    for (Module& module : model.modules) {
      if (module.head_dim > 0) module.head_dim = 8;
      if (change) change(module);
    }
  };
  return c;
}
Case of_kind(ModuleKind kind, Case c, const std::string& what,
             const std::function<void(Module&)>& change) {
  c.name += ", " + what;
  return with_heads(std::move(c), [kind, change](Module& module) {
    if (module.kind == kind) change(module);
  });
}
Case adapted(Case c) {
  c.lora = kLanguage;
  c.name += ", lora";
  return c;
}
Case selective(Case c) {
  for (ModuleLayout& layout : c.layout.modules) layout.recompute = Recompute::selective;
  c.name += ", selective recomputation";
  return c;
}

void compare(const Case& c, Compared compared) {
  INFO(c.name);
  const Preferred flash(AttentionKernel::flash);  // as in bf16
  const FormsFor fused(kernels::Forms::fused);
  Table table;
  on_devices(world_size(c.layout), false, [&](Transport& transport, torch::Device device) {
    const Table mine = step(c, transport, device, compared);
    if (transport.rank() == Rank(0)) table = mine;
  });
  for (const auto& [phase, row] : table)
    MESSAGE(c.name << ", " << phase << ", an op: " << row.products / row.ops << " products, "
                   << row.kernels / row.ops << " kernels and collectives, expanded "
                   << row.expected / row.ops);
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE(
      "kernels and collectives of an op are those of its expansion, and so are its GEMMs' FLOPs") {
    const std::vector<Case> generated = parity_matrix().cases;
    const Case two = homogeneous({2, 1, 1}, k1f1b, 2);
    for (const Case& c :
         {with_heads(homogeneous({}, kGpipe, 1)), with_heads(homogeneous({2, 1, 1}, k1f1b, 1)),
          with_heads(homogeneous({1, 2, 1}, ScheduleKind::zero_bubble, 4)),
          with_heads(recompute(homogeneous({1, 2, 1}, k1f1b, 2))),
          with_heads(selective(homogeneous({}, k1f1b, 2))),
          with_heads(frozen(homogeneous({1, 2, 1}, k1f1b, 2), kEncoder)),
          with_heads(language_only(two)), with_heads(adapted(homogeneous({1, 2, 1}, k1f1b, 2))),
          with_heads(adapted(two)), with_heads(named(generated, "tp2 + sp")),
          with_heads(in_pieces(two, 3, false)), with_heads(in_pieces(two, 3, true)),
          with_heads(named(generated, "fully sharded")),
          of_kind(ModuleKind::language, two, "norms of heads, biases",
                  [](Module& m) { m.qk_norm = m.qkv_bias = true; }),
          of_kind(ModuleKind::language, homogeneous({}, k1f1b, 2), "norms behind parts, GeGLU",
                  [](Module& m) {
                    m.post_norms = true;
                    m.activation = Activation::gelu;
                  }),
          of_kind(ModuleKind::vision, two, "rotary", [](Module& m) { m.rotary = true; }),
          of_kind(ModuleKind::vision, two, "class tokens", [](Module& m) { m.class_token = true; }),
          of_kind(ModuleKind::vision, two, "layer scales", [](Module& m) { m.layer_scale = 0.5; }),
          of_kind(ModuleKind::vision, two, "a norm before the first block, none after the last",
                  [](Module& m) {
                    m.class_token = m.input_norm = true;
                    m.final_norm = false;
                  })})
      compare(c, Compared::all);
  }
  TEST_CASE("kernels of experts match the expansion for any routing; GEMMs with gathered keys") {
    Case experts = homogeneous({1, 1, 2}, k1f1b, 2);
    experts.experts = 4;
    experts.name += ", experts";
    Case dealt = experts;
    dealt.layout.modules.back().ep = 2;
    dealt.name += ", ep2";
    compare(with_heads(experts), Compared::all);
    compare(of_kind(ModuleKind::language, experts, "a gated shared expert",
                    [](Module& m) { m.shared_gate = true; }),
            Compared::all);
    compare(with_heads(dealt), Compared::kernels);
    compare(with_heads(named(parity_matrix().cases, "cp2 contiguous")), Compared::products);
  }
}

}  // namespace polyphony::exec::testing

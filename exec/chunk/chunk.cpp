#include "exec/chunk/chunk.h"

#include <torch/csrc/autograd/engine.h>

#include <optional>
#include <utility>

#include "exec/autograd/weight_products.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/chunk/blocks.h"
#include "exec/chunk/edge_rows.h"
#include "exec/frame/sequence_plans.h"
#include "exec/layers/diffusion.h"
#include "shared/error.h"
#include "shared/kernels/lora.h"
#include "shared/layers/layer_table.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// The saved activations of a forward pass until its backward, or the weight part that remains after
// backward_input().
struct Tape {
  std::vector<Tensor> inputs;  // autograd leaves, detached; undefined where there is no input
  WorkInput data;
  std::shared_ptr<WeightQueue> queue;
  Choices choices;
  std::optional<Frame> frame;  // refers to the members above
  // The root of the graph. A graph does not need its output tensor, which may be released. Null: it
  // trains nothing.
  torch::autograd::Edge root;
  std::vector<std::int64_t> shape;  // of the output
  torch::TensorOptions format;      // likewise
  bool pending = true;              // the backward pass has not run yet
};

// Copies a gradient that is a view of a larger one (of the rows of all inputs), which would
// otherwise stay allocated until the gradient is sent.
Tensor alone(const Tensor& gradient) {
  return gradient.storage().nbytes() > gradient.nbytes()
             ? gradient.clone(at::MemoryFormat::Contiguous)
             : gradient;
}

// "language.block3.experts.down.weight" -> "experts.down.weight", "language.head.norm.weight" ->
// "norm.weight".
std::string name_in_layer(const std::string& name) {
  const std::size_t block = name.find(".block");
  const std::size_t dot =
      block == std::string::npos ? name.rfind('.', name.rfind('.') - 1) : name.find('.', block + 1);
  return name.substr(dot + 1);
}

// Returns the name of the weight that an adapter belongs to: "qkv.weight" for "qkv.lora_a".
void link_low_rank(const Layer& layer, double scale) {
  for (const auto& [name, a] : layer.parameters) {
    const std::size_t dot = name.rfind('.');
    if (name.substr(dot) != ".lora_a") continue;
    LocalParameter* weight = layer.at(name.substr(0, dot) + ".weight");
    weight->lora_a = a;
    weight->lora_b = layer.at(name.substr(0, dot) + ".lora_b");
    weight->lora_scale = scale;
  }
}

}  // namespace

struct Chunk::Impl {
  Impl(const Module& module_, LayerRange range, const Communicators& communicators,
       const ShardIndex& shard, const ChunkOptions& options_)
      : module(module_),
        options(options_),
        groups(communicators),
        first_edge(range.begin > 0 ? 1 : 0) {
    const std::vector<LayerKind> stack = polyphony::layers(module);
    for (int i = range.begin; i < range.end; ++i)
      layers.push_back({stack.at(static_cast<std::size_t>(i)),
                        recompute_of(stack.at(static_cast<std::size_t>(i)), i, options.recompute,
                                     options.recomputed),
                        {},
                        i});
    // True if experts are not cut over the tensor-parallel ranks.
    ShardIndex whole_experts = shard;
    if (options.expert_tp == 1) whole_experts.tensor = 1, whole_experts.tensor_index = 0;
    for (const Parameter& spec : polyphony::parameters(module, range)) {
      const ShardIndex& place = spec.expert ? whole_experts : shard;
      const bool published = options.pretrained != nullptr && is_published(spec);
      const Tensor value =
          (published ? pretrained_value(spec, place, options.dtype, *options.pretrained)
                     : initial_value(spec, place, options.seed, options.dtype, options.perturb))
              .to(options.device);
      const bool trains = options.trainable && spec.trained;
      parameters.push_back({spec, value, trains ? first_gradient(value) : Tensor()});
      if (is_block(stack.at(static_cast<std::size_t>(spec.layer))) && fits_fp8(spec, value))
        parameters.back().fp8 = options.fp8;
    }
    for (LocalParameter& parameter : parameters) {
      Layer& layer = layers.at(static_cast<std::size_t>(parameter.spec.layer - range.begin));
      layer.parameters[name_in_layer(parameter.spec.name)] = &parameter;
    }
    const char* const table = "embedding.weight";
    if (module.tied && !layers.empty() && layers.front().find(table) != nullptr)
      layers.back().parameters[table] = layers.front().parameters[table];
    for (Layer& layer : layers) {
      link_low_rank(layer, low_rank_scale(module));
      has_blocks |= layer.kind == LayerKind::encoder_block ||
                    layer.kind == LayerKind::decoder_block ||
                    layer.kind == LayerKind::diffusion_block;
    }
    anchor = torch::zeros({}, torch::dtype(options.dtype).device(options.device))
                 .requires_grad_(options.trainable);
  }

  Tensor first_gradient(const Tensor& value) const {
    const torch::TensorOptions format = value.options().dtype(gradient_type(options.dtype));
    return options.allocate_gradients ? torch::zeros(value.sizes(), format)
                                      : torch::empty({0}, format);
  }
  bool keeps_tape() const { return options.trainable || options.input_grad; }

  Frame frame(const std::vector<Tensor>& inputs, const WorkInput& data,
              const std::shared_ptr<WeightQueue>& queue, Choices& choices) {
    std::shared_ptr<const SequenceRows> own;
    if (options.sequence_parallel && groups.tensor.size() > 1)
      own = std::make_shared<SequenceRows>(groups.tensor, sequence_length(module, data));
    const Pass pass{&groups, queue, anchor, own, module.norm_epsilon, options.tp_pieces};
    return {
        module,
        data,
        pass,
        has_blocks
            ? plan_sequences(module, data, anchor.options(), groups.context, options.attention)
            : SequencePlan{},
        inputs,
        options.input_edges,
        own,
        module.experts > 0 && has_blocks ? plan_balance(module, data, groups.context.index())
                                         : BalancePlan{},
        choices,
        first_edge,
        module.kind == ModuleKind::diffusion ? plan_items(pass, own, data, inputs) : LatentPlan{},
        has_blocks ? plan_windows(module, data, anchor.options(), groups.context, options.attention)
                   : SequencePlan{}};
  }

  LatentPlan plan_items(const Pass& pass, const std::shared_ptr<const SequenceRows>& own,
                        const WorkInput& data, const std::vector<Tensor>& inputs) const {
    const bool reads = has_blocks && module.condition > 0;
    POLYPHONY_CHECK(!reads || (inputs.size() > first_edge && inputs[first_edge].defined()),
                    module.name << ": no conditioning among " << inputs.size() << " inputs");
    return plan_latents(data, pass, own.get(), reads ? inputs[first_edge] : Tensor());
  }

  // Returns the input of the first layer.
  Tensor start(const Frame& now) const {
    if (now.inputs.empty()) return {};
    const bool adds = module.kind == ModuleKind::language && first_edge > 0;
    return adds ? add_edge_rows(now, now.inputs.front()) : now.inputs.front();
  }

  Tensor forward(std::uint64_t work, const std::vector<Tensor>& inputs, const WorkInput& data,
                 Recipe recipe) {
    POLYPHONY_CHECK(tapes.count(work) == 0,
                    module.name << ": microbatch " << work << " is already in flight");
    const torch::AutoGradMode grad_mode(keeps_tape());
    Tape& tape = tapes[work];
    tape.data = data;
    tape.queue = std::make_shared<WeightQueue>();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool wanted =
          keeps_tape() && options.input_grad && (options.edge_grad || i < first_edge);
      tape.inputs.push_back(inputs[i].defined() ? inputs[i].detach().requires_grad_(wanted)
                                                : Tensor());
    }
    tape.frame.emplace(frame(tape.inputs, tape.data, tape.queue, tape.choices));
    tape.frame->recipe = recipe;
    Tensor x = start(*tape.frame);
    for (const Layer& layer : layers) x = run_layer(*tape.frame, layer, x);
    if (keeps_tape()) {
      tape.root = torch::autograd::impl::gradient_edge(x);
      tape.shape = x.sizes().vec();
      tape.format = x.options().requires_grad(false);
    } else {
      tapes.erase(work);
    }
    return x.detach();
  }

  // Runs the graph from output to input. Weight gradients are computed at once or stay queued.
  std::vector<Tensor> backward(Tape& tape, const Tensor& output_grad, bool immediate) {
    POLYPHONY_CHECK(std::exchange(tape.pending, false),
                    module.name << ": backward was called twice for a microbatch");
    const Tensor seed = output_grad.defined() ? output_grad
                        : tape.shape.empty()  ? torch::ones({}, tape.format)  // a loss
                                              : torch::zeros(tape.shape, tape.format);
    POLYPHONY_CHECK(seed.sizes() == tape.shape,
                    seed.sizes() << " for an output of " << at::IntArrayRef(tape.shape));
    tape.queue->immediate = immediate;
    const torch::autograd::Edge root = std::exchange(tape.root, {});
    if (root.is_valid())
      torch::autograd::Engine::get_default_engine().execute(
          {root}, {seed}, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/true);
    std::vector<Tensor> gradients;
    for (const Tensor& input : tape.inputs) {
      gradients.emplace_back();
      if (!input.defined() || !input.requires_grad()) continue;
      gradients.back() = input.grad().defined() ? alone(input.grad()) : torch::zeros_like(input);
    }
    return gradients;
  }

  Tape& tape_of(std::uint64_t work) {
    const auto found = tapes.find(work);
    POLYPHONY_CHECK(found != tapes.end(),
                    module.name << ": microbatch " << work << " has no saved activations");
    return found->second;
  }

  Module module;
  ChunkOptions options;
  InnerGroups groups;
  std::vector<LocalParameter> parameters;
  std::vector<Layer> layers;
  bool has_blocks = false;
  std::size_t first_edge;  // index of the first input received over a model edge
  Tensor anchor;
  std::map<std::uint64_t, Tape> tapes;
};

Chunk::Chunk(const Module& module, LayerRange layers, const Communicators& communicators,
             const ShardIndex& shard, const ChunkOptions& options)
    : impl_(std::make_unique<Impl>(module, layers, communicators, shard, options)) {}
Chunk::~Chunk() = default;

Tensor Chunk::forward(std::uint64_t work, const std::vector<Tensor>& inputs, const WorkInput& data,
                      Recipe recipe) {
  return impl_->forward(work, inputs, data, recipe);
}

std::vector<Tensor> Chunk::backward(std::uint64_t work, const Tensor& output_grad) {
  std::vector<Tensor> gradients = impl_->backward(impl_->tape_of(work), output_grad, true);
  impl_->tapes.erase(work);
  return gradients;
}

std::vector<Tensor> Chunk::backward_input(std::uint64_t work, const Tensor& output_grad) {
  Tape& tape = impl_->tape_of(work);
  std::vector<Tensor> gradients = impl_->backward(tape, output_grad, false);
  tape.frame.reset();
  tape.inputs.clear();
  tape.data = {};
  tape.choices.clear();
  return gradients;
}

void Chunk::backward_weight(std::uint64_t work) {
  impl_->tape_of(work).queue->run();
  impl_->tapes.erase(work);
}

void Chunk::drop(std::uint64_t work) { impl_->tapes.erase(work); }

Predicted Chunk::predict(const std::vector<Tensor>& inputs, const WorkInput& data) {
  POLYPHONY_CHECK(!impl_->layers.empty() && impl_->layers.back().kind == LayerKind::language_head,
                  impl_->module.name << ": predict() without the head");
  const torch::NoGradGuard no_grad;
  Choices choices;
  const Frame frame = impl_->frame(inputs, data, std::make_shared<WeightQueue>(), choices);
  Tensor x = impl_->start(frame);
  for (std::size_t i = 0; i + 1 < impl_->layers.size(); ++i)
    x = run_layer(frame, impl_->layers[i], x);
  return predict_layer(frame, impl_->layers.back(), x);
}

std::vector<LocalParameter>& Chunk::parameters() { return impl_->parameters; }
std::vector<InnerCollective> Chunk::take_issued() { return impl_->groups.take_issued(); }

}  // namespace polyphony::exec

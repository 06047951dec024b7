#include "exec/chunk.h"

#include <utility>

#include "exec/blocks.h"
#include "exec/wide_gradient.h"
#include "shared/error.h"
#include "shared/lora.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// A forward waiting for its backward, or the weight part that a backward_input left.
struct Tape {
  std::vector<Tensor> inputs;  // leaves, detached; undefined where there is none
  WorkInput data;
  Tensor output;  // with its graph; undefined under recompute, and after backward_input
  std::shared_ptr<WeightQueue> queue;
  Choices choices;
};

// "language.block3.experts.down.weight" -> "experts.down.weight", "language.head.norm.weight" ->
// "norm.weight".
std::string name_in_layer(const std::string& name) {
  const std::size_t block = name.find(".block");
  const std::size_t dot = block == std::string::npos ? name.rfind('.', name.rfind('.') - 1)
                                                     : name.find('.', block + 1);
  return name.substr(dot + 1);
}

// Tells weights of their pairs: "qkv.weight" of "qkv.lora_a".
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
      : module(module_), options(options_), groups(communicators) {
    const std::vector<LayerKind> stack = polyphony::layers(module);
    for (int i = range.begin; i < range.end; ++i)
      layers.push_back({stack.at(static_cast<std::size_t>(i)), {}});
    // Experts that are not cut over the tensor-parallel ranks.
    ShardIndex whole_experts = shard;
    if (options.expert_tp == 1) whole_experts.tensor = 1, whole_experts.tensor_index = 0;
    for (const Parameter& spec : polyphony::parameters(module, range)) {
      const Tensor value = initial_value(spec, spec.expert ? whole_experts : shard, options.seed, options.dtype, options.perturb)
                               .to(options.device);
      const bool trains = options.trainable && spec.trained;
      parameters.push_back(
          {spec, value,
           trains ? torch::zeros_like(value, gradient_type(options.dtype)) : Tensor()});
    }
    for (LocalParameter& parameter : parameters) {
      Layer& layer = layers.at(static_cast<std::size_t>(parameter.spec.layer - range.begin));
      layer.parameters[name_in_layer(parameter.spec.name)] = &parameter;
    }
    for (Layer& layer : layers) {
      link_low_rank(layer, low_rank_scale(module));
      has_blocks |=
          layer.kind == LayerKind::encoder_block || layer.kind == LayerKind::decoder_block;
    }
    anchor = torch::zeros({}, torch::dtype(options.dtype).device(options.device))
                 .requires_grad_(options.trainable);
  }

  bool keeps_tape() const { return options.trainable || options.input_grad; }

  Frame frame(const std::vector<Tensor>& inputs, const WorkInput& data,
              const std::shared_ptr<WeightQueue>& queue, Choices& choices) {
    std::shared_ptr<const SequenceRows> own;
    if (options.sequence_parallel && groups.tensor.size() > 1)
      own = std::make_shared<SequenceRows>(groups.tensor, sequence_length(module, data));
    return {module,
            data,
            {&groups, queue, anchor, own},
            has_blocks ? plan_sequences(module, data, anchor.options(), groups.context)
                       : SequencePlan{},
            inputs,
            options.input_edges,
            own,
            module.experts > 0 && has_blocks ? plan_balance(module, data, groups.context.index())
                                             : BalancePlan{},
            choices};
  }

  Tensor run(Tape& tape) {
    const Frame now = frame(tape.inputs, tape.data, tape.queue, tape.choices);
    Tensor x = tape.inputs.empty() ? Tensor() : tape.inputs.front();
    for (const Layer& layer : layers) x = run_layer(now, layer, x);
    return x;
  }

  Tensor forward(std::uint64_t work, const std::vector<Tensor>& inputs, const WorkInput& data) {
    POLYPHONY_CHECK(tapes.count(work) == 0,
                    module.name << ": work " << work << " is already in flight");
    const bool graph = keeps_tape() && !options.recompute;
    const torch::AutoGradMode grad_mode(graph);
    Tape tape{{}, data, {}, std::make_shared<WeightQueue>(), {}};
    for (const Tensor& input : inputs)
      tape.inputs.push_back(input.defined()
                                ? input.detach().requires_grad_(options.input_grad && keeps_tape())
                                : Tensor());
    const Tensor output = run(tape);
    if (graph) tape.output = output;
    if (keeps_tape()) tapes.emplace(work, std::move(tape));
    return output.detach();
  }

  void rebuild(Tape& tape) {
    const torch::AutoGradMode grad_mode(true);
    tape.output = run(tape);
  }

  // The graph from output to input; weight parts run at once or stay queued.
  std::vector<Tensor> backward(Tape& tape, const Tensor& output_grad, bool immediate) {
    if (!tape.output.defined()) rebuild(tape);
    const Tensor output = std::exchange(tape.output, Tensor());
    const Tensor seed = output_grad.defined() ? output_grad : torch::ones_like(output);
    POLYPHONY_CHECK(seed.sizes() == output.sizes(), seed.sizes()
                                                        << " for an output of " << output.sizes());
    tape.queue->immediate = immediate;
    if (output.requires_grad()) torch::autograd::backward({output}, {seed});
    std::vector<Tensor> gradients;
    for (const Tensor& input : tape.inputs) {
      gradients.emplace_back();
      if (!input.defined() || !input.requires_grad()) continue;
      gradients.back() = input.grad().defined() ? input.grad() : torch::zeros_like(input);
    }
    return gradients;
  }

  Tape& tape_of(std::uint64_t work) {
    const auto found = tapes.find(work);
    POLYPHONY_CHECK(found != tapes.end(), module.name << ": work " << work << " has no tape");
    return found->second;
  }

  Module module;
  ChunkOptions options;
  InnerGroups groups;
  std::vector<LocalParameter> parameters;
  std::vector<Layer> layers;
  bool has_blocks = false;
  Tensor anchor;
  std::map<std::uint64_t, Tape> tapes;
};

Chunk::Chunk(const Module& module, LayerRange layers, const Communicators& communicators,
             const ShardIndex& shard, const ChunkOptions& options)
    : impl_(std::make_unique<Impl>(module, layers, communicators, shard, options)) {}
Chunk::~Chunk() = default;

Tensor Chunk::forward(std::uint64_t work, const std::vector<Tensor>& inputs,
                      const WorkInput& data) {
  return impl_->forward(work, inputs, data);
}

void Chunk::rebuild(std::uint64_t work) { impl_->rebuild(impl_->tape_of(work)); }

std::vector<Tensor> Chunk::backward(std::uint64_t work, const Tensor& output_grad) {
  std::vector<Tensor> gradients = impl_->backward(impl_->tape_of(work), output_grad, true);
  impl_->tapes.erase(work);
  return gradients;
}

std::vector<Tensor> Chunk::backward_input(std::uint64_t work, const Tensor& output_grad) {
  Tape& tape = impl_->tape_of(work);
  std::vector<Tensor> gradients = impl_->backward(tape, output_grad, false);
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

Tensor Chunk::predict(const std::vector<Tensor>& inputs, const WorkInput& data) {
  POLYPHONY_CHECK(!impl_->layers.empty() && impl_->layers.back().kind == LayerKind::language_head,
                  impl_->module.name << ": predict() without the head");
  const torch::NoGradGuard no_grad;
  Choices choices;
  const Frame frame = impl_->frame(inputs, data, std::make_shared<WeightQueue>(), choices);
  Tensor x = inputs.empty() ? Tensor() : inputs.front();
  for (std::size_t i = 0; i + 1 < impl_->layers.size(); ++i)
    x = run_layer(frame, impl_->layers[i], x);
  return predict_layer(frame, impl_->layers.back(), x);
}

std::vector<LocalParameter>& Chunk::parameters() { return impl_->parameters; }
std::vector<InnerCollective> Chunk::take_issued() { return impl_->groups.take_issued(); }

}  // namespace polyphony::exec

#include "exec/step_data.h"

#include "exec/chunk_set.h"

namespace polyphony::exec {

namespace {

void move_to(torch::Device device, WorkInput& input) {
  const auto move = [&](torch::Tensor& tensor) {
    if (tensor.defined()) tensor = tensor.to(device);
  };
  move(input.patches);
  move(input.token_ids);
  move(input.text_rows);
  for (auto& [edge, rows] : input.edge_rows) move(rows);
  move(input.positions);
  move(input.loss_rows);
  move(input.labels);
  move(input.context_samples);
  move(input.context_positions);
}

}  // namespace

std::map<WorkId, WorkInput> pack_inputs(const Program& program, Rank rank, const Dataset& dataset,
                                        torch::Device device) {
  const torch::Dtype dtype =
      torch_dtype(program.precision);
  struct Wants {
    bool images = false, text = false;
  };
  std::map<WorkId, Wants> wanted;
  const Range ops = program.rank_ops[rank.value];
  for (std::uint32_t i = ops.begin; i < ops.end; ++i) {
    const auto* what = std::get_if<Compute>(&program.ops[i].what);
    if (!what || what->phase != Phase::forward) continue;
    const ModuleKind kind = program.model.modules[what->module.value].kind;
    Wants& wants = wanted[what->work];
    wants.images |= kind == ModuleKind::vision && what->layers.begin == 0;
    wants.text |= kind == ModuleKind::language;
  }
  std::map<WorkId, WorkInput> inputs;
  for (const auto& [work, wants] : wanted)
    move_to(device,
            inputs.emplace(work, pack_work(program, work, dataset, dtype, wants.images, wants.text))
                .first->second);
  return inputs;
}

StepLoader::~StepLoader() {
  if (ahead_.valid()) ahead_.wait();
}

StepData StepLoader::load(std::uint64_t step) const {
  StepData data{step, lower(scenario_, layout_, plan_, dataset_.batch(step)), {}};
  data.inputs = pack_inputs(data.program, rank_, dataset_, device_);
  return data;
}

StepData StepLoader::take(std::uint64_t step) {
  StepData data = ahead_.valid() && ahead_step_ == step ? ahead_.get() : load(step);
  ahead_step_ = step + 1;
  ahead_ = std::async(std::launch::async, [this, step] { return load(step + 1); });
  return data;
}

}  // namespace polyphony::exec

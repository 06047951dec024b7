#include "exec/autograd/recompute.h"

#include <utility>

#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Rebuilt::Rebuilt(Part part, const std::vector<Tensor>& inputs) : part_(std::move(part)) {
  for (const Tensor& input : inputs)
    inputs_.push_back(input.detach().requires_grad_(input.requires_grad()));
}

void Rebuilt::rebuild() {
  if (output_.defined()) return;
  POLYPHONY_CHECK(part_ != nullptr, "a recomputed part was used after its backward pass");
  const torch::AutoGradMode grad_mode(true);
  leaves_ = std::move(inputs_);
  output_ = std::exchange(part_, nullptr)(leaves_);
}

Tensor Rebuilt::output() {
  rebuild();
  return output_.detach();
}

std::vector<Tensor> Rebuilt::gradients(const Tensor& output_grad) {
  rebuild();
  torch::autograd::backward({std::exchange(output_, Tensor())}, {output_grad});
  std::vector<Tensor> gradients;
  for (const Tensor& leaf : leaves_) gradients.push_back(leaf.grad());
  leaves_.clear();
  return gradients;
}

class RebuiltFunction : public torch::autograd::Function<RebuiltFunction> {
 public:
  static Tensor forward(AutogradContext* context, at::TensorList /*inputs*/,
                        const Tensor& /*anchor*/, const c10::intrusive_ptr<Rebuilt>& again) {
    context->saved_data["again"] = c10::IValue::make_capsule(again);
    return again->part_(again->inputs_);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto again =
        c10::static_intrusive_pointer_cast<Rebuilt>(context->saved_data["again"].toCapsule());
    variable_list all = again->gradients(gradients[0]);
    all.resize(all.size() + 2);  // anchor, again
    return all;
  }
};

Recomputed recomputed(const Tensor& anchor, const std::vector<Tensor>& inputs, Rebuilt::Part part) {
  if (!at::GradMode::is_enabled()) return {part(inputs), {}};
  auto again = c10::make_intrusive<Rebuilt>(std::move(part), inputs);
  return {RebuiltFunction::apply(at::TensorList(inputs), anchor, again), again};
}

}  // namespace polyphony::exec

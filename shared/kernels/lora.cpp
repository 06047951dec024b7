#include "shared/kernels/lora.h"

#include <cmath>
#include <string_view>

namespace polyphony {
namespace {

constexpr std::string_view kWeight = ".weight";

}  // namespace

std::vector<Parameter> with_low_rank(const Module& module, std::vector<Parameter> list) {
  if (module.trainable != Trainable::lora) {
    for (Parameter& parameter : list) parameter.trained &= module.trainable == Trainable::full;
    return list;
  }
  std::vector<Parameter> out;
  for (Parameter& base : list) {
    base.trained = false;
    out.push_back(base);
    if (!base.adapted) continue;
    const std::string layer = base.name.substr(0, base.name.size() - kWeight.size());
    const bool by_columns = base.cut == Cut::columns;
    Parameter a = base, b = base;
    a.name = layer + ".lora_a";
    a.shape = {module.lora_rank, base.shape[1]};
    a.cut = by_columns ? Cut::columns : Cut::replicated;
    a.key_value_heads = a.group_heads = a.head_dim = 0;
    a.deviation = 1 / std::sqrt(static_cast<double>(base.shape[1]));
    b.name = layer + ".lora_b";
    b.shape = {base.shape[0], module.lora_rank};
    if (by_columns) b.cut = Cut::replicated;
    b.initial = Initial::zeros;
    b.deviation = 0;
    b.role = Role::low_rank;
    b.input = Input::whole;
    b.held_width = 0;
    for (Parameter* parameter : {&a, &b}) {
      parameter->adapted = false;
      parameter->trained = true;
      // Every rank sees all features of a replicated matrix: partial sums under sequence
      // parallelism.
      parameter->partial = base.cut == Cut::replicated ? Partial::sequence : Partial::always;
      out.push_back(*parameter);
    }
  }
  return out;
}

bool is_low_rank(std::string_view parameter) {
  return parameter.ends_with(".lora_a") || parameter.ends_with(".lora_b");
}

double low_rank_scale(const Module& module) {
  return module.lora_alpha > 0 ? module.lora_alpha / module.lora_rank : 1.0;
}

}  // namespace polyphony

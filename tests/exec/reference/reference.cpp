#include "tests/exec/reference/reference.h"

#include <algorithm>
#include <cmath>

#include "exec/data/latents.h"
#include "exec/parameters/init.h"
#include "shared/chunk/parameters.h"
#include "shared/program/work.h"
#include "shared/scenario/learning_rate.h"
#include "tests/exec/reference/reference_diffusion.h"
#include "tests/exec/reference/reference_model.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

const auto kWide = torch::TensorOptions(torch::kFloat64);

}  // namespace

Reference::Reference(const Scenario& scenario, torch::Dtype start)
    : model_(scenario.model), training_(scenario.training) {
  for (std::size_t m = 0; m < model_.modules.size(); ++m) {
    for (const Parameter& parameter : polyphony::parameters(model_.modules[m])) {
      const std::string& name = parameter.name;
      factors_[name] = rate_factor(training_, ModuleId(m));
      values_[name] = initial_value(parameter, {}, training_.seed, start, true).to(kWide);
      if (!parameter.trained) continue;
      trained_.insert(name);
      if (parameter.decay) decayed_.insert(name);
      first_[name] = torch::zeros_like(values_[name]);
      second_[name] = torch::zeros_like(values_[name]);
    }
  }
}

// The weighted mean squared error of one sample's latents, by the elements of the whole batch. Each
// reads the hidden states since the previous latent; the last one also those after it.
Tensor Reference::flow_loss(const Sample& sample, const SampleContent& content,
                            const Tensor& hidden, const Tensors& leaves, const Batch& batch,
                            Draw draw) const {
  const Module& m = *std::find_if(model_.modules.begin(), model_.modules.end(),
                                  [](const Module& e) { return e.kind == ModuleKind::diffusion; });
  Tensor sum = torch::zeros({}, kWide);
  std::size_t latent = 0;
  std::int64_t begin = 0, end = 0;
  for (std::uint32_t i = 0; i < sample.items.size(); ++i) {
    if (sample.items[i].modality != Modality::latent) {
      end += language_rows(model_, sample.items[i]);
      continue;
    }
    const bool last = latent + 1 == content.latents.size();
    const Tensor read = hidden.slice(0, begin, last ? hidden.size(0) : end);
    begin = end;
    const ItemKey key{sample.id, i};
    const std::int64_t tokens = sample.items[i].tokens;
    sum = sum + reference_flow_error(m, leaves,
                                     {content.latents.at(latent++).to(kWide),
                                      flow_noise(draw, key, tokens, latent_width(m)).to(kWide),
                                      flow_time(draw, key), read});
  }
  return sum * (m.loss_weight / static_cast<double>(latent_elements(m, totals_of(batch))));
}

ReferenceStep Reference::step(const Batch& batch, const Dataset& dataset, double rate, Draw draw) {
  ReferenceStep result;
  std::int64_t labels = 0;
  for (const Sample& sample : batch.samples)
    for (const Item& item : sample.items) labels += item.loss_tokens;
  Tensors leaves;
  for (const auto& [name, value] : values_) leaves[name] = value.clone().requires_grad_(true);
  SampleModel network(model_, leaves);
  const bool balanced = std::any_of(model_.modules.begin(), model_.modules.end(),
                                    [](const Module& m) { return m.balance_weight > 0; });
  for (const Sample& sample : batch.samples) {
    const SampleContent content = dataset.content(sample, {});
    const bool flows = !content.latents.empty();
    if (content.labels.empty() && !balanced && !flows) continue;  // adds nothing
    const Tensor loss =
        torch::nll_loss(torch::log_softmax(network.logits(sample, content), 1),
                        torch::tensor(content.labels, torch::kInt64), {}, at::Reduction::Sum) /
        static_cast<double>(labels);
    const Tensor flow = flows ? flow_loss(sample, content, network.hidden(), leaves, batch, draw)
                              : torch::zeros({}, kWide);
    (loss + flow + network.balance() / static_cast<double>(batch.samples.size())).backward();
    result.loss += loss.item<double>() + flow.item<double>();
  }
  double squares = 0;
  for (const std::string& name : trained_) {
    const Tensor& gradient = leaves[name].grad();
    result.gradients[name] = gradient.defined() ? gradient : torch::zeros_like(values_[name]);
    squares += result.gradients[name].pow(2).sum().item<double>();
  }
  result.gradient_norm = std::sqrt(squares);
  if (training_.clip_norm > 0)
    result.clip = std::min(1.0, training_.clip_norm / (result.gradient_norm + 1e-6));
  ++steps_;
  for (const std::string& name : trained_) {
    const Tensor gradient = result.gradients[name] * result.clip;
    first_[name] = training_.beta1 * first_[name] + (1 - training_.beta1) * gradient;
    second_[name] = training_.beta2 * second_[name] + (1 - training_.beta2) * gradient * gradient;
    const Tensor mean = first_[name] / (1 - std::pow(training_.beta1, steps_));
    const Tensor spread = torch::sqrt(second_[name] / (1 - std::pow(training_.beta2, steps_)));
    const double decay = decayed_.count(name) ? training_.weight_decay : 0.0;
    const double own = rate * factors_[name];
    values_[name] = values_[name] * (1 - own * decay) - own * mean / (spread + training_.epsilon);
  }
  for (const auto& [name, value] : values_) result.parameters[name] = value.clone();
  return result;
}

std::vector<Answer> Reference::predict(const Sample& sample, const Dataset& dataset) const {
  const torch::NoGradGuard no_grad;
  const SampleContent content = dataset.content(sample, {});
  if (content.labels.empty()) return {};
  const Tensor logits = SampleModel(model_, values_).logits(sample, content);
  const Tensor best = logits.argmax(1), shares = torch::log_softmax(logits, 1);
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < content.labels.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    answers.push_back(
        {best[row].item<std::int64_t>(), -shares[row][content.labels[i]].item<double>()});
  }
  return answers;
}

}  // namespace polyphony::exec::testing

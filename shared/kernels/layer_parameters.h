// Lists the parameters of one layer, all under "<module>.<layer>.": what each kind of layer is
// written with (shared/chunk/parameters.h has what the entries mean).
#pragma once

#include <cmath>

#include "shared/kernels/parameter.h"

namespace polyphony {

// Initial deviations. Matrices keep the variance of what passes: 1/√(inputs) (LeCun et al.,
// "Efficient BackProp", 1998, §4.6). Tokens enter with variance 1, as T5's do (Raffel et al., arXiv
// 1910.10683); positions are a small addition, 0.02 (Dosovitskiy et al., arXiv 2010.11929).
inline constexpr double kTokenDeviation = 1.0;
inline constexpr double kPositionDeviation = 0.02;

class LayerParameters {
 public:
  // Of layer `layer` of the stack, in a list that begins with layer `first`.
  LayerParameters(std::vector<Parameter>& out, const Module& module, int layer, int first)
      : out_(out), module_(module), prefix_(module.name + "."), layer_(layer), first_(first) {}
  LayerParameters under(const std::string& name) const {
    LayerParameters inner = *this;
    inner.prefix_ += name + ".";
    return inner;
  }
  Parameter& last() { return out_.back(); }  // for what else is to be said of it
  const Module& module() const { return module_; }
  int layer() const { return layer_; }
  int first() const { return first_; }

  // Each returns the entry, for what else is to be said of it.
  Parameter& matrix(const std::string& suffix, std::int64_t rows, std::int64_t columns, Cut cut,
                    Rows met = Rows::tokens) {
    const double deviation = 1 / std::sqrt(static_cast<double>(columns));
    return add({.name = prefix_ + suffix,
                .layer = layer_,
                .shape = {rows, columns},
                .role = Role::matrix,
                .rows = met,
                .cut = cut,
                .deviation = deviation,
                .decay = true});
  }
  void matrix_and_bias(const std::string& name, std::int64_t rows, std::int64_t columns, Cut cut,
                       bool bias, Rows met = Rows::tokens) {
    matrix(name + ".weight", rows, columns, cut, met);
    if (bias)
      vector(name + ".bias", rows, cut == Cut::rows ? cut : Cut::replicated, Initial::zeros);
  }
  // A matrix that LoRA puts a pair beside.
  void adapted(const std::string& name, std::int64_t rows, std::int64_t columns, Cut cut, bool bias,
               Rows met = Rows::tokens) {
    matrix(name + ".weight", rows, columns, cut, met).adapted = true;
    if (bias)
      vector(name + ".bias", rows, cut == Cut::rows ? cut : Cut::replicated, Initial::zeros);
  }
  // The matrix that what attention makes passes.
  void attention_out(std::int64_t width, bool bias) {
    matrix("out.weight", module_.hidden, width, Cut::columns).adapted = true;
    out_.back().after_attention = true;
    if (bias) vector("out.bias", module_.hidden, Cut::replicated, Initial::zeros);
  }
  // One matrix per expert, or one vector.
  void experts(const std::string& suffix, std::int64_t rows, std::int64_t columns, Cut cut) {
    of_experts(matrix(suffix, rows, columns, cut, Rows::slots));
  }
  Parameter& expert_bias(const std::string& suffix, std::int64_t size, Cut cut) {
    Parameter& bias = vector(suffix, size, cut, Initial::zeros);
    of_experts(bias);
    return bias;
  }
  Parameter& table(const std::string& suffix, std::int64_t rows, std::int64_t columns, Cut cut,
                   double deviation, Rows met) {  // embeddings: no decay
    return add({.name = prefix_ + suffix,
                .layer = layer_,
                .shape = {rows, columns},
                .role = Role::table,
                .rows = met,
                .cut = cut,
                .deviation = deviation});
  }
  void zero_matrix(const std::string& suffix, std::int64_t rows, std::int64_t columns, Rows met) {
    Parameter& matrix_of = matrix(suffix, rows, columns, Cut::replicated, met);
    matrix_of.initial = Initial::zeros;
    matrix_of.deviation = 0;
  }
  Parameter& vector(const std::string& suffix, std::int64_t size, Cut cut, Initial initial) {
    return add({.name = prefix_ + suffix,
                .layer = layer_,
                .shape = {size},
                .cut = cut,
                .initial = initial});
  }
  // Over rows of `width` features.
  void norm(const std::string& name, std::int64_t width, bool bias, Rows met = Rows::own) {
    Parameter& weight = vector(name + ".weight", width, Cut::replicated, Initial::ones);
    weight.role = Role::norm;
    weight.rows = met;
    if (bias) vector(name + ".bias", width, Cut::replicated, Initial::zeros);
  }
  // As the module's rows are normed.
  void norm(const std::string& name, Rows met = Rows::own) {
    norm(name, module_.hidden, module_.norm == Norm::layer, met);
  }
  // One weight for all heads: every tensor-parallel rank sees its own heads only.
  Parameter& head_norm(const std::string& name, int head_dim) {
    Parameter& weight = vector(name + ".weight", head_dim, Cut::replicated, Initial::ones);
    weight.partial = Partial::always;
    return weight;
  }

 private:
  Parameter& add(Parameter parameter) {
    out_.push_back(std::move(parameter));
    return out_.back();
  }
  void of_experts(Parameter& parameter) {
    parameter.shape.insert(parameter.shape.begin(), module_.experts);
    parameter.expert = true;
  }

  std::vector<Parameter>& out_;
  const Module& module_;
  std::string prefix_;
  int layer_;
  int first_;
};

}  // namespace polyphony

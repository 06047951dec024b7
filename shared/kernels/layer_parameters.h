// Builds the parameter list of one layer: the functions that each layer kind uses to declare its
// parameters, all named "<module>.<layer>.…". shared/kernels/parameter.h explains the entries.
#pragma once

#include <cmath>

#include "shared/kernels/parameter.h"

namespace polyphony {

// Standard deviations of initial values. Matrices preserve the variance of their input: 1/√(inputs)
// (LeCun et al., "Efficient BackProp", 1998, §4.6). Token embeddings have variance 1, as in T5
// (Raffel et al., arXiv 1910.10683); position embeddings are a small addition, 0.02 (Dosovitskiy et
// al., arXiv 2010.11929).
inline constexpr double kTokenDeviation = 1.0;
inline constexpr double kPositionDeviation = 0.02;

class LayerParameters {
 public:
  // Appends to `out` the parameters of layer `layer` of the stack; the list begins with the layer
  // `first`.
  LayerParameters(std::vector<Parameter>& out, const Module& module, int layer, int first)
      : out_(out), module_(module), prefix_(module.name + "."), layer_(layer), first_(first) {}
  LayerParameters under(const std::string& name) const {
    LayerParameters inner = *this;
    inner.prefix_ += name + ".";
    return inner;
  }
  Parameter& last() { return out_.back(); }  // to set its other fields
  const Module& module() const { return module_; }
  int layer() const { return layer_; }
  int first() const { return first_; }

  // The functions below append an entry. Those that return it let the caller set its other fields.
  // `met` is the set of activation rows that the parameter is applied to.
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
  // A matrix that LoRA adds a low-rank pair to.
  void adapted(const std::string& name, std::int64_t rows, std::int64_t columns, Cut cut, bool bias,
               Rows met = Rows::tokens) {
    matrix(name + ".weight", rows, columns, cut, met).adapted = true;
    if (bias)
      vector(name + ".bias", rows, cut == Cut::rows ? cut : Cut::replicated, Initial::zeros);
  }
  // The output projection of attention.
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
  // A norm over rows of `width` features.
  void norm(const std::string& name, std::int64_t width, bool bias, Rows met = Rows::own) {
    Parameter& weight = vector(name + ".weight", width, Cut::replicated, Initial::ones);
    weight.role = Role::norm;
    weight.rows = met;
    if (bias) vector(name + ".bias", width, Cut::replicated, Initial::zeros);
  }
  // A norm over hidden rows, of the module's kind (LayerNorm or RMSNorm).
  void norm(const std::string& name, Rows met = Rows::own) {
    norm(name, module_.hidden, module_.norm == Norm::layer, met);
  }
  // The vector that the output of a block's part is multiplied by (Module::layer_scale).
  void scale(const std::string& name) {
    Parameter& weight =
        vector(name + ".weight", module_.hidden, Cut::replicated, Initial::constant);
    weight.constant = module_.layer_scale;
    weight.role = Role::itself;
    weight.rows = Rows::own;
  }
  // A norm weight that all heads share. Every tensor-parallel rank sees its own heads only, so its
  // gradient is always a partial sum.
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

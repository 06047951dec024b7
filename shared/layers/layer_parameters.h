// Lists the parameters of one layer, all under "<module>.<layer>.": what each kind of layer is
// written with (shared/layers/parameters.h has what the entries mean).
#pragma once

#include <cmath>

#include "shared/layers/parameters.h"

namespace polyphony {

// Initial deviations. Matrices keep the variance of what passes: 1/√(inputs) (LeCun et al.,
// "Efficient BackProp", 1998, §4.6). Tokens enter with variance 1, as T5's do (Raffel et al., arXiv
// 1910.10683); positions are a small addition, 0.02 (Dosovitskiy et al., arXiv 2010.11929).
inline constexpr double kTokenDeviation = 1.0;
inline constexpr double kPositionDeviation = 0.02;

// Adds the parameters of one layer, all under "<module>.<layer>.".
class LayerParameters {
 public:
  LayerParameters(std::vector<Parameter>& out, std::string prefix, int layer)
      : out_(out), prefix_(std::move(prefix)), layer_(layer) {}

  void matrix(const std::string& suffix, std::int64_t rows, std::int64_t columns, Cut cut) {
    const double deviation = 1 / std::sqrt(static_cast<double>(columns));
    out_.push_back(
        {prefix_ + suffix, layer_, {rows, columns}, cut, Initial::normal, deviation, true});
  }
  void matrix_and_bias(const std::string& name, std::int64_t rows, std::int64_t columns, Cut cut,
                       bool bias) {
    matrix(name + ".weight", rows, columns, cut);
    if (bias)
      vector(name + ".bias", rows, cut == Cut::rows ? cut : Cut::replicated, Initial::zeros);
  }
  // Rows laid out per key/value head (Cut::heads); `columns` 0: a bias.
  void fused(const std::string& suffix, const Module& m, std::int64_t columns) {
    const int queries = (m.attention_gate ? 2 : 1) * m.heads;
    const std::int64_t rows = (std::int64_t{queries} + 2 * m.kv_heads) * m.head_dim;
    if (columns > 0)
      matrix(suffix, rows, columns, Cut::heads);
    else
      vector(suffix, rows, Cut::heads, Initial::zeros);
    out_.back().key_value_heads = m.kv_heads;
    out_.back().group_heads = queries / m.kv_heads;
    out_.back().head_dim = m.head_dim;
  }
  // One matrix per expert.
  void experts(const std::string& suffix, const Module& m, std::int64_t rows, std::int64_t columns,
               Cut cut) {
    matrix(suffix, rows, columns, cut);
    out_.back().shape.insert(out_.back().shape.begin(), m.experts);
    out_.back().expert = true;
  }
  // A vector per expert; dimension 0 counts experts, `cut` is of the next one.
  void expert_bias(const std::string& suffix, const Module& m, std::int64_t size, Cut cut) {
    vector(suffix, size, cut, Initial::zeros);
    out_.back().shape.insert(out_.back().shape.begin(), m.experts);
    out_.back().expert = true;
  }
  void table(const std::string& suffix, std::int64_t rows, std::int64_t columns, Cut cut,
             double deviation) {  // embeddings: no decay
    out_.push_back(
        {prefix_ + suffix, layer_, {rows, columns}, cut, Initial::normal, deviation, false});
  }
  void zero_matrix(const std::string& suffix, std::int64_t rows, std::int64_t columns) {
    out_.push_back(
        {prefix_ + suffix, layer_, {rows, columns}, Cut::replicated, Initial::zeros, 0.0, true});
  }
  void vector(const std::string& suffix, std::int64_t size, Cut cut, Initial initial) {
    out_.push_back({prefix_ + suffix, layer_, {size}, cut, initial, 0.0, false});
  }
  void norm(const std::string& name, const Module& m) {
    vector(name + ".weight", m.hidden, Cut::replicated, Initial::ones);
    if (m.norm == Norm::layer) vector(name + ".bias", m.hidden, Cut::replicated, Initial::zeros);
  }
  // One weight for all heads: every tensor-parallel rank sees its own heads only.
  void head_norm(const std::string& name, int head_dim) {
    vector(name + ".weight", head_dim, Cut::replicated, Initial::ones);
    out_.back().partial = Partial::always;
  }

 private:
  std::vector<Parameter>& out_;
  std::string prefix_;
  int layer_;
};

}  // namespace polyphony

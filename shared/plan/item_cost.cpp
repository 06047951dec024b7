#include "shared/plan/item_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "shared/layers/expand_layer.h"
#include "shared/program/work.h"

namespace polyphony {
namespace {

using Parts = std::array<double, 3>;  // of 1, x, x²

// The parts named by `bits` that fit best, by Gaussian elimination of the normal equations; others are 0.
// Nothing where they are not determined.
std::optional<Parts> solve(const std::vector<Parts>& rows, unsigned bits) {
  std::vector<std::size_t> used;
  for (std::size_t p = 0; p < 3; ++p)
    if (bits >> p & 1) used.push_back(p);
  const std::size_t n = used.size();
  std::array<std::array<double, 4>, 3> m{};
  for (const Parts& row : rows)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) m[i][j] += row[used[i]] * row[used[j]];
      m[i][n] += row[used[i]];  // every row is wanted to come to 1
    }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r)
      if (std::abs(m[r][i]) > std::abs(m[pivot][i])) pivot = r;
    constexpr double kSingular = 1e-12;  // columns are of order one
    if (std::abs(m[pivot][i]) < kSingular) return {};
    std::swap(m[i], m[pivot]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = m[r][i] / m[i][i];
      for (std::size_t c = i; c <= n; ++c) m[r][c] -= factor * m[i][c];
    }
  }
  Parts parts{};
  for (std::size_t i = 0; i < n; ++i) parts[used[i]] = m[i][n] / m[i][i];
  return parts;
}

double misfit(const std::vector<Parts>& rows, const Parts& parts) {
  double sum = 0;
  for (const Parts& row : rows) {
    const double error = row[0] * parts[0] + row[1] * parts[1] + row[2] * parts[2] - 1;
    sum += error * error;
  }
  return sum;
}

// Five of those that there are (not every number of tokens is an image's), about as far apart in ratio.
std::vector<std::int32_t> some_of(const std::set<std::int32_t>& all) {
  constexpr int kSizes = 5;
  const double least = *all.begin(), most = *all.rbegin();
  std::set<std::int32_t> sizes;
  for (int i = 0; i < kSizes; ++i) {
    const double wanted = least * std::pow(most / least, static_cast<double>(i) / (kSizes - 1));
    const auto next = all.lower_bound(static_cast<std::int32_t>(std::lround(wanted)));
    sizes.insert(next == all.end() ? *all.rbegin() : *next);
  }
  return {sizes.begin(), sizes.end()};
}

// The modality that a module takes.
Modality modality_of(const Model& model, ModuleId module) {
  for (const Modality of : {Modality::image, Modality::audio, Modality::video, Modality::latent})
    if (takes(model, module, of)) return of;
  return Modality::text;
}

// Of a module and of the projectors that read from it.
double price_of(const Model& model, ModuleId module, const Item& item, const WorkPrice& price) {
  const Batch batch{{Sample{0, {item}}}};
  const std::uint32_t first = 0;
  double sum = 0;
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (grid_owner(model, ModuleId(m)) == module)
      sum += price(ModuleId(m), work_size(model, ModuleId(m), batch, &first, 1));
  return sum;
}

ItemCost fit_at(const Model& model, ModuleId module, const std::vector<std::int32_t>& sizes,
                const WorkPrice& price) {
  const Modality modality = modality_of(model, module);
  std::vector<std::pair<double, double>> points;
  for (const std::int32_t tokens : sizes) {
    const Item item{modality, tokens, modality == Modality::text ? tokens : 0};
    const double of = price_of(model, module, item, price);
    if (of > 0) points.emplace_back(tokens, of);
  }
  return points.empty() ? ItemCost{.linear = 1} : fit_item_cost(points);  // for nothing: by tokens
}

// Rows of an encoder's items come in multiples of this many.
std::int32_t whole_rows(const Model& model, ModuleId module) {
  std::int32_t rows = 1;
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind == ModuleKind::projector && grid_owner(model, ModuleId(m)) == module)
      rows = std::max(rows, merged_rows(model.modules[m]));
  return rows;
}

}  // namespace

ItemCost fit_item_cost(const std::vector<std::pair<double, double>>& points) {
  double largest = 0;
  for (const auto& [tokens, price] : points) largest = std::max(largest, tokens);
  std::vector<Parts> rows;  // of tokens in units of the largest, over the price in units of its own
  double scale = 0;
  for (const auto& [tokens, price] : points) scale = std::max(scale, price);
  for (const auto& [tokens, price] : points) {
    const double x = tokens / largest, relative = scale / price;
    rows.push_back({relative, x * relative, x * x * relative});
  }
  Parts best{};
  double least = std::numeric_limits<double>::infinity();
  for (const unsigned bits :
       {2u, 4u, 6u, 1u, 3u, 5u, 7u}) {  // of equal fits the one that is linear
    const auto parts = solve(rows, bits);
    if (!parts || *std::min_element(parts->begin(), parts->end()) < 0) continue;
    const double of = misfit(rows, *parts);
    constexpr double kBetter = 1e-18;  // squares of relative errors
    if (of < least - kBetter) least = of, best = *parts;
  }
  return {best[2] * scale / (largest * largest), best[1] * scale / largest, best[0] * scale};
}

ItemCost fit_item_cost(const Model& model, ModuleId module, const Batch& batch,
                       const WorkPrice& price) {
  const bool language = module == language_module(model);
  const Modality modality = modality_of(model, module);
  std::set<std::int32_t> all;
  const auto add = [&](std::int64_t tokens) {
    if (tokens > 0) all.insert(static_cast<std::int32_t>(tokens));
  };
  for (const Sample& sample : batch.samples) {
    if (language) add(language_rows(model, sample));
    for (const Item& item : sample.items)
      if (!language && item.modality == modality) add(item.tokens);
  }
  if (all.empty()) return {};  // nothing to weigh
  return fit_at(model, module, some_of(all), price);
}

ItemCost item_flops(const Scenario& scenario, ModuleId id) {
  const Model& model = scenario.model;
  const auto price = [&](ModuleId module, const WorkSize& size) {
    const Module& of = model.modules[module.value];
    const LayerRange stack{0, static_cast<std::uint16_t>(layers(of).size())};
    const ChunkContext context =
        chunk_context(model, module, 0, ModuleLayout{}, scenario.training.precision);
    double sum = 0;
    for (int layer = 0; layer < stack.end; ++layer) {
      sum += total_flops(expand_layer(of, stack, layer, Phase::forward, size, context)).value;
      if (needs_backward(model, module))
        sum += total_flops(expand_layer(of, stack, layer, Phase::backward, size, context)).value;
    }
    return sum;
  };
  const std::int32_t whole = whole_rows(model, id);
  return fit_at(model, id, {16 * whole, 64 * whole, 256 * whole}, price);
}

}  // namespace polyphony

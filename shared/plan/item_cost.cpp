#include "shared/plan/item_cost.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "shared/chunk/expand_layer.h"
#include "shared/plan/work_curve.h"
#include "shared/program/work.h"

namespace polyphony {
namespace {

// An item of each size, in tokens.
using BySize = std::map<std::int32_t, Item>;

// Returns items of five of the sizes that occur (not every number of tokens is an image's), spaced
// about evenly in ratio.
std::vector<Item> some_of(const BySize& all) {
  constexpr int kSizes = 5;
  const double least = all.begin()->first, most = all.rbegin()->first;
  BySize some;
  for (int i = 0; i < kSizes; ++i) {
    const double wanted = least * std::pow(most / least, static_cast<double>(i) / (kSizes - 1));
    const auto next = all.lower_bound(static_cast<std::int32_t>(std::lround(wanted)));
    some.insert(next == all.end() ? *all.rbegin() : *next);
  }
  std::vector<Item> items;
  for (const auto& [tokens, item] : some) items.push_back(item);
  return items;
}

// Returns the modality that a module reads.
Modality modality_of(const Model& model, ModuleId module) {
  for (const Modality of : {Modality::image, Modality::audio, Modality::video, Modality::latent})
    if (takes(model, module, of)) return of;
  return Modality::text;
}

// Returns the price of a module and of the projectors that read from it, for one item.
double price_of(const Model& model, ModuleId module, const Item& item, const WorkPrice& price) {
  const Batch batch{{Sample{0, {item}}}};
  const std::uint32_t first = 0;
  double sum = 0;
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (grid_owner(model, ModuleId(m)) == module)
      sum += price(ModuleId(m), work_size(model, ModuleId(m), batch, &first, 1));
  return sum;
}

// Returns the item of a modality that has so many tokens; an image is a square.
Item plain_item(Modality modality, std::int32_t tokens) {
  return {modality, tokens, modality == Modality::text ? tokens : 0};
}

ItemCost fit_at(const Model& model, ModuleId module, const std::vector<Item>& items,
                const WorkPrice& price) {
  std::vector<std::pair<double, double>> points;
  for (const Item& item : items) {
    const double of = price_of(model, module, item, price);
    if (of > 0) points.emplace_back(item.tokens, of);
  }
  return points.empty() ? ItemCost{.linear = 1} : fit_item_cost(points);  // free: by tokens
}

// Returns the number that the rows of an encoder's items are a multiple of.
std::int32_t whole_rows(const Model& model, ModuleId module) {
  std::int32_t rows = 1;
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind == ModuleKind::projector && grid_owner(model, ModuleId(m)) == module)
      rows = std::max(rows, merged_rows(model.modules[m]));
  return rows;
}

}  // namespace

ItemCost fit_item_cost(const std::vector<std::pair<double, double>>& points) {
  std::vector<CurvePoint> list;
  for (const auto& [tokens, price] : points) list.push_back({tokens, tokens * tokens, price});
  const WorkCurve curve = fit_curve(list);
  return {curve.square, curve.linear, curve.constant};
}

ItemCost fit_item_cost(const Model& model, ModuleId module, const Batch& batch,
                       const WorkPrice& price) {
  const bool language = module == language_module(model);
  const Modality modality = modality_of(model, module);
  BySize all;
  const auto add = [&](const Item& item) {
    if (item.tokens > 0) all.emplace(item.tokens, item);
  };
  for (const Sample& sample : batch.samples) {
    if (language)
      add(plain_item(modality, static_cast<std::int32_t>(language_rows(model, sample))));
    for (const Item& item : sample.items)
      if (!language && item.modality == modality) add(item);
  }
  if (all.empty()) return {};  // no items
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
  std::vector<Item> items;
  for (const std::int32_t cells : {16, 64, 256})
    items.push_back(plain_item(modality_of(model, id), cells * whole_rows(model, id)));
  return fit_at(model, id, items, price);
}

}  // namespace polyphony

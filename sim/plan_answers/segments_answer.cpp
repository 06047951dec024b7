#include "sim/plan_answers/segments_answer.h"

#include <algorithm>

#include "shared/check/check.h"
#include "shared/cost/layer_costs.h"
#include "shared/planner/segment_counts.h"
#include "shared/program/work.h"
#include "shared/scenario/typical_batch.h"
#include "shared/step/assign.h"
#include "shared/step/step_record.h"
#include "sim/prediction/figures.h"

namespace polyphony::sim {
namespace {

// Returns the layout with all modules colocated on the language module's ranks, one segment each.
Layout together(const Model& model, const Layout& given) {
  Layout layout = without_planner(given);
  const ModuleLayout& language = given.modules[language_module(model).value];
  layout.placement = Placement::colocated;
  layout.schedule = ScheduleKind::one_f_one_b;
  layout.planner = Planning::dip;
  layout.encoder_order = EncoderOrder::phases;
  layout.actions.clear();
  for (ModuleLayout& grid : layout.modules) {
    if (!same_ranks(grid, language) || grid.pp != language.pp ||
        given.placement == Placement::homogeneous) {
      const Recompute recompute = grid.recompute;
      const Shard shard = grid.shard;
      grid = language;
      grid.recompute = recompute;
      grid.shard = shard;
    }
    grid.vpp = 1;
    grid.blocks.clear();
  }
  return layout;
}

class Segments {
 public:
  Segments(const Scenario& scenario, const HardwareProfile& profile, Layout layout)
      : scenario_(scenario),
        profile_(profile),
        layout_(std::move(layout)),
        batch_(typical_batch(scenario)),
        healthy_(scenario.cluster.healthy()) {}

  // Returns one row per module that is not a projector of another.
  std::vector<SegmentRow> rows() {
    const Model& model = scenario_.model;
    const ModuleId language = language_module(model);
    std::vector<SegmentRow> rows;
    std::vector<Seconds> latencies;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
      const ModuleId id(m);
      if (grid_owner(model, id) != id) continue;
      SegmentRow row = id == language || id > language ? microbatch(id) : encoder(id);
      row.module = model.modules[m].name;
      latencies.push_back(row.latency);
      rows.push_back(std::move(row));
      owners_.push_back(id);
    }
    const std::vector<int> counts = segment_counts(latencies);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Module& module = model.modules[owners_[r].value];
      const int most = std::max(1, module.layers / layout_.modules[owners_[r].value].pp);
      rows[r].segments = std::min(counts[r], most);
    }
    return rows;
  }

  // Returns the layout with segments as virtual stages, and sub-microbatches as microbatches of the
  // encoders.
  Layout cut(const std::vector<SegmentRow>& rows, bool segments) const {
    Layout layout = layout_;
    int parts = 1;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      parts = std::max(parts, rows[r].parts);
      for (std::size_t m = 0; m < layout.modules.size(); ++m)
        if (grid_owner(scenario_.model, ModuleId(m)) == owners_[r]) {
          layout.modules[m].vpp = segments ? rows[r].segments : 1;
          layout.modules[m].sub_microbatch = std::max(1, rows[r].items);
        }
    }
    layout.encoder_microbatches = parts * layout.microbatches;
    if (segments) {
      layout.schedule = ScheduleKind::interleaved;
      layout.encoder_order = EncoderOrder::interleaved;
    }
    return layout;
  }

 private:
  // Returns the time of a forward and backward pass through a module and its projectors.
  Seconds latency(ModuleId owner, const Batch& batch, int microbatches) const {
    const Model& model = scenario_.model;
    Seconds sum{};
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
      if (grid_owner(model, ModuleId(m)) != owner) continue;
      ModuleLayout grid = layout_.modules[m];
      if (microbatches == 1) grid.ranks = grid.tp * grid.cp * grid.pp;  // one lane
      const WorkSize size = module_sizes(model, batch)[m];
      for (const LayerCost& layer :
           layer_costs(scenario_, ModuleId(m), grid, microbatches, size, healthy_, profile_))
        sum += layer.total();
    }
    return sum;
  }
  SegmentRow microbatch(ModuleId id) const {
    SegmentRow row;
    row.latency = latency(id, batch_, layout_.microbatches);
    return row;
  }
  SegmentRow encoder(ModuleId id) const {
    SegmentRow row;
    std::vector<Item> items;
    int most = 0;  // items in the fullest microbatch of a replica
    const WorkTable table = assign_work(scenario_.model, make_plan(scenario_, layout_), batch_);
    for (const Sample& sample : batch_.samples)
      for (const Item& item : sample.items)
        if (takes(scenario_.model, id, item.modality)) items.push_back(item);
    for (const Work& work : table.works) {
      int count = 0;
      for (std::uint32_t i = work.items.begin; i < work.items.end; ++i) {
        const ItemOfWork& item = table.items_of_works[i];
        count += takes(scenario_.model, id, batch_.samples[item.sample].items[item.item].modality)
                     ? 1
                     : 0;
      }
      most = std::max(most, count);
    }
    if (items.empty()) return row;
    const auto middle = items.begin() + static_cast<std::ptrdiff_t>(items.size() / 2);
    std::nth_element(items.begin(), middle, items.end(),
                     [](const Item& a, const Item& b) { return a.tokens < b.tokens; });
    std::vector<SizeLatency> seen;
    for (int count = 1; count <= most; ++count)
      seen.push_back(
          {count,
           latency(id,
                   Batch{{Sample{0, std::vector<Item>(static_cast<std::size_t>(count), *middle)}}},
                   1)});
    row.items = efficient_size(seen);
    row.parts = static_cast<int>(sub_microbatches(most, row.items).size());
    row.latency = seen[static_cast<std::size_t>(row.items - 1)].latency;
    double best = 0;
    for (const SizeLatency& one : seen) best = std::max(best, one.items / one.latency.count());
    row.rate_share = row.items / row.latency.count() / best;
    return row;
  }

  const Scenario& scenario_;
  const HardwareProfile& profile_;
  Layout layout_;
  Batch batch_;
  Cluster healthy_;
  std::vector<ModuleId> owners_;
};

}  // namespace

std::variant<SegmentsAnswer, Infeasible> answer_segments(const Scenario& scenario,
                                                         const HardwareProfile& profile) {
  const Layout& given = require_layout(scenario);
  SegmentsAnswer answer{&scenario, {}, {}, {}, {}, {}, {}};
  Scenario cut = scenario;
  cut.planner_costs.clear();  // those of the given layout
  Layout base = together(scenario.model, given);
  if (const auto no = check_layout(cut, base)) return *no;
  Segments segments(cut, profile, std::move(base));
  answer.rows = segments.rows();
  answer.layout = segments.cut(answer.rows, true);
  if (check_layout(cut, answer.layout)) {
    for (SegmentRow& row : answer.rows) row.segments = 1;
    answer.layout = segments.cut(answer.rows, false);
    if (const auto no = check_layout(cut, answer.layout)) return *no;
  }
  const auto estimated = [&](const Scenario& with, const Layout& layout, Seconds& step,
                             Bytes& memory) -> std::optional<Infeasible> {
    const auto outcome = predict(with, layout, typical_batch(with), profile, Predictor::estimate);
    if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
    const Figures found = figures(with, std::get<Prediction>(outcome));
    step = found.step;
    memory = found.peak_memory;
    return {};
  };
  if (const auto no = estimated(cut, answer.layout, answer.step, answer.memory)) return *no;
  if (const auto no = estimated(scenario, given, answer.given_step, answer.given_memory))
    return *no;
  return answer;
}

}  // namespace polyphony::sim

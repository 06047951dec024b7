// The matrix: every placement with every kind of parallelism it allows, and what trains.
#include <array>
#include <cmath>

#include "exec/synthetic_dataset.h"
#include "tests/exec/parity.h"
#include "tests/exec/tiny_model.h"

namespace polyphony::exec::testing {
namespace {

constexpr auto kGpipe = ScheduleKind::gpipe;
constexpr auto k1f1b = ScheduleKind::one_f_one_b;

struct Grid {
  int tp = 1, pp = 1, dp = 1;
  std::vector<int> blocks = {};  // by stage; empty: balanced
};

ModuleLayout module_layout(const Grid& grid, int first_rank) {
  ModuleLayout layout;
  layout.tp = grid.tp;
  layout.pp = grid.pp;
  layout.ranks = grid.tp * grid.pp * grid.dp;
  layout.first_rank = first_rank;
  layout.blocks = grid.blocks;
  return layout;
}

std::string text(const Grid& grid) {
  std::string blocks;
  for (const int count : grid.blocks) blocks += (blocks.empty() ? " blocks " : ",") + std::to_string(count);
  return "TP" + std::to_string(grid.tp) + " PP" + std::to_string(grid.pp) + " DP" + std::to_string(grid.dp) + blocks;
}

Case make_case(Placement placement, const Grid& encoder, const Grid& language, ScheduleKind schedule, int microbatches,
               int encoder_first, int language_first) {
  Case c;
  c.layout.placement = placement;
  c.layout.schedule = schedule;
  c.layout.microbatches = microbatches;
  c.layout.modules = {module_layout(encoder, encoder_first), module_layout(encoder, encoder_first),
                      module_layout(language, language_first)};
  c.name = std::string(name(placement)) + " ";
  if (placement != Placement::homogeneous) c.name += text(encoder) + " | ";
  c.name += text(language) + ", " + name(schedule) + " x" + std::to_string(microbatches);
  return c;
}

Case homogeneous(const Grid& grid, ScheduleKind schedule, int microbatches) {
  Case c = make_case(Placement::homogeneous, grid, grid, schedule, microbatches, 0, 0);
  c.layout.modules[0].blocks = c.layout.modules[1].blocks = {};
  return c;
}
Case colocated(const Grid& encoder, const Grid& language, ScheduleKind schedule, int microbatches, int encoder_works) {
  Case c = make_case(Placement::colocated, encoder, language, schedule, microbatches, 0, 0);
  c.layout.encoder_microbatches = encoder_works;
  if (encoder_works > 0) c.name += ", encoder x" + std::to_string(encoder_works);
  return c;
}
Case apart(const Grid& encoder, const Grid& language, ScheduleKind schedule, int microbatches) {
  return make_case(Placement::non_colocated, encoder, language, schedule, microbatches, 0,
                   encoder.tp * encoder.pp * encoder.dp);
}
Case language_first(const Grid& encoder, const Grid& language, ScheduleKind schedule, int microbatches) {
  Case c = make_case(Placement::non_colocated, encoder, language, schedule, microbatches,
                     language.tp * language.pp * language.dp, 0);
  c.name += ", language first";
  return c;
}

Case recompute(Case c) {
  for (ModuleLayout& layout : c.layout.modules) layout.recompute = Recompute::full;
  c.name += ", recompute";
  return c;
}
Case frozen(Case c, std::vector<ModuleKind> kinds) {
  c.frozen = std::move(kinds);
  c.name += ", frozen";
  for (const ModuleKind kind : c.frozen) c.name += std::string(" ") + name(kind);
  return c;
}
Case text_only(Case c) {
  c.text_only = true;
  c.name += ", text only";
  return c;
}
Case language_only(Case c) {
  c.language_only = c.text_only = true;
  c.layout.modules.erase(c.layout.modules.begin(), c.layout.modules.begin() + 2);
  c.name += ", no encoder";
  return c;
}
Case clipped_at(Case c, double norm) {
  c.clip_norm = norm;
  c.name += norm > 0 ? ", no need to clip" : ", no clipping";
  return c;
}
Case single_precision(Case c) {
  c.precision = NumberFormat::fp32;
  c.name += ", fp32";
  return c;
}
Case ten_steps(Case c) {
  c.steps = 10;
  c.name += ", ten steps";
  return c;
}

const std::vector<ModuleKind> kEncoder = {ModuleKind::vision, ModuleKind::projector};
const std::vector<ModuleKind> kVision = {ModuleKind::vision};
const std::vector<ModuleKind> kLanguage = {ModuleKind::language};
const std::vector<ModuleKind> kAllButProjector = {ModuleKind::vision, ModuleKind::language};

// The chain has 3 vision and 4 language blocks.
void add_homogeneous(std::vector<Case>& cases) {
  cases.insert(cases.end(),
               {homogeneous({}, kGpipe, 1), homogeneous({}, k1f1b, 4), recompute(homogeneous({}, k1f1b, 2)),
                homogeneous({2, 1, 1}, k1f1b, 1), homogeneous({4, 1, 1}, k1f1b, 2),
                recompute(homogeneous({4, 1, 1}, kGpipe, 2)), homogeneous({1, 2, 1}, kGpipe, 4),
                homogeneous({1, 2, 1}, k1f1b, 4), homogeneous({1, 4, 1}, k1f1b, 2),
                homogeneous({1, 4, 1, {1, 3, 2, 1}}, kGpipe, 4), homogeneous({1, 3, 1, {4, 2, 1}}, k1f1b, 5),
                recompute(homogeneous({1, 4, 1, {2, 2, 2, 1}}, k1f1b, 6)), homogeneous({1, 7, 1}, k1f1b, 3),
                homogeneous({1, 1, 2}, k1f1b, 1), homogeneous({1, 1, 3}, kGpipe, 2), homogeneous({1, 1, 8}, kGpipe, 2),
                homogeneous({2, 2, 2}, k1f1b, 3), homogeneous({4, 1, 2}, k1f1b, 2), homogeneous({1, 2, 4}, k1f1b, 2),
                homogeneous({2, 4, 1}, k1f1b, 4), recompute(homogeneous({2, 2, 2}, kGpipe, 2)),
                clipped_at(homogeneous({2, 1, 2}, k1f1b, 2), 1e3), clipped_at(homogeneous({2, 2, 1}, kGpipe, 2), 0)});
}
void add_colocated(std::vector<Case>& cases) {
  cases.insert(cases.end(),
               {colocated({1, 1, 2}, {2, 1, 1}, k1f1b, 1, 0), colocated({1, 1, 4}, {4, 1, 1}, k1f1b, 4, 0),
                colocated({1, 1, 4}, {4, 1, 1}, k1f1b, 4, 2), colocated({4, 1, 1}, {1, 1, 4}, kGpipe, 2, 0),
                colocated({2, 1, 2}, {1, 1, 4}, kGpipe, 2, 1), colocated({2, 1, 2}, {2, 1, 2}, k1f1b, 3, 0),
                colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 0), colocated({1, 1, 4}, {1, 4, 1}, k1f1b, 4, 2),
                colocated({2, 1, 2}, {1, 2, 2}, kGpipe, 4, 4), colocated({1, 1, 8}, {2, 2, 2}, k1f1b, 4, 2),
                colocated({2, 1, 4}, {4, 2, 1}, kGpipe, 4, 1), colocated({4, 1, 2}, {1, 4, 2}, k1f1b, 4, 1),
                colocated({1, 1, 3}, {1, 3, 1, {2, 1, 1}}, k1f1b, 6, 3),
                recompute(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2))});
}
void add_apart(std::vector<Case>& cases) {
  cases.insert(cases.end(),
               {apart({}, {}, k1f1b, 3), apart({}, {4, 1, 1}, k1f1b, 2), apart({1, 1, 4}, {}, kGpipe, 2),
                apart({1, 1, 2}, {1, 1, 4}, k1f1b, 2), apart({1, 1, 3}, {1, 1, 2}, k1f1b, 3),
                apart({1, 1, 2}, {1, 1, 2}, kGpipe, 2), apart({2, 1, 1}, {4, 1, 1}, k1f1b, 2),
                apart({4, 1, 1}, {1, 1, 4}, k1f1b, 2), apart({1, 2, 1}, {1, 2, 1}, k1f1b, 5),
                apart({1, 3, 1}, {1, 4, 1, {1, 1, 1, 1}}, k1f1b, 4), apart({1, 2, 2}, {2, 2, 1}, k1f1b, 4),
                apart({2, 1, 2}, {2, 2, 1, {3, 1}}, kGpipe, 4), apart({2, 2, 1}, {1, 2, 2}, k1f1b, 3),
                language_first({1, 1, 2}, {2, 2, 1}, k1f1b, 4),
                recompute(apart({1, 2, 1, {1, 2}}, {2, 2, 1}, k1f1b, 4))});
}
void add_frozen_and_text(std::vector<Case>& cases) {
  cases.insert(
      cases.end(),
      {frozen(homogeneous({2, 1, 1}, k1f1b, 2), kEncoder), frozen(homogeneous({1, 4, 1}, k1f1b, 4), kVision),
       frozen(homogeneous({1, 4, 1}, k1f1b, 4), kEncoder), frozen(homogeneous({1, 2, 2}, kGpipe, 2), kLanguage),
       frozen(recompute(homogeneous({1, 2, 2}, kGpipe, 2)), kLanguage),
       frozen(homogeneous({2, 2, 1}, k1f1b, 2), kAllButProjector),
       frozen(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2), kEncoder),
       frozen(colocated({1, 1, 4}, {4, 1, 1}, k1f1b, 2, 0), kVision),
       frozen(colocated({2, 1, 2}, {1, 4, 1}, k1f1b, 4, 0), kLanguage),
       frozen(apart({1, 1, 2}, {2, 2, 1}, k1f1b, 4), kEncoder), frozen(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4), kVision),
       frozen(apart({1, 2, 1}, {2, 1, 1}, kGpipe, 3), kLanguage),
       frozen(recompute(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4)), kAllButProjector),
       text_only(homogeneous({2, 2, 1}, k1f1b, 2)), text_only(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2)),
       text_only(apart({1, 2, 1}, {2, 1, 1}, k1f1b, 2)), language_only(homogeneous({2, 2, 2}, k1f1b, 2)),
       language_only(homogeneous({1, 4, 1, {1, 1, 1, 1}}, kGpipe, 3))});
}

// Samples in hand: every awkward shape once or more. "I" an image of 16 patches, "i" one of 4; a text item is its tokens and labels.
using Text = std::array<std::int32_t, 2>;
struct Shape {
  std::vector<std::variant<char, Text>> items;
};
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> table = {
      {{'I', Text{5, 2}}},
      {{Text{3, 3}}},
      {{'i', 'I', 'I', Text{12, 1}}},
      {{Text{2, 0}, 'I', Text{7, 0}}},            // no label at all
      {{Text{9, 4}, 'i', Text{3, 1}}},            // labels before and after an image
      {{'I', 'I', Text{4, 1}}},
      {{Text{1, 1}}},                             // one token
      {{'i', Text{6, 6}}},
      {{Text{4, 0}, 'i', Text{2, 0}, 'i', Text{5, 2}}},
      {{Text{17, 3}}},
      {{'I', Text{2, 0}}},
      {{'I', 'i', 'I', Text{8, 5}}},
      {{Text{6, 1}}},
      {{'i', Text{1, 1}}},
      {{Text{5, 0}}},
      {{Text{2, 1}, 'I'}},                        // ends in an image
  };
  return table;
}

class ShapesDataset : public Dataset {
 public:
  ShapesDataset(const Scenario& scenario, bool text_only) : content_(scenario), text_only_(text_only) {}

  // A rotation of the table, so that work items differ from step to step.
  Batch batch(std::uint64_t step) const override {
    Batch batch;
    for (std::size_t i = 0; i < shapes().size(); ++i) {
      Sample sample;
      sample.id = static_cast<std::uint32_t>(1000 * step + i);
      for (const auto& item : shapes()[(i + 3 * step) % shapes().size()].items) {
        if (const Text* words = std::get_if<Text>(&item))
          sample.items.push_back({Modality::text, (*words)[0], (*words)[1]});
        else if (!text_only_)
          sample.items.push_back({Modality::image, std::get<char>(item) == 'I' ? 16 : 4, 0});
      }
      batch.samples.push_back(std::move(sample));
    }
    return batch;
  }
  std::vector<Sample> held_out() const override { return {}; }
  SampleContent content(const Sample& sample, ContentParts parts) const override { return content_(sample, parts); }

 private:
  SyntheticContent content_;
  bool text_only_;
};

}  // namespace

Scenario make_scenario(const Case& c) {
  Scenario scenario;
  scenario.file = "parity";
  Module vision = tiny_vision(), language = tiny_language();
  vision.layers = 3;
  language.layers = 4;
  scenario.model.modules = {vision, tiny_projector(), language};
  scenario.model.edges = {{ModuleId(0), ModuleId(1), 0}, {ModuleId(1), ModuleId(2), 0}};
  if (c.language_only) scenario.model = {{language}, {}};
  for (Module& module : scenario.model.modules)
    for (const ModuleKind kind : c.frozen)
      if (module.kind == kind) module.trainable = Trainable::frozen;
  scenario.cluster.ranks_per_node = 8;
  // Only planning looks at this, to balance stages; batches come from make_dataset().
  const auto constant = [](double value) { return Distribution{Distribution::Kind::constant, value, 0}; };
  scenario.data.source = SyntheticData{constant(c.language_only ? 0 : 1), constant(6), constant(2)};
  scenario.data.global_batch = static_cast<int>(shapes().size());
  scenario.training.precision = c.precision;
  scenario.training.learning_rate = 1e-2;
  scenario.training.weight_decay = 0.1;
  scenario.training.clip_norm = c.clip_norm;
  scenario.training.seed = 7;
  return scenario;
}

std::unique_ptr<Dataset> make_dataset(const Case& c, const Scenario& scenario) {
  return std::make_unique<ShapesDataset>(scenario, c.text_only);
}

std::vector<Case> parity_cases() {
  std::vector<Case> cases;
  add_homogeneous(cases);
  add_colocated(cases);
  add_apart(cases);
  add_frozen_and_text(cases);
  return cases;
}
std::vector<Case> single_precision_cases() {
  return {single_precision(homogeneous({2, 2, 2}, k1f1b, 2)),
          single_precision(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2)),
          single_precision(apart({1, 1, 2}, {2, 2, 1}, k1f1b, 4)),
          single_precision(recompute(homogeneous({4, 1, 1}, kGpipe, 2)))};
}
std::vector<Case> curve_cases() {
  return {ten_steps(homogeneous({2, 2, 2}, k1f1b, 3)), ten_steps(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2)),
          ten_steps(apart({1, 1, 3}, {2, 1, 1}, kGpipe, 3)), ten_steps(recompute(apart({1, 2, 1}, {1, 2, 2}, k1f1b, 4)))};
}
std::vector<Case> gloo_cases() {
  return {homogeneous({4, 1, 1}, k1f1b, 2),
          homogeneous({1, 4, 1, {1, 3, 2, 1}}, kGpipe, 4),
          homogeneous({2, 2, 2}, k1f1b, 3),
          colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 0),
          colocated({1, 1, 8}, {2, 2, 2}, k1f1b, 4, 2),
          apart({1, 1, 3}, {1, 1, 2}, k1f1b, 3),
          apart({1, 2, 2}, {2, 2, 1}, k1f1b, 4),
          frozen(apart({1, 2, 1}, {2, 1, 1}, kGpipe, 3), kLanguage)};
}

}  // namespace polyphony::exec::testing

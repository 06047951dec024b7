// Building blocks of parity cases: placements on small grids, and changes of them.
#pragma once

#include "shared/schedule/action_text.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

inline constexpr auto kGpipe = ScheduleKind::gpipe;
inline constexpr auto k1f1b = ScheduleKind::one_f_one_b;

struct Grid {
  int tp = 1, pp = 1, dp = 1;
  std::vector<int> blocks = {};  // by stage; empty: balanced
};

inline ModuleLayout module_layout(const Grid& grid, int first_rank) {
  ModuleLayout layout;
  layout.tp = grid.tp;
  layout.pp = grid.pp;
  layout.ranks = grid.tp * grid.pp * grid.dp;
  layout.first_rank = first_rank;
  layout.blocks = grid.blocks;
  return layout;
}

inline std::string text(const Grid& grid) {
  std::string blocks;
  for (const int count : grid.blocks)
    blocks += (blocks.empty() ? " blocks " : ",") + std::to_string(count);
  return "TP" + std::to_string(grid.tp) + " PP" + std::to_string(grid.pp) + " DP" +
         std::to_string(grid.dp) + blocks;
}

inline Case make_case(Placement placement, const Grid& encoder, const Grid& language,
                      ScheduleKind schedule, int microbatches, int encoder_first,
                      int language_first) {
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

inline Case homogeneous(const Grid& grid, ScheduleKind schedule, int microbatches) {
  Case c = make_case(Placement::homogeneous, grid, grid, schedule, microbatches, 0, 0);
  c.layout.modules[0].blocks = c.layout.modules[1].blocks = {};
  return c;
}
inline Case colocated(const Grid& encoder, const Grid& language, ScheduleKind schedule,
                      int microbatches, int encoder_works) {
  Case c = make_case(Placement::colocated, encoder, language, schedule, microbatches, 0, 0);
  c.layout.encoder_microbatches = encoder_works;
  if (encoder_works > 0) c.name += ", encoder x" + std::to_string(encoder_works);
  return c;
}
inline Case apart(const Grid& encoder, const Grid& language, ScheduleKind schedule,
                  int microbatches) {
  return make_case(Placement::non_colocated, encoder, language, schedule, microbatches, 0,
                   encoder.tp * encoder.pp * encoder.dp);
}
inline Case language_first(const Grid& encoder, const Grid& language, ScheduleKind schedule,
                           int microbatches) {
  Case c = make_case(Placement::non_colocated, encoder, language, schedule, microbatches,
                     language.tp * language.pp * language.dp, 0);
  c.name += ", language first";
  return c;
}

inline Case in_order(Case c, EncoderOrder order) {
  c.layout.encoder_order = order;
  c.name += std::string(" ") + name(order);
  return c;
}
// Encoders with two virtual stages per rank. works_ahead(): microbatches of an encoder, and how far
// it runs ahead.
inline Case virtual_encoder(Case c) {
  c.variant = [](Model& model) { model.modules.front().layers = 4; };
  for (std::size_t m : {0, 1}) c.layout.modules[m].vpp = 2;
  c.name += ", encoder VPP2";
  return c;
}
// A second encoder on the ranks of the first; if those are not the language module's, a chain.
inline Case two_encoders(Case c) {
  if (c.layout.placement == Placement::non_colocated) c.layout.placement = Placement::mixed;
  const ModuleLayout encoder = c.layout.modules.front();
  c.layout.modules.insert(c.layout.modules.begin(), 2, encoder);
  c.audio = true;
  c.name += ", two encoders";
  return c;
}
inline Case works_ahead(Case c, int works, int ahead) {
  c.layout.encoder_microbatches = works;
  for (std::size_t m : {0, 1}) c.layout.modules[m].ahead = ahead;
  c.name += ", encoder x" + std::to_string(works) + " ahead " + std::to_string(ahead);
  return c;
}

inline Case recompute(Case c) {
  for (ModuleLayout& layout : c.layout.modules) layout.recompute = Recompute::full;
  c.name += ", recompute";
  return c;
}
// Tensor-parallel modules with GEMMs in chunks.
inline Case in_pieces(Case c, int pieces, bool sp) {
  for (ModuleLayout& layout : c.layout.modules)
    if (layout.tp > 1) layout.tp_pieces = pieces, layout.sp = sp;
  c.name += std::string(sp ? ", sp in " : ", in ") + std::to_string(pieces) + " pieces";
  return c;
}
inline Case frozen(Case c, std::vector<ModuleKind> kinds) {
  c.frozen = std::move(kinds);
  c.name += ", frozen";
  for (const ModuleKind kind : c.frozen) c.name += std::string(" ") + name(kind);
  return c;
}
inline Case text_only(Case c) {
  c.text_only = true;
  c.name += ", text only";
  return c;
}
inline Case own_actions(Case c, const std::vector<std::string>& orders) {
  for (const std::string& order : orders)
    c.layout.actions.push_back(read_actions(order, c.name, "/layout/actions"));
  c.name += ", actions " + orders.front();
  return c;
}
inline Case language_only(Case c) {
  c.language_only = c.text_only = true;
  c.layout.modules.erase(c.layout.modules.begin(), c.layout.modules.begin() + 2);
  c.name += ", no encoder";
  return c;
}
inline Case clipped_at(Case c, double norm) {
  c.clip_norm = norm;
  c.name += norm > 0 ? ", no need to clip" : ", no clipping";
  return c;
}
inline Case single_precision(Case c) {
  c.precision = NumberFormat::fp32;
  c.name += ", fp32";
  return c;
}
inline Case ten_steps(Case c) {
  c.steps = 10;
  c.name += ", ten steps";
  return c;
}

inline const std::vector<ModuleKind> kEncoder = {ModuleKind::vision, ModuleKind::projector};
inline const std::vector<ModuleKind> kVision = {ModuleKind::vision};
inline const std::vector<ModuleKind> kLanguage = {ModuleKind::language};
inline const std::vector<ModuleKind> kAllButProjector = {ModuleKind::vision, ModuleKind::language};

}  // namespace polyphony::exec::testing

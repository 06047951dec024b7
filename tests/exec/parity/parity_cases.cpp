// The matrix: every placement with every kind of parallelism it allows, and with every choice of
// trained modules.
#include <stdexcept>

#include "tests/exec/parity/parity_layouts.h"

namespace polyphony::exec::testing {
namespace {

// The chain has 3 vision and 4 language blocks.
void add_homogeneous(std::vector<Case>& cases) {
  cases.insert(cases.end(), {homogeneous({}, kGpipe, 1),
                             homogeneous({}, k1f1b, 4),
                             recompute(homogeneous({}, k1f1b, 2)),
                             homogeneous({2, 1, 1}, k1f1b, 1),
                             homogeneous({4, 1, 1}, k1f1b, 2),
                             recompute(homogeneous({4, 1, 1}, kGpipe, 2)),
                             homogeneous({1, 2, 1}, kGpipe, 4),
                             homogeneous({1, 2, 1}, k1f1b, 4),
                             homogeneous({1, 4, 1}, k1f1b, 2),
                             homogeneous({1, 4, 1, {1, 3, 2, 1}}, kGpipe, 4),
                             homogeneous({1, 3, 1, {4, 2, 1}}, k1f1b, 5),
                             recompute(homogeneous({1, 4, 1, {2, 2, 2, 1}}, k1f1b, 6)),
                             homogeneous({1, 7, 1}, k1f1b, 3),
                             homogeneous({1, 1, 2}, k1f1b, 1),
                             homogeneous({1, 1, 3}, kGpipe, 2),
                             homogeneous({1, 1, 8}, kGpipe, 2),
                             homogeneous({2, 2, 2}, k1f1b, 3),
                             homogeneous({4, 1, 2}, k1f1b, 2),
                             homogeneous({1, 2, 4}, k1f1b, 2),
                             homogeneous({2, 4, 1}, k1f1b, 4),
                             recompute(homogeneous({2, 2, 2}, kGpipe, 2)),
                             clipped_at(homogeneous({2, 1, 2}, k1f1b, 2), 1e3),
                             clipped_at(homogeneous({2, 2, 1}, kGpipe, 2), 0)});
}
// The first stage, and the last one, without a block.
void add_lone_ends(std::vector<Case>& cases) {
  cases.insert(cases.end(), {homogeneous({1, 4, 1, {0, 4, 3, 0}}, k1f1b, 5),
                             recompute(homogeneous({2, 3, 1, {0, 6, 1}}, k1f1b, 4)),
                             apart({}, {1, 3, 1, {0, 4, 0}}, k1f1b, 4)});
}
void add_colocated(std::vector<Case>& cases) {
  cases.insert(
      cases.end(),
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
  cases.insert(
      cases.end(),
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
  cases.insert(cases.end(),
               {frozen(homogeneous({2, 1, 1}, k1f1b, 2), kEncoder),
                frozen(homogeneous({1, 4, 1}, k1f1b, 4), kVision),
                frozen(homogeneous({1, 4, 1}, k1f1b, 4), kEncoder),
                frozen(homogeneous({1, 2, 2}, kGpipe, 2), kLanguage),
                frozen(recompute(homogeneous({1, 2, 2}, kGpipe, 2)), kLanguage),
                frozen(homogeneous({2, 2, 1}, k1f1b, 2), kAllButProjector),
                frozen(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2), kEncoder),
                frozen(colocated({1, 1, 4}, {4, 1, 1}, k1f1b, 2, 0), kVision),
                frozen(colocated({2, 1, 2}, {1, 4, 1}, k1f1b, 4, 0), kLanguage),
                frozen(apart({1, 1, 2}, {2, 2, 1}, k1f1b, 4), kEncoder),
                frozen(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4), kVision),
                frozen(apart({1, 2, 1}, {2, 1, 1}, kGpipe, 3), kLanguage),
                frozen(recompute(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4)), kAllButProjector),
                text_only(homogeneous({2, 2, 1}, k1f1b, 2)),
                text_only(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2)),
                text_only(apart({1, 2, 1}, {2, 1, 1}, k1f1b, 2)),
                language_only(homogeneous({2, 2, 2}, k1f1b, 2)),
                language_only(homogeneous({1, 4, 1, {1, 1, 1, 1}}, kGpipe, 3))});
}

// Encoders pipelined on the language module's ranks; encoders on ranks of their own with several
// microbatches at once, virtual stages and running ahead.
void add_encoder_orders(std::vector<Case>& cases) {
  constexpr auto kPhases = EncoderOrder::phases, kInterleaved = EncoderOrder::interleaved;
  cases.insert(
      cases.end(),
      {in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kPhases),
       in_order(colocated({1, 2, 2}, {2, 2, 1}, k1f1b, 4, 2), kPhases),
       in_order(colocated({2, 1, 2}, {1, 4, 1}, kGpipe, 4, 0), kPhases),
       in_order(colocated({1, 2, 2}, {1, 4, 1}, ScheduleKind::zero_bubble, 4, 2), kPhases),
       in_order(virtual_encoder(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0)), kPhases),
       colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 2),
       in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kInterleaved),
       in_order(colocated({1, 2, 2}, {2, 2, 1}, k1f1b, 4, 2), kInterleaved),
       in_order(virtual_encoder(recompute(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 2))),
                kInterleaved),
       frozen(in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kInterleaved), kVision),
       frozen(in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kPhases), kEncoder),
       in_order(two_encoders(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 2)), kPhases),
       in_order(two_encoders(colocated({1, 2, 2}, {2, 2, 1}, k1f1b, 4, 0)), kInterleaved),
       two_encoders(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4)),
       works_ahead(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4), 2, 1),
       works_ahead(apart({1, 1, 2}, {1, 2, 2}, k1f1b, 4), 2, 0),
       works_ahead(virtual_encoder(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4)), 4, 2),
       frozen(works_ahead(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4), 4, 1), kVision)});
}

// Explicit actions in the layout: microbatches in arbitrary order, backwards in two parts, recipes
// per microbatch.
void add_own_actions(std::vector<Case>& cases) {
  cases.insert(
      cases.end(),
      {own_actions(homogeneous({1, 2, 1}, k1f1b, 3),
                   {"F0.2:full F0.0 F0.1:selective B0.0 B0.2 I0.1 W0.1",
                    "F1.2 F1.0:full F1.1 B1.0 I1.2 B1.1 W1.2"}),
       own_actions(recompute(homogeneous({2, 1, 1}, k1f1b, 3)),
                   {"F0.1:none F0.0 B0.1 F0.2:selective B0.2 B0.0"}),
       own_actions(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 3),
                   {"F0.2 F0.0 F0.1:full B0.1 B0.2 B0.0", "F1.2 F1.0 F1.1 B1.1 B1.2 B1.0"}),
       own_actions(
           apart({1, 1, 2}, {1, 2, 1}, k1f1b, 4),
           {"F0.3 F0.1 B0.3 F0.2 B0.1 F0.0 B0.2 B0.0", "F1.3 B1.3 F1.1 B1.1 F1.2 B1.2 F1.0 B1.0"}),
       own_actions(colocated({1, 1, 2}, {2, 1, 1}, k1f1b, 4, 2),
                   {"F0.1 F0.0:selective B0.1 B0.0"})});
}

// Tensor-parallel GEMMs in chunks, trained and frozen.
void add_pieces(std::vector<Case>& cases) {
  for (const bool sp : {false, true}) {
    cases.insert(
        cases.end(),
        {in_pieces(homogeneous({2, 1, 1}, k1f1b, 2), 2, sp),
         in_pieces(recompute(homogeneous({4, 1, 1}, k1f1b, 2)), 3, sp),
         in_pieces(homogeneous({2, 2, 1}, ScheduleKind::zero_bubble, 4), 2, sp),
         in_pieces(frozen(homogeneous({2, 2, 1}, k1f1b, 2), kAllButProjector), 2, sp),
         in_pieces(frozen(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2), kVision), 40, sp)});
    cases.back().lora = kLanguage;
    cases.back().name += ", lora";
  }
}

}  // namespace

std::vector<Case> parity_cases() {
  std::vector<Case> cases;
  add_homogeneous(cases);
  add_colocated(cases);
  add_apart(cases);
  add_frozen_and_text(cases);
  add_encoder_orders(cases);
  add_own_actions(cases);
  add_pieces(cases);
  add_lone_ends(cases);
  return cases;
}
std::vector<Case> model_layouts(bool sparse, bool tied) {
  const auto with = [](Case c, const char* what, const std::function<void(ModuleLayout&)>& change) {
    for (ModuleLayout& layout : c.layout.modules) change(layout);
    c.name += std::string(", ") + what;
    return c;
  };
  const auto sequence = [](ModuleLayout& l) { l.sp = l.tp > 1; };
  std::vector<Case> cases = {
      homogeneous({}, k1f1b, 2),
      homogeneous({4, 1, 1}, k1f1b, 2),
      with(recompute(homogeneous({2, 2, 2}, k1f1b, 3)), "sp", sequence),
      homogeneous({2, 2, 1}, ScheduleKind::zero_bubble, 4),
      with(homogeneous({2, 1, 2}, k1f1b, 2), "optimizer sharded, selective recomputation",
           [](ModuleLayout& l) {
             l.shard = Shard::optimizer;
             l.recompute = Recompute::selective;
           }),
      frozen(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2), kVision)};
  cases.back().lora = kLanguage;
  cases.back().name += ", lora";
  if (!tied)
    cases.push_back(with(homogeneous({1, 2, 2}, k1f1b, 2), "fully sharded",
                         [](ModuleLayout& l) { l.shard = Shard::full; }));
  if (!sparse) return cases;
  const auto dealt = [](Case c, int ep, int expert_tp) {
    ModuleLayout& language = c.layout.modules.back();
    language.ep = ep;
    language.expert_tp = expert_tp;
    c.name += ", ep" + std::to_string(ep) + " expert tp" + std::to_string(expert_tp);
    return c;
  };
  cases.push_back(dealt(apart({}, {2, 1, 2}, k1f1b, 2), 2, 2));
  cases.push_back(dealt(with(apart({1, 1, 2}, {2, 1, 2}, k1f1b, 2), "sp", sequence), 4, 1));
  cases.push_back(dealt(with(homogeneous({2, 1, 2}, k1f1b, 2), "sp", sequence), 4, 1));
  return cases;
}
std::vector<Case> single_precision_cases() {
  return {single_precision(homogeneous({2, 2, 2}, k1f1b, 2)),
          single_precision(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2)),
          single_precision(apart({1, 1, 2}, {2, 2, 1}, k1f1b, 4)),
          single_precision(recompute(homogeneous({4, 1, 1}, kGpipe, 2)))};
}
std::vector<Case> curve_cases() {
  return {ten_steps(homogeneous({2, 2, 2}, k1f1b, 3)),
          ten_steps(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2)),
          ten_steps(apart({1, 1, 3}, {2, 1, 1}, kGpipe, 3)),
          ten_steps(recompute(apart({1, 2, 1}, {1, 2, 2}, k1f1b, 4)))};
}
const Case& named(const std::vector<Case>& cases, const std::string& name) {
  for (const Case& c : cases)
    if (c.name == name) return c;
  throw std::runtime_error("no case is called " + name);
}
std::vector<Case> gloo_cases() {
  std::vector<Case> cases = {homogeneous({4, 1, 1}, k1f1b, 2),
                             homogeneous({1, 4, 1, {1, 3, 2, 1}}, kGpipe, 4),
                             homogeneous({2, 2, 2}, k1f1b, 3),
                             colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 0),
                             colocated({1, 1, 8}, {2, 2, 2}, k1f1b, 4, 2),
                             apart({1, 1, 3}, {1, 1, 2}, k1f1b, 3),
                             apart({1, 2, 2}, {2, 2, 1}, k1f1b, 4),
                             frozen(apart({1, 2, 1}, {2, 1, 1}, kGpipe, 3), kLanguage)};
  // And those of the generated cases that communicate in other ways.
  for (const Case& c : parity_matrix().cases)
    for (const char* wanted :
         {"tp2 + sp", "tp2 sp in 3 pieces", "cp2 zigzag", "sp + cp2 contiguous", "interleaved",
          "zero-bubble", "optimizer sharded", "gradients sharded", "fully sharded",
          "hybrid sharded", "ep2", "ep4 over tp2, expert tp1", "non-colocated + diffusion",
          "deepstack"})
      if (c.name == wanted) cases.push_back(c);
  return cases;
}

}  // namespace polyphony::exec::testing

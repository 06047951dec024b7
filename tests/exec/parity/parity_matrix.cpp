// The generated part of the parity matrix: every feature alone and every pair of features that a
// layout can have together, on few ranks. Pairs that check_layout() rejects are omitted;
// scripts/parity prints how many there are.
#include <algorithm>
#include <functional>

#include "shared/check/check.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {
namespace {

constexpr int kMostRanks = 8;

// A layout before ranks are assigned.
struct Draft {
  Placement placement = Placement::homogeneous;
  ModuleLayout encoder, language, diffusion;  // ranks: number of data-parallel replicas
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int microbatches = 4;
  int encoder_microbatches = 0;
  Bridge bridge = Bridge::sharded;
  bool beside = false;     // the diffusion module on the language module's ranks
  bool lone_ends = false;  // the first and the last stage hold no block
  Case rest;               // what is trained, and on which data
};

struct Feature {
  std::string name;
  std::function<void(Draft&)> add;
};

ModuleLayout& with_all(Draft& draft, const std::function<void(ModuleLayout&)>& change) {
  change(draft.encoder);
  change(draft.language);
  return draft.language;
}

Feature on_both(const std::string& name, std::function<void(ModuleLayout&)> change) {
  return {name, [change](Draft& draft) { with_all(draft, change); }};
}
Feature on_language(const std::string& name, std::function<void(ModuleLayout&)> change) {
  return {name, [change](Draft& draft) { change(draft.language); }};
}

// Adds a change to the changes of the model.
std::function<void(Draft&)> on_modules(std::function<void(Module&)> change) {
  return [change](Draft& draft) {
    draft.rest.variant = [change, before = draft.rest.variant](Model& model) {
      if (before) before(model);
      for (Module& module : model.modules) change(module);
    };
  };
}

std::function<void(Draft&)> on_decoder(std::function<void(Module&)> change) {
  return on_modules([change](Module& m) {
    if (m.kind == ModuleKind::language) change(m);
  });
}

// A schedule on two ranks, with as few virtual stages as it needs. 1f1b and interleaved are run by
// the other layouts.
void lead(Draft& d) {
  d.bridge = Bridge::leader;
  with_all(d, [](ModuleLayout& l) { l.tp = std::max(l.tp, 2); });
  if (d.placement == Placement::homogeneous) d.placement = Placement::non_colocated;
}
Feature scheduled(const Schedule& row) {
  return {row.name, [&row](Draft& draft) {
            draft.schedule = row.kind;
            draft.language.pp = 2;
            if (row.refusal({2, 1, draft.microbatches}).empty()) return;
            draft.language.vpp = 2;
          }};
}

std::vector<Feature> make_features() {
  std::vector<Feature> list = {
      {"colocated", [](Draft& d) { d.placement = Placement::colocated; }},
      {"non-colocated", [](Draft& d) { d.placement = Placement::non_colocated; }},
      on_both("tp2", [](ModuleLayout& l) { l.tp = 2; }),
      on_language("tp4", [](ModuleLayout& l) { l.tp = 4; }),
      on_both("sp", [](ModuleLayout& l) { l.sp = true; }),
      on_both("tp2 sp in 3 pieces",
              [](ModuleLayout& l) {
                l.tp = std::max(l.tp, 2);
                l.sp = true;
                l.tp_pieces = 3;
              }),
      on_both("cp2 contiguous", [](ModuleLayout& l) { l.cp = 2; }),
      on_both("cp2 zigzag",
              [](ModuleLayout& l) {
                l.cp = 2;
                l.tokens = TokenAssignment::zigzag;
              }),
      on_language("cp3 balanced",
                  [](ModuleLayout& l) {
                    l.cp = 3;
                    l.tokens = TokenAssignment::balanced;
                  }),
      on_language("cp2 ulysses",
                  [](ModuleLayout& l) {
                    l.cp = 2;
                    l.tokens = TokenAssignment::zigzag;
                    l.cp_attention = ContextAttention::ulysses;
                  }),
      on_language("cp3 ring",
                  [](ModuleLayout& l) {
                    l.cp = 3;
                    l.tokens = TokenAssignment::balanced;
                    l.cp_attention = ContextAttention::ring;
                  }),
      on_language("cp2 keys a head at a time",
                  [](ModuleLayout& l) {
                    l.cp = 2;
                    l.tokens = TokenAssignment::zigzag;
                    l.cp_heads = 1;
                  }),
      on_language("pp2", [](ModuleLayout& l) { l.pp = 2; }),
      on_language("interleaved",
                  [](ModuleLayout& l) {
                    l.pp = 2;
                    l.vpp = 2;
                  }),
      {"embedding and head alone",
       [](Draft& d) {
         d.lone_ends = true;
         if (d.language.pp * d.language.vpp < 3) d.language.pp = 3;
       }},
      on_both("dp2", [](ModuleLayout& l) { l.ranks = 2; }),
      on_both("optimizer sharded",
              [](ModuleLayout& l) {
                l.shard = Shard::optimizer;
                l.ranks = std::max(l.ranks, 2);
              }),
      on_both("gradients sharded",
              [](ModuleLayout& l) {
                l.shard = Shard::gradients;
                l.ranks = std::max(l.ranks, 2);
              }),
      on_both("fully sharded",
              [](ModuleLayout& l) {
                l.shard = Shard::full;
                l.ranks = std::max(l.ranks, 2);
              }),
      on_both("hybrid sharded",
              [](ModuleLayout& l) {
                l.shard = Shard::full;
                l.shard_ranks = 2;
                l.ranks = 4;
              }),
      on_both("recompute full", [](ModuleLayout& l) { l.recompute = Recompute::full; }),
      on_both("recompute selective", [](ModuleLayout& l) { l.recompute = Recompute::selective; }),
      {"experts", [](Draft& d) { d.rest.experts = 4; }},
      {"ep2",
       [](Draft& d) {
         d.rest.experts = 4;
         d.language.ep = 2;
         d.language.ranks = std::max(d.language.ranks, 2);
         d.encoder.ranks = std::max(d.encoder.ranks, 2);
       }},
      {"ep4 over tp2, expert tp1",
       [](Draft& d) {
         d.rest.experts = 4;
         with_all(d, [](ModuleLayout& l) {
           l.tp = 2;
           l.sp = true;
           l.ranks = std::max(l.ranks, 2);
         });
         d.language.ep = 4;
         d.language.expert_tp = 1;
       }},
      {"diffusion", [](Draft& d) { d.rest.diffusion = true; }},
      {"diffusion pp2",
       [](Draft& d) {
         d.rest.diffusion = true;
         d.diffusion.pp = 2;
         if (d.placement == Placement::homogeneous) d.placement = Placement::mixed;
       }},
      {"diffusion beside",
       [](Draft& d) {
         d.rest.diffusion = d.beside = true;
         d.language.pp = std::max(d.language.pp, 2);
         if (d.placement == Placement::homogeneous) d.placement = Placement::colocated;
       }},
      {"deepstack", [](Draft& d) { d.rest.deep = true; }},
      {"encoder by image", [](Draft& d) { d.encoder.spread = Spread::images; }},
      {"images copied over cp2",
       [](Draft& d) {
         with_all(d, [](ModuleLayout& l) { l.cp = std::max(l.cp, 2); });
         d.encoder.spread = Spread::copied;
       }},
      {"encoder x2", [](Draft& d) { d.encoder_microbatches = 2; }},
      {"encoder frozen",
       [](Draft& d) { d.rest.frozen = {ModuleKind::vision, ModuleKind::projector}; }},
      {"language frozen", [](Draft& d) { d.rest.frozen = {ModuleKind::language}; }},
      {"vision frozen, language lora",
       [](Draft& d) {
         d.rest.frozen = {ModuleKind::vision};
         d.rest.lora = {ModuleKind::language};
       }},
      {"oblong images", [](Draft& d) { d.rest.oblong = true; }},
      {"text only", [](Draft& d) { d.rest.text_only = true; }},
      {"leaders between grids of tp2", lead},
      {"leaders of sp", [](Draft& d) { lead(d), d.encoder.sp = d.language.sp = true; }},
      {"audio", [](Draft& d) { d.rest.audio = true; }},
      {"class token", on_modules([](Module& m) {
         if (m.kind == ModuleKind::vision) m.class_token = m.input_norm = true;
       })},
      {"rotary windows", on_modules([](Module& m) {
         if (m.kind != ModuleKind::vision) return;
         m.rotary = m.alternating_axes = true;
         m.final_norm = false;
         m.window = 3;  // of 4 × 4 patches: 3 × 3, 3 × 1, 1 × 3, 1 × 1
         m.full_attention_blocks = {1};
       })},
      {"layer scales", on_modules([](Module& m) {
         if (m.kind == ModuleKind::vision || m.kind == ModuleKind::audio) m.layer_scale = 0.8;
       })},
      {"tied", on_decoder([](Module& m) { m.tied = true; })},
      {"norms and biases of heads", on_modules([](Module& m) {
         if (m.kind != ModuleKind::projector && m.kind != ModuleKind::diffusion)
           m.qk_norm = m.qkv_bias = true;
       })},
      {"tp4 over 2 key heads",
       [](Draft& d) {
         d.language.tp = 4;
         on_decoder([](Module& m) { m.kv_heads = 2; })(d);
       }},
      {"linear projectors", on_modules([](Module& m) {
         if (m.kind == ModuleKind::projector) m.projector_hidden = 0;
       })},
  };
  for (const ModelFeature& feature : model_features())
    list.push_back({feature.name, [&feature](Draft& draft) {
                      if (feature.experts > 0) draft.rest.experts = feature.experts;
                      on_modules([&feature](Module& m) {
                        if (m.kind == ModuleKind::language) feature.change(m);
                      })(draft);
                    }});
  for (const Schedule& row : kSchedules)
    if (row.kind != ScheduleKind::one_f_one_b && row.kind != ScheduleKind::interleaved)
      list.push_back(scheduled(row));
  return list;
}

const std::vector<Feature>& features() {
  static const std::vector<Feature> list = make_features();
  return list;
}

// Leaves the first stage of the language module, or of a chain, its embedding alone, and the last
// one its head.
Case with_lone_ends(Case c) {
  const bool chain = c.layout.placement == Placement::homogeneous;
  const Model model = make_scenario(c).model;
  const std::size_t last =
      chain ? model.modules.size() - 1 : std::size_t{language_module(model).value};
  ModuleLayout& grid = c.layout.modules[last];
  const int inner = grid.pp * grid.vpp - 2;
  if (inner < 1) return c;
  int blocks = 0;
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (m == last || (chain && model.modules[m].kind != ModuleKind::projector))
      blocks += model.modules[m].layers;
  grid.blocks = {0};
  for (int stage = 0; stage < inner; ++stage)
    grid.blocks.push_back(blocks / inner + (stage < blocks % inner ? 1 : 0));
  grid.blocks.push_back(0);
  return c;
}

// Ranks of each grid; the encoder uses those of the language module where it must.
Case finish(Draft draft, std::string name) {
  ModuleLayout &encoder = draft.encoder, &language = draft.language;
  if (draft.schedule == ScheduleKind::one_f_one_b && language.vpp > 1)
    draft.schedule = ScheduleKind::interleaved;
  language.ranks *= language.tp * language.cp * language.pp;
  switch (draft.placement) {
    case Placement::homogeneous:
      if (encoder.spread == Spread::copied) language.spread = Spread::copied;
      encoder = language;
      break;
    case Placement::colocated:
    case Placement::mixed:
      encoder.ranks = language.ranks;
      if (draft.beside) encoder.pp = language.pp;
      break;
    case Placement::non_colocated:
      encoder.ranks *= encoder.tp * encoder.cp * encoder.pp;
      language.first_rank = encoder.ranks;
      break;
  }
  Case c = draft.rest;
  c.name = std::move(name);
  c.layout.placement = draft.placement;
  c.layout.schedule = draft.schedule;
  c.layout.microbatches = draft.microbatches;
  c.layout.encoder_microbatches = draft.encoder_microbatches;
  c.layout.bridge = draft.bridge;
  if (draft.beside) c.layout.encoder_order = EncoderOrder::interleaved;
  c.layout.modules = {encoder, encoder};
  if (c.deep) c.layout.modules.push_back(encoder);
  if (c.audio) {
    ModuleLayout audio = encoder;
    if (draft.placement == Placement::non_colocated) {  // ranks of its own
      audio.first_rank = encoder.ranks;
      language.first_rank += audio.ranks;
    }
    c.layout.modules.insert(c.layout.modules.end(), 2, audio);
  }
  c.layout.modules.push_back(language);
  if (!c.diffusion) return draft.lone_ends ? with_lone_ends(c) : c;
  ModuleLayout& diffusion = draft.diffusion;
  if (draft.placement == Placement::homogeneous) {
    diffusion = language;
  } else if (draft.beside) {
    if (draft.placement == Placement::non_colocated) c.layout.placement = Placement::mixed;
    diffusion.pp = language.pp;
    diffusion.vpp = language.pp == 1 ? 2 : 1;  // of 3 blocks
    diffusion.first_rank = language.first_rank;
    diffusion.ranks = language.ranks;
  } else {
    if (draft.placement == Placement::colocated) c.layout.placement = Placement::mixed;
    diffusion.first_rank = language.first_rank + language.ranks;
    diffusion.ranks *= diffusion.tp * diffusion.cp * diffusion.pp;
  }
  c.layout.modules.push_back(diffusion);
  return draft.lone_ends ? with_lone_ends(c) : c;
}

bool fits(const Case& c) {
  const Scenario scenario = make_scenario(c);
  return world_size(c.layout) <= kMostRanks && !check_layout(scenario, c.layout) &&
         !check_runnable(scenario, c.layout);
}

}  // namespace

Matrix parity_matrix() {
  Matrix matrix;
  const auto add = [&](const Draft& draft, const std::string& name) {
    const Case c = finish(draft, name);
    if (!fits(c)) {
      ++matrix.refused;
      return;
    }
    matrix.cases.push_back(c);
  };
  const std::vector<Feature>& list = features();
  for (std::size_t i = 0; i < list.size(); ++i) {
    Draft one;
    list[i].add(one);
    add(one, list[i].name);
    for (std::size_t k = i + 1; k < list.size(); ++k) {
      Draft both = one;
      list[k].add(both);
      add(both, list[i].name + " + " + list[k].name);
    }
  }
  return matrix;
}

}  // namespace polyphony::exec::testing

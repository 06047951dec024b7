// Every mask with every assignment of tokens to context-parallel ranks: two microbatches of eight
// packed ragged samples, with images, clips and text in every order.
#include <string>

#include "tests/exec/parity/parity.h"
#include "tests/exec/support/sparse_layer.h"
#include "tests/exec/support/variants.h"

namespace polyphony::exec::testing {
namespace {

Case masked(Mask mask, int contexts, TokenAssignment tokens,
            ContextAttention way = ContextAttention::all_gather, int heads = 0) {
  ModuleLayout grid;
  grid.cp_attention = way;
  grid.cp = grid.ranks = contexts;
  grid.tokens = tokens;
  Case c;
  c.name = std::string("mask ") + name(mask);
  if (contexts > 1)
    c.name += ", cp" + std::to_string(contexts) + " " + name(tokens) + " " + name(way);
  c.layout.modules.assign(5, grid);  // two encoders with their projectors, and the language module
  c.layout.modules.back().cp_heads = heads;
  if (heads > 0) c.name += " by " + std::to_string(heads);
  c.layout.microbatches = 2;
  c.audio = true;
  c.variant = [mask](Model& model) { model.modules[language_module(model).value].mask = mask; };
  return c;
}

Case changed(Case c, const char* what, void (*change)(Module&)) {
  c.name += std::string(", ") + what;
  c.variant = [first = c.variant, change](Model& model) {
    first(model);
    change(model.modules[language_module(model).value]);
  };
  return c;
}

}  // namespace

std::vector<Case> mask_cases() {
  std::vector<Case> cases;
  for (int m = 0; m <= static_cast<int>(last_of(Mask{})); ++m) {
    const auto mask = static_cast<Mask>(m);
    const Case alone = masked(mask, 1, TokenAssignment::contiguous);
    cases.push_back(alone);
    cases.push_back(changed(alone, "latent attention", [](Module& l) { make_latent(l, 12); }));
    cases.push_back(changed(alone, "windows over rows, sinks", make_sliding));
    for (const int contexts : {1, 2}) {
      Case split = masked(mask, contexts, TokenAssignment::zigzag);
      split.name += ", rows of 5 keys";
      split.layout.modules.back().row_split = 5;
      cases.push_back(split);
    }
    for (const ContextAttention way : {ContextAttention::ulysses, ContextAttention::ring})
      for (const TokenAssignment deal : {TokenAssignment::zigzag, TokenAssignment::balanced}) {
        cases.push_back(masked(mask, 2, deal, way));
        cases.push_back(changed(cases.back(), "windows over rows, sinks", make_sliding));
      }
    for (const int heads : {1, 2}) {
      Case groups = masked(mask, 4, TokenAssignment::balanced, ContextAttention::all_gather, heads);
      if (heads == 1) groups = changed(groups, "windows over rows, sinks", make_sliding);
      cases.push_back(groups);
      groups.name += ", rows of 5 keys";
      groups.layout.modules.back().row_split = 5;
      cases.push_back(groups);
    }
    for (const int contexts : {2, 4})
      for (int deal = 0; deal <= static_cast<int>(last_of(TokenAssignment{})); ++deal) {
        cases.push_back(masked(mask, contexts, static_cast<TokenAssignment>(deal)));
        if (contexts == 4)
          cases.push_back(changed(cases.back(), "windows over rows, sinks", make_sliding));
      }
  }
  return cases;
}

}  // namespace polyphony::exec::testing

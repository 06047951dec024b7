#include <algorithm>
#include <cmath>

#include "shared/form/scenario_form.h"
#include "shared/validate/refusal.h"

namespace polyphony {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

void check_range(const Refusal& refuse, const std::string& where, std::int64_t value,
                 std::int64_t most) {
  if (value < 1 || value > most)
    refuse(where, number(value) + " is out of range",
           "write a whole number from 1 to " + number(most));
}

// The edge that conditions it: the hidden states of a language module's last blocks.
void check_conditioning(const Refusal& refuse, const Model& model, ModuleId id,
                        const std::string& where) {
  const auto reads = [&](const Edge& edge) { return edge.to == id; };
  if (std::count_if(model.edges.begin(), model.edges.end(), reads) != 1)
    refuse(where + "/from", "one module must condition it", "name the language module");
  const Edge& edge = *std::find_if(model.edges.begin(), model.edges.end(), reads);
  const Module& source = model.modules[edge.from.value];
  if (source.kind != ModuleKind::language)
    refuse(where + "/from",
           "a diffusion module reads from a language module, not from " + source.name,
           "name the language module");
  if (edge.to_layer != 0)
    refuse(where + "/from", "every block reads the conditioning", "remove \"to_layer\"");
  if (edge.from_layer < 1 || edge.from_layer > source.layers)
    refuse(where + "/from",
           "layer " + number(edge.from_layer) + " of " + source.name + " is no block of it",
           "1 to " + number(source.layers) + ", or leave \"from_layer\" out");
}

}  // namespace

void check_diffusion(const Refusal& refuse, const Model& model, ModuleId id) {
  const Module& m = model.modules[id.value];
  const std::string where = "/model/" + m.name;
  check_range(refuse, where + "/patch", m.patch, 1 << 8);
  check_range(refuse, where + "/latent_channels", m.latent_channels, 1 << 12);
  check_range(refuse, where + "/latent_tokens", m.latent_tokens, kMostTokens);
  check_range(refuse, where + "/modulation", m.modulation, kMostWidth);
  if (m.kv_heads != m.heads)
    refuse(where, "a diffusion module has as many key/value heads as heads", "remove \"kv_heads\"");
  if (m.hidden % 4 != 0)
    refuse(where + "/hidden",
           number(m.hidden) + " does not divide into sines and cosines of two axes",
           "nearest: " + number(m.hidden / 4 * 4) + " or " + number((m.hidden / 4 + 1) * 4));
  if (m.gated)
    refuse(where + "/gated", "a gated diffusion feed-forward is not supported yet",
           "use \"gated\": false");
  if (!m.attention_bias)
    refuse(where + "/attention_bias",
           "a diffusion module without attention biases is not supported yet", "remove the key");
  if (!(m.loss_weight > 0) || !std::isfinite(m.loss_weight))
    refuse(where + "/loss_weight", "it must be above 0", "1 is usual");
  check_conditioning(refuse, model, id, where);
  for (const Edge& edge : model.edges)
    if (edge.from == id)
      refuse("/model/" + model.modules[edge.to.value].name + "/from",
             "a diffusion module ends in its loss: nothing can read from " + m.name,
             "remove the key");
}

void check_edge_layers(const Refusal& refuse, const Model& model) {
  for (const Edge& edge : model.edges) {
    const Module& from = model.modules[edge.from.value];
    const Module& to = model.modules[edge.to.value];
    const std::string where = "/model/" + to.name + "/from";
    if (edge.from_layer >= 0) {
      // The module's output has left the last layer; a language module's head makes no rows.
      const int last = static_cast<int>(layers(from).size()) - 1;
      const int most = from.kind == ModuleKind::language ? last - 1 : last;
      if (edge.from_layer > most)
        refuse(where, from.name + " has no layer " + number(edge.from_layer) + " to read from",
               "0 to " + number(most) + ", or leave \"from_layer\" out");
    }
    if (edge.to_layer == 0) continue;
    if (to.kind != ModuleKind::language)
      refuse(where, "rows are added to inner layers of language modules only",
             "remove \"to_layer\"");
    if (edge.to_layer < 0 || edge.to_layer > to.layers)
      refuse(where, to.name + " has no block " + number(edge.to_layer) + " to add rows before",
             "1 to " + number(to.layers));
    if (output_width(from) != to.hidden)
      refuse(where,
             "rows of width " + number(output_width(from)) + " cannot be added to a width of " +
                 number(to.hidden),
             "put a projector between");
  }
}

}  // namespace polyphony

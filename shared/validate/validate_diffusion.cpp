#include <algorithm>
#include <cmath>

#include "shared/form/scenario_form.h"
#include "shared/text/number_text.h"
#include "shared/validate/refusal.h"

namespace polyphony {
namespace {

void check_range(const Refusal& refuse, const std::string& where, std::int64_t value,
                 std::int64_t most) {
  if (value < 1 || value > most)
    refuse(where,
           where.substr(where.rfind('/') + 1) + " must be from 1 to " + number(most) + ", got " +
               number(value),
           "write a whole number");
}

// Checks the edge that conditions the module: it comes from the hidden states of a language module.
void check_conditioning(const Refusal& refuse, const Model& model, ModuleId id,
                        const std::string& where) {
  const auto reads = [&](const Edge& edge) { return edge.to == id; };
  if (std::count_if(model.edges.begin(), model.edges.end(), reads) != 1)
    refuse(where + "/from", "exactly one module must condition a diffusion module",
           "name the language module");
  const Edge& edge = *std::find_if(model.edges.begin(), model.edges.end(), reads);
  const Module& source = model.modules[edge.from.value];
  if (source.kind != ModuleKind::language)
    refuse(where + "/from", "from must be a language module, got " + source.name,
           "name the language module");
  if (edge.to_layer != 0)
    refuse(where + "/from", "to_layer must not be given: every block reads the conditioning",
           "remove \"to_layer\"");
  if (edge.from_layer < 1 || edge.from_layer > source.layers)
    refuse(where + "/from",
           "from_layer must be a block of " + source.name + ", from 1 to " + number(source.layers) +
               ", got " + number(edge.from_layer),
           "remove the key for the last block");
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
    refuse(where, "kv_heads must be equal to heads in a diffusion module", "remove \"kv_heads\"");
  if (m.hidden % 4 != 0)
    refuse(where + "/hidden",
           "hidden must be a multiple of 4 (sine and cosine of two axes), got " + number(m.hidden),
           "nearest: " + number(m.hidden / 4 * 4) + " or " + number((m.hidden / 4 + 1) * 4));
  if (m.gated)
    refuse(where + "/gated",
           "a gated feed-forward layer is not supported yet in a diffusion module",
           "use \"gated\": false");
  if (!m.attention_bias)
    refuse(where + "/attention_bias",
           "a diffusion module without attention biases is not supported yet", "remove the key");
  if (!(m.loss_weight > 0) || !std::isfinite(m.loss_weight))
    refuse(where + "/loss_weight", "loss_weight must be above 0", "1 is usual");
  check_conditioning(refuse, model, id, where);
  for (const Edge& edge : model.edges)
    if (edge.from == id)
      refuse(
          "/model/" + model.modules[edge.to.value].name + "/from",
          "from must not be " + m.name + ": a diffusion module ends in its loss and has no output",
          "name another module");
}

void check_edge_layers(const Refusal& refuse, const Model& model) {
  for (const Edge& edge : model.edges) {
    const Module& from = model.modules[edge.from.value];
    const Module& to = model.modules[edge.to.value];
    const std::string where = "/model/" + to.name + "/from";
    if (edge.from_layer >= 0) {
      // The last layer's output is the module's output. The head of a language module has no output
      // rows.
      const int last = static_cast<int>(layers(from).size()) - 1;
      const int most = from.kind == ModuleKind::language ? last - 1 : last;
      if (edge.from_layer > most)
        refuse(where,
               "from_layer must be a layer of " + from.name + ", from 0 to " + number(most) +
                   ", got " + number(edge.from_layer),
               "remove the key for the last layer");
    }
    if (edge.to_layer == 0) continue;
    if (to.kind != ModuleKind::language)
      refuse(where, "to_layer must be 0: only language modules have edges into inner layers",
             "remove \"to_layer\"");
    if (edge.to_layer < 0 || edge.to_layer > to.layers)
      refuse(where,
             "to_layer must be a block of " + to.name + ", from 1 to " + number(to.layers) +
                 ", got " + number(edge.to_layer),
             "the rows are added before this block");
    if (output_width(from) != to.hidden)
      refuse(where,
             "the output of " + from.name + " must have the width " + number(to.hidden) + " of " +
                 to.name + ", got " + number(output_width(from)),
             "put a projector between the two");
  }
}

}  // namespace polyphony

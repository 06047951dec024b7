#include <algorithm>
#include <cmath>
#include <numeric>

#include "shared/form/scenario_form.h"
#include "shared/scenario/typical_batch.h"
#include "shared/text/number_text.h"
#include "shared/validate/refusal.h"
#include "shared/validate/validate.h"

namespace polyphony {
namespace {

void check_low_rank(const Refusal& refuse, const Module& m, const std::string& where) {
  const bool lora = m.trainable == Trainable::lora;
  if (lora && m.kind == ModuleKind::projector)
    refuse(where + "/train", "lora needs transformer blocks, which a projector does not have",
           "use \"full\" or \"frozen\"");
  if (lora && m.lora_rank < 1)
    refuse(where, "key \"lora_rank\" is missing", "write the rank of the update, such as 16");
  if (!lora && (m.lora_rank != 0 || m.lora_alpha != 0))
    refuse(where + (m.lora_rank != 0 ? "/lora_rank" : "/lora_alpha"),
           std::string(m.lora_rank != 0 ? "lora_rank" : "lora_alpha") +
               " needs \"train\": \"lora\", got " + name(m.trainable),
           "use \"train\": \"lora\", or remove the key");
  if (lora && m.lora_rank > m.hidden)
    refuse(where + "/lora_rank",
           "lora_rank must be at most hidden, " + number(m.hidden) + ", got " + number(m.lora_rank),
           "for updates of full rank use \"train\": \"full\"");
}

void check_language(const Refusal& refuse, const Module& m, const std::string& where) {
  check_stack(refuse, m, where);
  check_sizes(refuse, where, {{"vocab", m.vocab, 1 << 24}});
  if (m.heads % m.kv_heads != 0)
    refuse(
        where + "/kv_heads",
        "kv_heads must be a divisor of heads, " + number(m.heads) + ", got " + number(m.kv_heads),
        "each key/value head serves an equal group of heads");
  if (m.head_dim % 2 != 0)
    refuse(where + "/head_dim", "head_dim must be even (rotary pairs), got " + number(m.head_dim),
           "use an even width");
  if (!(m.rope_theta >= 1))
    refuse(where + "/rope_theta", "rope_theta must be at least 1", "10000 is usual");
  check_mixers(refuse, m, where);
  if (m.rope_scaling != RopeScaling::none && m.rope_factor < 1)
    refuse(where + "/rope_factor", "rope_factor must be at least 1 with rope_scaling",
           "such as 8, as in Llama 3.1");
  const bool yarn = m.rope_scaling == RopeScaling::yarn;
  if ((m.rope_scaling == RopeScaling::llama3 || yarn) &&
      (m.rope_context < 1 || m.rope_low_factor <= 0 || m.rope_high_factor < m.rope_low_factor ||
       (m.rope_high_factor == m.rope_low_factor && !yarn)))
    refuse(where + "/rope_high_factor",
           std::string("rope_scaling ") + name(m.rope_scaling) +
               " needs rope_context, rope_low_factor and a " +
               (yarn ? "rope_high_factor that is not smaller" : "larger rope_high_factor"),
           "such as 8192, 1 and 4, as in Llama 3.1, or 4096, 1 and 32, as in GPT-OSS");
  if (m.rope_attention != 1 && m.rope_scaling != RopeScaling::yarn)
    refuse(where + "/rope_attention", "rope_attention needs rope_scaling yarn",
           "remove the key, or write \"rope_scaling\": \"yarn\"");
  if (m.score_factor != 1 && m.key_value_rank == 0)
    refuse(where + "/score_factor", "score_factor needs latent attention (key_value_rank)",
           "remove the key");
  const int rotated = m.rotary_dim > 0 ? m.rotary_dim : m.head_dim;
  const std::vector<int>& sections = m.rope_sections;
  if (sections.empty()) return;
  if (sections.size() != 3 || *std::min_element(sections.begin(), sections.end()) < 0 ||
      std::accumulate(sections.begin(), sections.end(), std::int64_t{0}) != rotated / 2)
    refuse(where + "/rope_sections",
           "rope_sections must be three numbers whose sum is the " + number(rotated / 2) +
               " rotary frequencies of a head",
           "such as [16, 24, 24] for heads of width 128, as in Qwen2-VL");
}

const Module* source_of(const Model& model, ModuleId to) {
  for (const Edge& edge : model.edges)
    if (edge.to == to) return &model.modules[edge.from.value];
  return nullptr;
}

void check_projector(const Refusal& refuse, const Model& model, std::size_t id,
                     const std::string& where) {
  const Module& m = model.modules[id];
  const Module* source = source_of(model, ModuleId(id));
  if (source == nullptr)
    refuse(where, "key \"from\" is missing", "name the module whose output it projects");
  if (source->kind != ModuleKind::vision && source->kind != ModuleKind::audio)
    refuse(where + "/from", "from must be a vision or audio module, got " + source->name,
           "chains of projectors are not supported");
  if (m.projector_hidden < 0 || m.projector_hidden > kMostWidth)
    refuse(where + "/hidden",
           "hidden must be from 0 to " + number(kMostWidth) + ", got " + number(m.projector_hidden),
           "0: one matrix without a hidden layer");
  if (source->kind == ModuleKind::audio) {
    if (m.merge < 1 || source->audio_tokens % m.merge != 0)
      refuse(where + "/merge",
             "merge must be a divisor of the " + number(source->audio_tokens) +
                 " tokens of a clip, got " + number(m.merge),
             "use a divisor, or other audio_tokens of " + source->name);
    return;
  }
  if (source->abstract.is) {
    if (source->abstract.tokens % merged_rows(m) != 0)
      refuse(where + "/merge",
             "merge must divide the " + number(source->abstract.tokens) +
                 " tokens of an image, got " + number(merged_rows(m)) + " tokens in one",
             "use a divisor, or another number of \"tokens\" of " + source->name);
    return;
  }
  const int side = source->image_size / source->patch;
  if (m.merge < 1 || side % m.merge != 0)
    refuse(where + "/merge",
           "merge must divide the " + number(side) + "×" + number(side) +
               " patches of an image, got " + number(m.merge) + "×" + number(m.merge),
           "use \"1x1\", or an image_size that is a multiple of " +
               number(std::int64_t{m.merge} * source->patch) + " pixels");
}

// Checks the graph of modules: edges go from encoders through projectors into one language module,
// and from there into a diffusion module. Checks that depend on a layout:
// shared/check/check_model.cpp.
void check_graph(const Refusal& refuse, const Model& model) {
  const auto count = [&](ModuleKind kind) {
    return std::count_if(model.modules.begin(), model.modules.end(),
                         [&](const Module& m) { return m.kind == kind; });
  };
  if (count(ModuleKind::language) == 0)
    refuse("/model", "the model must have a language module", "add \"language\": {…}");
  if (count(ModuleKind::language) > 1)
    refuse("/model", "the model must have one language module, got several", "keep one");
  for (const ModuleKind kind : {ModuleKind::vision, ModuleKind::audio, ModuleKind::diffusion})
    if (count(kind) > 1)
      refuse("/model", std::string("several ") + name(kind) + " modules are not supported yet",
             "keep one");
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const Module& module = model.modules[m];
    const std::string where = "/model/" + module.name;
    std::int64_t inputs = 0, outputs = 0;
    for (const Edge& edge : model.edges) {
      inputs += edge.to == ModuleId(m) ? 1 : 0;
      outputs += edge.from == ModuleId(m) ? 1 : 0;
      if (edge.to != ModuleId(m) || module.kind != ModuleKind::language) continue;
      const Module& source = model.modules[edge.from.value];
      // Between abstract modules, the projector's time may be part of its neighbor's.
      if (source.kind != ModuleKind::projector && !(module.abstract.is && source.abstract.is))
        refuse(where + "/from", "from must be a projector, got " + source.name,
               "put a projector between the two");
    }
    const bool encoder = module.kind == ModuleKind::vision || module.kind == ModuleKind::audio;
    if (module.kind == ModuleKind::projector && inputs > 1)
      refuse(where + "/from", "from must be one module for a projector, got " + number(inputs),
             "name one module");
    if (encoder && inputs > 0)
      refuse(where + "/from",
             std::string("from must not be given: the module reads ") +
                 (module.kind == ModuleKind::vision ? "images" : "audio") + " only",
             "remove the key");
    if ((encoder || module.kind == ModuleKind::projector) && outputs == 0)
      refuse(where, "no module reads the output of " + module.name,
             "name it in the key \"from\" of another module");
  }
}

}  // namespace

void check_sizes(const Refusal& refuse, const std::string& where,
                 const std::vector<ModuleSize>& sizes) {
  for (const ModuleSize& size : sizes)
    if (size.value < 1 || size.value > size.most)
      refuse(where + "/" + size.key,
             std::string(size.key) + " must be from 1 to " + number(size.most) + ", got " +
                 number(size.value),
             "write a whole number");
}

void check_stack(const Refusal& refuse, const Module& m, const std::string& where) {
  check_sizes(refuse, where,
              {{"layers", m.layers, kMostLayers},
               {"hidden", m.hidden, kMostWidth},
               {"heads", m.heads, kMostWidth},
               {"kv_heads", m.kv_heads, kMostWidth},
               {"head_dim", m.head_dim, kMostWidth}});
  if (m.experts == 0 || m.dense_blocks > 0)
    check_sizes(refuse, where, {{"ffn", m.ffn, 64 * kMostWidth}});
  if (std::int64_t{m.heads} * m.head_dim > kMostWidth)
    refuse(where + "/head_dim",
           "heads · head_dim must be at most " + number(kMostWidth) + ", got " + number(m.heads) +
               " heads of " + number(m.head_dim),
           "heads · head_dim is usually the hidden size");
}

void validate_model(const Refusal& refuse, const Model& model) {
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const Module& module = model.modules[m];
    const std::string where = "/model/" + module.name;
    if (module.kind == ModuleKind::diffusion) {
      check_stack(refuse, module, where);
      check_diffusion(refuse, model, ModuleId(m));
    }
    if (module.abstract.is) {
      if (module.trainable == Trainable::lora)
        refuse(where + "/train",
               "lora needs the module's dimensions, which an abstract module does not have",
               "use \"full\", with the backward_weight and parameters of the low-rank update");
      continue;
    }
    check_low_rank(refuse, module, where);
    check_experts(refuse, module, where);
    if (module.kind == ModuleKind::vision) check_vision(refuse, module, where);
    if (module.kind == ModuleKind::audio) check_audio(refuse, module, where);
    if (module.kind == ModuleKind::language) check_language(refuse, module, where);
  }
  check_edge_layers(refuse, model);
  check_graph(refuse, model);
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind == ModuleKind::projector)
      check_projector(refuse, model, m, "/model/" + model.modules[m].name);
  if (std::none_of(model.modules.begin(), model.modules.end(),
                   [](const Module& m) { return m.trainable != Trainable::frozen; }))
    refuse("/model", "at least one module must be trained, got only frozen ones",
           "set \"train\": \"full\" in one of them");
}

}  // namespace polyphony

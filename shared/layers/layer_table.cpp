#include "shared/layers/layer_table.h"

#include <array>

#include "shared/layers/abstract_layers.h"
#include "shared/layers/block.h"
#include "shared/layers/diffusion.h"
#include "shared/layers/encoder_layers.h"
#include "shared/layers/language_layers.h"
#include "shared/layers/projector.h"
#include "shared/layers/self_attention.h"

namespace polyphony {
namespace {

template <class Kind>
constexpr LayerRow row(LayerKind kind, const char* name, LayerPlace place) {
  return {.kind = kind,
          .name = name,
          .place = place,
          .reads_conditioning = false,
          .parameters = Kind::parameters,
          .forward = [](const LayerKernels& layer) { Kind(layer).forward(); },
          .backward_input = [](const LayerKernels& layer,
                               bool again) { Kind(layer).backward_input(again); },
          .backward_weight = [](const LayerKernels& layer) { Kind(layer).backward_weight(); },
          .tape = Kind::tape,
          .input_kept = Kind::input_kept,
          .recomputed_bytes = [](const LayerBytes&) -> std::int64_t { return 0; },
          .received_again_bytes = [](const LayerBytes&) -> std::int64_t { return 0; }};
}
template <class Kind>
constexpr LayerRow block(LayerKind kind, const char* name) {
  LayerRow made = row<Kind>(kind, name, LayerPlace::block);
  made.recomputed_bytes = [](const LayerBytes& bytes) {
    return block_part(bytes.block.attention).recomputed_bytes(bytes);
  };
  made.received_again_bytes = [](const LayerBytes& bytes) {
    return block_part(bytes.block.attention).received_again_bytes(bytes);
  };
  return made;
}

constexpr std::array kRows = [] {
  std::array rows{
      row<PatchEmbedding>(LayerKind::patch_embedding, "patch_embedding", LayerPlace::input),
      row<AudioEmbedding>(LayerKind::audio_embedding, "audio_embedding", LayerPlace::input),
      block<Block>(LayerKind::encoder_block, "encoder_block"),
      row<EncoderNorm>(LayerKind::encoder_norm, "encoder_norm", LayerPlace::tail),
      row<MlpProjector>(LayerKind::projector_mlp, "projector_mlp", LayerPlace::tail),
      row<LinearProjector>(LayerKind::projector_linear, "projector_linear", LayerPlace::tail),
      row<TokenEmbedding>(LayerKind::token_embedding, "token_embedding", LayerPlace::input),
      block<Block>(LayerKind::decoder_block, "decoder_block"),
      row<LanguageHead>(LayerKind::language_head, "language_head", LayerPlace::tail),
      row<LatentEmbedding>(LayerKind::latent_embedding, "latent_embedding", LayerPlace::input),
      block<DiffusionBlock>(LayerKind::diffusion_block, "diffusion_block"),
      row<DiffusionHead>(LayerKind::diffusion_head, "diffusion_head", LayerPlace::tail),
      row<AbstractEnd>(LayerKind::abstract_input, "abstract_input", LayerPlace::input),
      row<AbstractBlock>(LayerKind::abstract_block, "abstract_block", LayerPlace::block),
      row<AbstractEnd>(LayerKind::abstract_output, "abstract_output", LayerPlace::tail),
  };
  rows[static_cast<std::size_t>(LayerKind::diffusion_block)].reads_conditioning = true;
  return rows;
}();

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].kind != static_cast<LayerKind>(i)) return false;
  return kRows.size() == kLayerKinds;
}
static_assert(in_order(), "there must be one row per LayerKind, in the order of the enum");

}  // namespace

const LayerRow& layer_row(LayerKind kind) { return kRows[static_cast<std::size_t>(kind)]; }

bool is_block(LayerKind kind) { return layer_row(kind).place == LayerPlace::block; }

const char* name(LayerKind kind) { return layer_row(kind).name; }

bool reads_conditioning(const Module& module, LayerRange range) {
  if (module.condition == 0) return false;
  const std::vector<LayerKind> stack = layers(module);
  for (int layer = range.begin; layer < range.end; ++layer)
    if (layer_row(stack[static_cast<std::size_t>(layer)]).reads_conditioning) return true;
  return false;
}

}  // namespace polyphony

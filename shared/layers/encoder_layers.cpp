#include "shared/layers/encoder_layers.h"

namespace polyphony {

void PatchEmbedding::parameters(LayerParameters add) {
  const Module& m = add.module();
  const std::int64_t side = m.image_size / m.patch;
  LayerParameters own = add.under("patch_embedding");
  Parameter& weight =
      own.matrix("weight", m.hidden, std::int64_t{m.channels} * m.patch * m.patch, Cut::replicated);
  // Its input belongs to the batch. The gradient of its output is that of the position table,
  // unless there is no such table, or the rows also include class tokens.
  weight.role = m.rotary || m.class_token ? Role::table : Role::none;
  weight.rows = Rows::own;
  if (m.patch_bias) own.vector("bias", m.hidden, Cut::replicated, Initial::zeros);
  if (m.class_token)
    own.table("class_token", 1, m.hidden, Cut::replicated, kPositionDeviation, Rows::items);
  if (!m.rotary)
    own.table("position", side * side + (m.class_token ? 1 : 0), m.hidden, Cut::replicated,
              kPositionDeviation, Rows::embedded);
  if (m.input_norm) add.norm("input_norm");
}

Linear PatchEmbedding::patches() const {
  return {std::min(own(embedded_rows()), size_.tokens),
          std::int64_t{module_.channels} * module_.patch * module_.patch, hidden(), true};
}

void PatchEmbedding::forward() {
  const std::int64_t rows = own(embedded_rows());
  if (is_own() && module_.class_token) more_launches(2);  // lists of patches and tokens
  forward_cut(patches());
  if (module_.class_token) passes(rows * hidden(), 2, 2);
  if (!module_.rotary) {
    if (is_own() && picks_positions()) passes(rows * hidden(), 2, 2);  // index list, selection
    passes(rows * hidden(), 3, 1);                                     // + position embedding
  }
  if (module_.input_norm) norm(rows, hidden());
}

// Whether rows of the position table must be selected. This is not needed if all images are as
// large as the table.
bool PatchEmbedding::picks_positions() const {
  const std::int64_t side = module_.image_size / module_.patch;
  return module_.class_token || sequence() || size_.tokens != size_.sequences * side * side;
}

void PatchEmbedding::backward_input(bool) {  // pixels have no gradient
  if (lora()) return;
  if (module_.input_norm) norm_backward(own(embedded_rows()), hidden());
  if (module_.class_token) passes(patches().rows * hidden(), 2, 1);
}

// Saves the input of its norm, if it is trained.
std::int64_t PatchEmbedding::tape(const LayerBytes& bytes) {
  if (!bytes.module.input_norm || !bytes.trains()) return 0;
  const std::int64_t rows =
      bytes.own(bytes.size.tokens + (bytes.module.class_token ? bytes.size.sequences : 0));
  return bytes.element() * rows * bytes.module.hidden + bytes.statistics(rows);
}

void PatchEmbedding::backward_weight() {
  weight_gradient(patches());
  if (module_.class_token) passes(size_.sequences * hidden(), 2, 3);
  // Gradient of the position table. Own form with a whole table: summed over images, then added.
  if (!module_.rotary)
    passes(own(embedded_rows()) * hidden(), {3, 1},
           picks_positions() ? Passes{3, 1} : Passes{1, 2});
  if (module_.input_norm) norm_weights(1);
}

// The columns of a convolution's matrix are ordered by (one of three frames, input channel).
void AudioEmbedding::parameters(LayerParameters add) {
  const Module& m = add.module();
  add.matrix_and_bias("conv1", m.hidden, 3 * std::int64_t{m.mel_bins}, Cut::replicated, true,
                      Rows::frames);
  add.matrix_and_bias("conv2", m.hidden, 3 * std::int64_t{m.hidden}, Cut::replicated, true,
                      Rows::own);
}

Linear AudioEmbedding::conv1() const {
  return {std::min(2 * own(size_.tokens) + (sequence() ? 1 : 0), 2 * size_.tokens),
          3 * std::int64_t{module_.mel_bins}, hidden(), true};
}
Linear AudioEmbedding::conv2() const { return {own(size_.tokens), 3 * hidden(), hidden(), true}; }

// Passes besides the GEMMs: rows of three frames gathered (2), GELU (2), fixed positions added (3).
void AudioEmbedding::forward() {
  passes(conv1().rows * conv1().in, 2, 1);
  forward_cut(conv1());
  passes(conv1().rows * hidden(), 2, 1);
  passes(conv2().rows * conv2().in, 2, 1);
  forward_cut(conv2());
  passes(conv2().rows * hidden(), 5, 2);
}

void AudioEmbedding::backward_input(bool) {  // frames have no gradient
  if (lora()) return;
  passes(conv2().rows * hidden(), 3, 1);
  input_gradient(conv2());
  passes(conv2().rows * conv2().in, 3, 2);  // zeros, to which each frame's parts are added
  passes(conv1().rows * hidden(), 3, 1);
}

void AudioEmbedding::backward_weight() {
  weight_gradient(conv2());
  weight_gradient(conv1());
}

// Saves the inputs of both activations and of both matrices; a matrix row holds three frames.
std::int64_t AudioEmbedding::tape(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  return bytes.trains()
             ? bytes.element() * bytes.own(bytes.size.tokens) * 6 * (m.mel_bins + m.hidden)
             : 0;
}

void EncoderNorm::forward() {
  if (module_.class_token) {
    if (is_own()) more_launches(2);  // lists of patches and tokens
    if (sequence()) gather(embedded_rows(), hidden());
    passes(own(size_.tokens) * hidden(), 2, 1);
  }
  if (module_.final_norm) norm(own(size_.tokens), hidden());
}

void EncoderNorm::backward_input(bool) {
  if (module_.final_norm) norm_backward(own(size_.tokens), hidden());
  if (!module_.class_token) return;
  passes((embedded_rows() + 2 * own(size_.tokens)) * hidden(), 1, 2);  // zeros, then the rows
  if (sequence()) scatter(embedded_rows(), hidden());
}

std::int64_t EncoderNorm::tape(const LayerBytes& bytes) {
  if (!bytes.module.final_norm) return 0;
  return bytes.input() + bytes.statistics(bytes.own(bytes.size.tokens));
}

}  // namespace polyphony

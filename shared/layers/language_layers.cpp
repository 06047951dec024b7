#include "shared/layers/language_layers.h"

namespace polyphony {
namespace {

// A tied matrix is also the output matrix, so it has the initial values of one.
Parameter& token_table(LayerParameters add, Rows rows) {
  const Module& m = add.module();
  const double deviation = m.tied ? 1 / std::sqrt(static_cast<double>(m.hidden)) : kTokenDeviation;
  Parameter& table =
      add.under("embedding").table("weight", m.vocab, m.hidden, Cut::rows, deviation, rows);
  table.tied = m.tied;
  return table;
}

}  // namespace

void TokenEmbedding::parameters(LayerParameters add) { token_table(add, Rows::tokens); }

void LanguageHead::parameters(LayerParameters add) {
  const Module& m = add.module();
  LayerParameters own = add.under("head");
  own.norm("norm", Rows::loss);
  if (!m.tied) {
    own.matrix("output.weight", m.vocab, m.hidden, Cut::rows, Rows::loss);
  } else if (add.first() > 0) {
    Parameter& copy = token_table(add, Rows::loss);
    copy.role = Role::matrix;
    copy.copy = true;
  }
}

// Own form, if the vocabulary is split: finds which ids are in the rank's part, and where (6
// launches).
void LayerKernels::local_ids(std::int64_t ids) {
  if (is_own() && context_.tp > 1) add(KernelKind::embedding, 0, ids * 6 * kIndex, 6);
}

// Own form: rows are looked up, with zeros for rows of other ranks. Text-only rows are already in
// order. Otherwise the positions of all rows are concatenated (without sequence parallelism also
// counted and inverted), and the rows are moved as in the plain form.
void TokenEmbedding::own_forward() {
  const std::int64_t text = size_.text_tokens;
  local_ids(text);
  if (context_.tp > 1) add(KernelKind::embedding, 0, text * hidden() * element(), 1);
  if (is_text()) return add(KernelKind::embedding, 0, 2 * text * hidden() * element(), 1), void();
  add(KernelKind::embedding, 0, size_.tokens * (sequence() ? 2 : 5) * kIndex, sequence() ? 1 : 3);
}

void TokenEmbedding::forward() {
  const std::int64_t text = size_.text_tokens, other = size_.tokens - text;
  if (module_.scaled_embedding) passes(text * hidden(), 2, 1);
  if (is_own()) own_forward();
  if (is_own() && is_text()) return sum(size_.tokens, hidden());
  if (!sequence()) {
    // Looked up (2), concatenated with the other rows, and reordered.
    add(KernelKind::embedding, 0, 2 * (text + size_.tokens) * hidden() * element(), 3);
    all_reduce(text, hidden());
    return;
  }
  // Looked up (2), concatenated with the rank's other rows (2), written (2) into a zeroed array
  // (1).
  const std::int64_t passed = 2 * text + 4 * (text + own(other)) + size_.tokens;
  add(KernelKind::embedding, 0, passed * hidden() * element(), 4);
  scatter(size_.tokens, hidden());
}

void TokenEmbedding::backward_input(bool) {
  if (module_.scaled_embedding && !lora()) passes(size_.text_tokens * hidden(), 2, 1);
  if (lora() && !input_grad_) return;
  if (sequence()) gather(size_.tokens, hidden());
  if (is_own() && is_text()) return;
  const std::int64_t others = own(size_.tokens - size_.text_tokens);
  if (is_own())  // reordered as they were concatenated
    add(KernelKind::embedding, 0, 2 * (size_.text_tokens + others) * hidden() * element(), 1);
  if (!input_grad_) return;
  add(KernelKind::embedding, 0, 2 * others * hidden() * element(), 1);
}

void TokenEmbedding::backward_weight() {
  if (is_own()) {
    // A copy, with zeros for the rows of other ranks; then added to the table's gradient.
    if (context_.tp > 1)
      add(KernelKind::embedding, 0, 3 * size_.text_tokens * hidden() * wide_element(), 2);
    add(KernelKind::embedding, 0, size_.text_tokens * hidden() * (element() + 2 * wide_element()),
        1);
    return;
  }
  add(KernelKind::embedding, 0, size_.text_tokens * hidden() * (element() + 2 * wide_element()), 2);
}

Linear LanguageHead::vocabulary() const {
  return {size_.loss_tokens, hidden(), (module_.vocab + context_.tp - 1) / context_.tp, false};
}

void LanguageHead::forward() {
  const std::int64_t rows = size_.loss_tokens;
  passes(own(rows) * hidden(), {2, 1}, {2, 2});  // labeled rows selected; own form: listed first
  norm(own(rows), hidden());
  if (sequence()) reduce(CollectiveKind::all_gather, rows * hidden() * element());
  local_ids(rows);
  forward_cut(vocabulary());
  if (is_own()) {
    // One pass over the logits computes the maximum, the sum and the label's logit of each row. If
    // the vocabulary is split: own maximum saved next to that of all ranks (2), converted to a
    // factor (1) on the own sum (1). Then logarithm, plus maximum, minus label, sum over rows,
    // scaling.
    add(KernelKind::loss, 0, rows * vocabulary().out * element(), 1);
    add(KernelKind::loss, 0, rows * (context_.tp > 1 ? 21 : 10) * wide_element(),
        context_.tp > 1 ? 9 : 5);
  } else {
    plain_loss();
  }
  reduce(CollectiveKind::all_reduce_max, rows * wide_element());
  reduce(CollectiveKind::all_reduce, rows * wide_element());  // sums of exponentials
  reduce(CollectiveKind::all_reduce, rows * wide_element());  // target logits
}

void LanguageHead::plain_loss() {
  const std::int64_t rows = size_.loss_tokens;
  // Passes over [rows, V/tp]: widened (2), maximum (1), subtraction (2), exponentials (2), sum (1);
  // target logits selected.
  add(KernelKind::loss, 0, rows * vocabulary().out * 8 * wide_element(), 8);
}

void LanguageHead::backward_input(bool) {
  const std::int64_t rows = size_.loss_tokens;
  if (is_own())  // gradient of the loss; then gradients overwrite the logits in place
    add(KernelKind::loss, 0, 2 * rows * vocabulary().out * element(), 2);
  else
    add(KernelKind::loss, 0, rows * vocabulary().out * 4 * wide_element(),
        4);  // probabilities − one-hot, scaled, narrowed
  const std::int64_t bytes = rows * hidden() * element();  // own parts, not padded
  if (sequence() && context_.weight_grad && !lora()) reduce(CollectiveKind::all_gather, bytes);
  input_gradient(vocabulary());
  reduce(sequence() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, bytes);
  norm_backward(own(rows), hidden());
  // Zeros, into which the labeled rows are written.
  passes((own(size_.tokens) + 3 * own(rows)) * hidden(), 1, 2);
}

void LanguageHead::backward_weight() {
  weight_gradient(vocabulary());
  norm_weights(1);
}

std::int64_t LanguageHead::tape(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t loss = bytes.size.loss_tokens, own = bytes.own(loss);
  return (bytes.trains() ? 2 : 1) * bytes.element() * own * m.hidden + bytes.statistics(own) +
         bytes.wide() * loss * ((m.vocab + bytes.context.tp - 1) / bytes.context.tp);
}

}  // namespace polyphony

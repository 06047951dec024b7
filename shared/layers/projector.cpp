#include "shared/layers/projector.h"

namespace polyphony {
namespace {

// Bytes of the input, counted in rows before the merge.
std::int64_t source_bytes(const LayerBytes& bytes) {
  const std::int64_t merged = merged_rows(bytes.module);
  return bytes.element() * bytes.own(bytes.size.tokens * merged) *
         (bytes.module.projector_in / merged);
}
bool shares_rows(const LayerBytes& bytes) { return bytes.context.sp && bytes.context.tp > 1; }
// Whether merging needs a copy: patches must be reordered; consecutive frames are already adjacent.
bool copies(const Module& module) {
  return merged_rows(module) > 1 && module.source != ModuleKind::audio;
}

}  // namespace

void MlpProjector::parameters(LayerParameters add) {
  const Module& m = add.module();
  add.matrix_and_bias("fc1", m.projector_hidden, m.projector_in, Cut::rows, true);
  add.matrix_and_bias("fc2", m.projector_out, m.projector_hidden, Cut::columns, true);
}

Linear MlpProjector::in() const {
  return {size_.tokens, module_.projector_in, module_.projector_hidden / context_.tp, true};
}
Linear MlpProjector::out() const {
  return {size_.tokens, module_.projector_hidden / context_.tp, module_.projector_out, true};
}

// Own form: lists the order in which neighboring patches are merged, and inverts it.
void Projector::list_order() {
  if (is_own() && copies(module_)) add(KernelKind::embedding, 0, 4 * source_rows() * kIndex, 3);
}
// Concatenates merge² neighboring patches into one row.
void Projector::join_rows() {
  if (!is_own() || copies(module_)) passes(size_.tokens * module_.projector_in, 2, 1);
}

void MlpProjector::forward() {
  list_order();
  if (sequence()) gather(source_rows(), source_width());
  join_rows();
  forward_cut(in());
  passes(in().rows * in().out, 2, 1);  // GELU
  forward_row(out());
}

void MlpProjector::backward_input(bool) {
  const Linear first = in();
  input_gradient_row(out());
  passes(first.rows * first.out, 3, 1);
  if (sequence() && context_.weight_grad) {  // fc1's input gathered and merged again
    gather(source_rows(), source_width());
    join_rows();
  }
  if (!input_grad_) return;  // nothing before fc1 needs a gradient
  input_gradient(first);
  if (!sequence()) all_reduce(first.rows, first.in);
  join_rows();
  if (sequence()) scatter(source_rows(), source_width());
}

void MlpProjector::backward_weight() {
  weight_gradient(out());
  weight_gradient(in());
}

std::int64_t MlpProjector::tape(const LayerBytes& bytes) {
  const std::int64_t inner =
      bytes.element() * bytes.size.tokens * (bytes.module.projector_hidden / bytes.context.tp);
  return (bytes.trains() ? source_bytes(bytes) : 0) + (bytes.trains() ? 2 : 1) * inner;
}

std::int64_t MlpProjector::input_kept(const LayerBytes& bytes) {
  return bytes.trains() && (shares_rows(bytes) || !copies(bytes.module)) ? source_bytes(bytes) : 0;
}

void LinearProjector::parameters(LayerParameters add) {
  const Module& m = add.module();
  add.matrix_and_bias("fc", m.projector_out, m.projector_in, Cut::replicated, true, Rows::own);
}

// The matrix is replicated.
Linear LinearProjector::whole() const {
  return {own(size_.tokens), module_.projector_in, module_.projector_out, true};
}

void LinearProjector::forward() {
  list_order();
  if (joins_rows()) gather(source_rows(), source_width());
  if (merged_rows(module_) > 1) passes(size_.tokens * module_.projector_in, 2, 1);
  forward_cut(whole());
}

void LinearProjector::backward_input(bool) {
  if (!input_grad_) return;
  input_gradient(whole());
  if (merged_rows(module_) > 1) passes(size_.tokens * module_.projector_in, 2, 1);
  if (joins_rows()) scatter(source_rows(), source_width());
}

std::int64_t LinearProjector::tape(const LayerBytes& bytes) {
  return bytes.trains() ? bytes.element() * bytes.own(bytes.size.tokens) * bytes.module.projector_in
                        : 0;
}

std::int64_t LinearProjector::input_kept(const LayerBytes& bytes) {
  const bool whole = merged_rows(bytes.module) == 1 || !shares_rows(bytes);
  return bytes.trains() && !copies(bytes.module) && whole ? source_bytes(bytes) : 0;
}

}  // namespace polyphony

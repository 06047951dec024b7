#include "exec/chunk/edge_rows.h"

#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// Returns x with `added` [k, H] added to the rows `places` [k], which are distinct.
class AddRows : public torch::autograd::Function<AddRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& added,
                        const Tensor& places) {
    context->saved_data["places"] = places;
    return x.index_add(0, places, added);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor& dy = gradients[0];
    Tensor added;
    if (context->needs_input_grad(1))
      added = dy.index_select(0, context->saved_data["places"].toTensor());
    return {dy, added, Tensor()};
  }
};

}  // namespace

Tensor add_edge_rows(const Frame& frame, const Tensor& x) {
  Tensor sum = x, elsewhere;
  for (std::size_t i = frame.first_edge; i < frame.inputs.size(); ++i) {
    const Tensor& input = frame.inputs[i];
    if (!input.defined()) continue;
    const int edge = frame.input_edges.at(i - frame.first_edge);
    Tensor places = frame.data.edge_rows.at(edge);
    // Under sequence parallelism a rank receives a share of the edge's rows, for positions that
    // other ranks hold.
    if (frame.own) places = SequenceRows(frame.pass.groups->tensor, places.numel()).part(places);
    POLYPHONY_CHECK(input.size(0) == places.numel(), input.size(0)
                                                         << " rows over edge " << edge << ", "
                                                         << places.numel() << " places for them");
    if (!frame.own) {
      sum = AddRows::apply(sum, input, places);
      continue;
    }
    const Tensor placed = place_rows(input, places, frame.own->rows());
    elsewhere = elsewhere.defined() ? elsewhere + placed : placed;
  }
  return elsewhere.defined() ? sum + own_rows(frame.own, elsewhere) : sum;
}

}  // namespace polyphony::exec

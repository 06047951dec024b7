#include "exec/layers/patches.h"

#include <algorithm>

#include "exec/autograd/saved_call.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/frame/sequence_plans.h"
#include "exec/on_device.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// Returns rows of the position table: a smaller image uses the table's upper left corner, a class
// token row 0.
Tensor position_rows(const Module& module, const std::vector<PatchGrid>& images,
                     torch::Device device) {
  const std::int64_t table_side = module.image_size / module.patch;
  const std::int64_t first = module.class_token ? 1 : 0;
  std::vector<std::int64_t> rows;
  for (const PatchGrid& image : images) {
    POLYPHONY_CHECK(image.rows <= table_side && image.columns <= table_side,
                    "an image of " << image.rows << " × " << image.columns << " patches, "
                                   << table_side << " × " << table_side << " positions");
    if (module.class_token) rows.push_back(0);
    for (std::int64_t row = 0; row < image.rows; ++row)
      for (std::int64_t column = 0; column < image.columns; ++column)
        rows.push_back(first + row * table_side + column);
  }
  return indices_on(rows, device);
}

// Rows [begin, end) of the axis with class tokens: the positions of patches and class tokens, and
// which patches.
struct Places {
  Tensor patches, tokens;  // counted from `begin`
  std::int64_t first_patch = 0;
};
Places places_of(const std::vector<std::int64_t>& lengths, std::int64_t begin, std::int64_t end,
                 torch::Device device) {
  std::vector<std::int64_t> patches, tokens;
  std::int64_t row = 0;
  Places places;
  const auto visit = [&](std::vector<std::int64_t>& list) {
    const bool inside = row >= begin && row < end;
    if (inside) list.push_back(row - begin);
    ++row;
    return inside;
  };
  for (const std::int64_t length : lengths) {
    visit(tokens);
    for (std::int64_t i = 0; i < length; ++i) {
      const bool before = row < begin;
      visit(patches);
      places.first_patch += before ? 1 : 0;
    }
  }
  places.patches = indices_on(patches, device);
  places.tokens = indices_on(tokens, device);
  return places;
}

struct TokenCall : torch::CustomClassHolder {
  Pass pass;
  Places places;
  LocalParameter* token;  // [1, H]
  TokenCall(const Pass& pass_, Places places_, LocalParameter* token_)
      : pass(pass_), places(std::move(places_)), token(token_) {}
};

class ClassTokenFunction : public torch::autograd::Function<ClassTokenFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<TokenCall>& call) {
    save_call(context, call);
    const std::int64_t images = call->places.tokens.size(0);
    Tensor y = at::empty({x.size(0) + images, x.size(1)}, x.options());
    y.index_copy_(0, call->places.patches, x);
    return y.index_copy_(0, call->places.tokens, call->token->value.expand({images, x.size(1)}));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<TokenCall>(context);
    const Tensor& dy = gradients[0];
    if (call->token->grad.defined()) {
      call->pass.queue->add([token = call->token, rows = dy.index_select(0, call->places.tokens)] {
        Tensor sum = token->grad[0];
        add_rows(sum, rows);
      });
    }
    return {dy.index_select(0, call->places.patches), Tensor(), Tensor()};
  }
};

// Returns rows [begin, begin + count) of the axis: embedded patches and class tokens.
Tensor with_class_tokens(const Frame& frame, const Layer& layer, LocalParameter* token) {
  const std::vector<std::int64_t> lengths = frame.data.image_lengths();
  const std::int64_t rows = sequence_length(frame.module, frame.data);
  const std::int64_t begin = frame.own ? frame.own->begin() : 0;
  const std::int64_t count = frame.own ? frame.own->count() : rows;
  const Tensor& patches = frame.data.patches;
  const Places places = places_of(lengths, begin, begin + count, patches.device());
  const Tensor x =
      replicated_linear(frame.pass, patches.narrow(0, places.first_patch, places.patches.size(0)),
                        layer.at("patch_embedding.weight"), layer.find("patch_embedding.bias"));
  return ClassTokenFunction::apply(x, frame.pass.anchor_of(*token),
                                   c10::make_intrusive<TokenCall>(frame.pass, places, token));
}

}  // namespace

Tensor patch_embedding(const Frame& frame, const Layer& layer) {
  const Module& module = frame.module;
  const std::vector<PatchGrid>& images = frame.data.images;
  const Tensor& patches = frame.data.patches;
  Tensor x;
  if (LocalParameter* token = layer.find("patch_embedding.class_token"))
    x = with_class_tokens(frame, layer, token);
  else
    x = replicated_linear(frame.pass, frame.own ? frame.own->part(patches) : patches,
                          layer.at("patch_embedding.weight"), layer.find("patch_embedding.bias"));
  LocalParameter* table = layer.find("patch_embedding.position");
  if (table == nullptr) return x;
  const PatchGrid whole = square_grid(table->value.size(0) - (module.class_token ? 1 : 0));
  Tensor rows;
  if (frame.own)
    rows = frame.own->part(position_rows(module, images, x.device()));
  else if (std::any_of(images.begin(), images.end(), [&](auto& grid) { return grid != whole; }))
    rows = position_rows(module, images, x.device());
  return add_position(frame.pass, x, rows, table);
}

Tensor drop_class_tokens(const Frame& frame, const Tensor& x) {
  const std::vector<std::int64_t> lengths = frame.data.image_lengths();
  const std::int64_t rows = sequence_length(frame.module, frame.data);
  const Tensor patches = places_of(lengths, 0, rows, x.device()).patches;
  if (!frame.own) return select_rows(x, patches);
  const SequenceRows leaving(frame.pass.groups->tensor, patches.size(0));
  return select_rows(all_rows(frame.own, x), leaving.part(patches));
}

}  // namespace polyphony::exec

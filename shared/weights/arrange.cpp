#include "shared/weights/arrange.h"

namespace polyphony::arrange {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t product(const Shape& shape, std::size_t from = 0) {
  std::int64_t count = 1;
  for (std::size_t i = from; i < shape.size(); ++i) count *= shape[i];
  return count;
}

// `count` blocks of `length` elements, consecutive in the tensor and `stride` apart in the
// parameter.
TensorPart blocks(const std::string& name, Shape shape, std::int64_t count, std::int64_t length,
                  std::int64_t stride, std::int64_t begin) {
  TensorPart part = whole_tensor(name, std::move(shape), begin);
  part.loops = {{count, length, stride}};
  part.length = length;
  return part;
}

std::string of_expert(const std::string& name, int expert) {
  const std::size_t place = name.find("{e}");
  return name.substr(0, place) + std::to_string(expert) + name.substr(place + 3);
}
bool per_expert(const Names& names) { return names.front().find("{e}") != std::string::npos; }

// The rows of q, k and v of one key/value head, and the elements of a row.
struct Group {
  std::int64_t heads, q, k, row;
  explicit Group(const Parameter& parameter)
      : heads(parameter.key_value_heads),
        q(std::int64_t{parameter.group_heads} * parameter.head_dim),
        k(parameter.head_dim),
        row(product(parameter.shape, 1)) {}
  std::int64_t all() const { return (q + 2 * k) * row; }
};
Shape with_rows(const Parameter& parameter, std::int64_t rows) {
  Shape shape = parameter.shape;
  shape.front() = rows;
  return shape;
}

// Rows of a matrix: `first` rows in order, then `rotary` rows whose pairs become halves, repeated.
Parts halves(const Parameter& parameter, const std::string& name, std::int64_t repeats,
             std::int64_t first, std::int64_t rotary) {
  const std::int64_t row = product(parameter.shape, 1), one = (first + rotary) * row;
  TensorPart plain;
  plain.tensor = name;
  plain.shape = parameter.shape;
  plain.loops = {{repeats, one, one}};
  plain.length = first * row;
  TensorPart turned = plain;
  turned.loops = {{repeats, one, one}, {2, row, rotary / 2 * row}, {rotary / 2, 2 * row, row}};
  turned.length = row;
  turned.tensor_begin = turned.parameter_begin = first * row;
  return {plain, turned};
}

}  // namespace

Parts same(const Module& module, const Parameter& parameter, const Names& names) {
  if (!per_expert(names)) return {whole_tensor(names.front(), parameter.shape)};
  const Shape shape(parameter.shape.begin() + 1, parameter.shape.end());
  Parts parts;
  for (int e = 0; e < module.experts; ++e)
    parts.push_back(whole_tensor(of_expert(names.front(), e), shape, e * product(shape)));
  return parts;
}

Parts by_group(const Module&, const Parameter& parameter, const Names& names) {
  const Group group(parameter);
  Parts parts;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t rows = i == 0 ? group.q : group.k;
    if (!names[i].empty())
      parts.push_back(blocks(names[i], with_rows(parameter, group.heads * rows), group.heads,
                             rows * group.row, group.all(), begin));
    begin += rows * group.row;
  }
  return parts;
}

Parts joined_by_kind(const Module& module, const Parameter& parameter, const Names& names) {
  Parts parts = by_group(module, parameter, {names[0], names[0], names[0]});
  std::int64_t begin = 0;
  for (TensorPart& part : parts) {
    part.tensor_begin = begin;
    begin += part.count();
    part.shape = parameter.shape;
  }
  return parts;
}

Parts alternating(const Module& module, const Parameter& parameter, const Names& names) {
  const bool experts = parameter.expert;
  Shape shape(parameter.shape.begin() + (experts ? 1 : 0), parameter.shape.end());
  const std::int64_t one = product(shape), row = product(shape, 1);
  shape.front() /= 2;
  Parts parts;
  for (int e = 0; e < (experts ? module.experts : 1); ++e)
    for (std::size_t i = 0; i < 2; ++i)
      parts.push_back(blocks(per_expert(names) ? of_expert(names[i], e) : names[i], shape,
                             shape.front(), row, 2 * row,
                             e * one + static_cast<std::int64_t>(i) * row));
  return parts;
}

Parts transposed_experts(const Module&, const Parameter& parameter, const Names& names) {
  const std::int64_t experts = parameter.shape[0], out = parameter.shape[1],
                     in = parameter.shape[2];
  TensorPart part;
  part.tensor = names.front();
  part.shape = {experts, in, out};
  part.loops = {{experts, in * out, in * out}, {out, 1, in}};
  part.length = in;
  part.step = out;
  return {part};
}

Parts latent_keys(const Module& module, const Parameter& parameter, const Names& names) {
  return halves(parameter, names.front(), 1, module.key_value_rank, module.rotary_dim);
}
Parts latent_queries(const Module& module, const Parameter& parameter, const Names& names) {
  return halves(parameter, names.front(), module.heads, module.head_dim, module.rotary_dim);
}

Parts linear_input(const Module& module, const Parameter& parameter, const Names& names) {
  const std::int64_t keys = module.linear_key_heads, width = module.linear_head_dim;
  const std::int64_t ratio = module.linear_value_heads / keys, row = parameter.shape[1];
  const std::int64_t wide = (2 + 2 * ratio) * width, narrow = 2 * ratio,
                     all = (wide + narrow) * row;
  return {blocks(names[0], {keys * wide, row}, keys, wide * row, all, 0),
          blocks(names[1], {keys * narrow, row}, keys, narrow * row, all, wide * row)};
}

Parts linear_convolution(const Module& module, const Parameter& parameter, const Names& names) {
  const std::int64_t keys = module.linear_key_heads, width = module.linear_head_dim;
  const std::int64_t ratio = module.linear_value_heads / keys, taps = parameter.shape[1];
  const std::int64_t one = width * taps, all = (2 + ratio) * one;
  Parts parts;
  std::int64_t in_tensor = 0, in_group = 0;
  for (const std::int64_t length : {one, one, ratio * one}) {
    parts.push_back(blocks(names[0], {parameter.shape[0], 1, taps}, keys, length, all, in_group));
    parts.back().tensor_begin = in_tensor;
    in_tensor += keys * length;
    in_group += length;
  }
  return parts;
}

Parts three_per_channel(const Module&, const Parameter& parameter, const Names& names) {
  const std::int64_t channels = parameter.shape[0] / 3, row = parameter.shape[1];
  TensorPart part = whole_tensor(names.front(), parameter.shape);
  part.loops = {{channels, row, 3 * row}, {3, channels * row, row}};
  part.length = row;
  return {part};
}

Parts one_channel_each(const Module&, const Parameter& parameter, const Names& names) {
  return {whole_tensor(names.front(), {parameter.shape[0], 1, parameter.shape[1]})};
}

Parts patches(const Module& module, const Parameter& parameter, const Names& names) {
  return {whole_tensor(names.front(),
                       {parameter.shape[0], module.channels, module.patch, module.patch})};
}

Parts two_frames(const Module& module, const Parameter& parameter, const Names& names) {
  const std::int64_t area = std::int64_t{module.patch} * module.patch;
  Parts parts;
  for (int frame = 0; frame < 2; ++frame) {
    TensorPart part;
    part.tensor = names.front();
    part.shape = {parameter.shape[0], module.channels, 2, module.patch, module.patch};
    part.loops = {{parameter.shape[0] * module.channels, 2 * area, area}};
    part.length = area;
    part.tensor_begin = frame * area;
    parts.push_back(part);
  }
  return parts;
}

Parts three_frames(const Module&, const Parameter& parameter, const Names& names) {
  const std::int64_t out = parameter.shape[0], in = parameter.shape[1] / 3;
  TensorPart part;
  part.tensor = names.front();
  part.shape = {out, in, 3};
  part.loops = {{out, 3 * in, 3 * in}, {3, 1, in}};
  part.length = in;
  part.step = 3;
  return {part};
}

Parts one_row(const Module&, const Parameter& parameter, const Names& names) {
  return {whole_tensor(names.front(), {parameter.shape[1]})};
}

Parts one_table(const Module&, const Parameter& parameter, const Names& names) {
  return {whole_tensor(names.front(), {1, parameter.shape[0], parameter.shape[1]})};
}

}  // namespace polyphony::arrange

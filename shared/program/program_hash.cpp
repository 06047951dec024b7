// hash(Program). Every struct is decomposed by structured bindings, so that a new field that is not
// hashed here does not compile. Turns are left out: they decide when hosts queue ops, not what
// runs, and a simulator's Program has none. A Module and a Layout are hashed by the tables of their
// fields, which are equally strict.
#include <bit>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "shared/form/module_fields.h"
#include "shared/model/layout_fields.h"
#include "shared/program/program.h"

namespace polyphony {
namespace {

// splitmix64's finalizer over a running state. Source: Vigna, prng.di.unimi.it/splitmix64.c (public
// domain constants).
class Digest {
 public:
  void add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0xbf58476d1ce4e5b9ull;
    state_ = (state_ ^ (state_ >> 27)) * 0x94d049bb133111ebull;
    state_ ^= state_ >> 31;
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

auto fields(const Edge& value) {
  const auto& [from, to, to_layer, from_layer] = value;
  return std::tie(from, to, to_layer, from_layer);
}
auto fields(const Model& value) {
  const auto& [modules, edges] = value;
  return std::tie(modules, edges);
}
auto fields(const Action& value) {
  const auto& [kind, overlapped, branch, stage, work, recipe] = value;
  return std::tie(kind, overlapped, branch, stage, work, recipe);
}
auto fields(const Stream& value) {
  const auto& [rank, kind, name] = value;
  return std::tie(rank, kind, name);
}
auto fields(const Group& value) {
  const auto& [kind, members] = value;
  return std::tie(kind, members);
}
auto fields(const WorkSize& value) {
  const auto& [tokens, pairs, text_tokens, loss_tokens, sequences, samples, gathered, condition,
               cross_pairs, window_pairs, gathered_pairs, gathered_window_pairs] = value;
  return std::tie(tokens, pairs, text_tokens, loss_tokens, sequences, samples, gathered, condition,
                  cross_pairs, window_pairs, gathered_pairs, gathered_window_pairs);
}
auto fields(const Work& value) {
  const auto& [branch, lane, context, index, samples, items, rows] = value;
  return std::tie(branch, lane, context, index, samples, items, rows);
}
auto fields(const Buffer& value) {
  const auto& [rank, kind, rows, width, bytes, slot, zeroed] = value;
  return std::tie(rank, kind, rows, width, bytes, slot, zeroed);
}
auto fields(const BufferUse& value) {
  const auto& [buffer, use] = value;
  return std::tie(buffer, use);
}
auto fields(const Message& value) {
  const auto& [source, destination, from, to, from_row, to_row, rows, bytes, turn_is_not_hashed] =
      value;
  static_cast<void>(turn_is_not_hashed);
  return std::tie(source, destination, from, to, from_row, to_row, rows, bytes);
}
auto fields(const ParamGroup& value) {
  const auto& [rank, module, layers, replicas, trainable, bytes, experts, elements, trained, shard,
               tensor, context, expert, partials, shards, tied] = value;
  return std::tie(rank, module, layers, replicas, trainable, bytes, experts, elements, trained,
                  shard, tensor, context, expert, partials, shards, tied);
}
auto fields(const ShardIndex& value) {
  const auto& [tensor, tensor_index, expert, expert_index] = value;
  return std::tie(tensor, tensor_index, expert, expert_index);
}
auto fields(const ItemOfWork& value) {
  const auto& [sample, item] = value;
  return std::tie(sample, item);
}
auto fields(const Interval& value) {
  const auto& [begin, end] = value;
  return std::tie(begin, end);
}
auto fields(const Compute& value) {
  const auto& [module, layers, phase, work, params, recipe, turn_is_not_hashed] = value;
  static_cast<void>(turn_is_not_hashed);
  return std::tie(module, layers, phase, work, params, recipe);
}
auto fields(const Exchange& value) {
  const auto& [sends, messages] = value;
  return std::tie(sends, messages);
}
auto fields(const Collective& value) {
  const auto& [kind, group, sequence, params, bytes, purpose] = value;
  return std::tie(kind, group, sequence, params, bytes, purpose);
}
auto fields(const Update& value) {
  const auto& [params] = value;
  return std::tie(params);
}
auto fields(const HostCopy& value) {
  const auto& [to_host, module, layers, work, bytes] = value;
  return std::tie(to_host, module, layers, work, bytes);
}
auto fields(const Op& value) {
  const auto& [stream, group, what, waits_for, buffers] = value;
  return std::tie(stream, group, what, waits_for, buffers);
}
auto fields(const Item& value) {
  const auto& [modality, tokens, loss_tokens, columns] = value;
  return std::tie(modality, tokens, loss_tokens, columns);
}
auto fields(const Sample& value) {
  const auto& [id, items] = value;
  return std::tie(id, items);
}
auto fields(const Batch& value) {
  const auto& [samples] = value;
  return std::tie(samples);
}
auto fields(const BatchTotals& value) {
  const auto& [samples, loss_tokens, latent_tokens] = value;
  return std::tie(samples, loss_tokens, latent_tokens);
}
auto fields(const Range& value) {
  const auto& [begin, end] = value;
  return std::tie(begin, end);
}
auto fields(const LayerRange& value) {
  const auto& [begin, end] = value;
  return std::tie(begin, end);
}
auto fields(const MeasuredGrid& value) {
  const auto& [tp, cp] = value;
  return std::tie(tp, cp);
}
auto fields(const AbstractModule& value) {
  const auto& [is, parameters, kept, tokens, grids] = value;
  return std::tie(is, parameters, kept, tokens, grids);
}
auto fields(const Program& value) {
  const auto& [model, layout, precision, ranks, only, streams, groups, buffers, messages, params,
               ops, rank_ops, waits, buffer_uses, exchange_messages, batch, works, sizes,
               work_samples, items_of_works, work_rows, totals] = value;
  return std::tie(model, layout, precision, ranks, only, streams, groups, buffers, messages, params,
                  ops, rank_ops, waits, buffer_uses, exchange_messages, batch, works, sizes,
                  work_samples, items_of_works, work_rows, totals);
}

template <class Tag>
void add(Digest& digest, const Id<Tag>& id) {
  digest.add(id.value);
}
template <class Tag, class Rep>
void add(Digest& digest, const Quantity<Tag, Rep>& quantity);
template <class... T>
void add(Digest& digest, const std::variant<T...>& value);
template <class T>
void add(Digest& digest, const std::vector<T>& values);

void add(Digest& digest, const RankList& ranks) {
  digest.add(ranks.size());
  for (const Rank rank : ranks) digest.add(rank.value);
}

void add(Digest& digest, const std::string& text) {
  digest.add(text.size());
  for (const char c : text) digest.add(static_cast<unsigned char>(c));
}

void add(Digest& digest, const Module& module);
void add(Digest& digest, const Layout& layout);
void add(Digest& digest, const ModuleLayout& grid);

template <class T>
void add(Digest& digest, const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    digest.add(std::bit_cast<std::uint64_t>(value));
  } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
    digest.add(static_cast<std::uint64_t>(value));
  } else {
    std::apply([&](const auto&... field) { (add(digest, field), ...); }, fields(value));
  }
}

template <class Tag, class Rep>
void add(Digest& digest, const Quantity<Tag, Rep>& quantity) {
  add(digest, quantity.value);
}

template <class... T>
void add(Digest& digest, const std::variant<T...>& value) {
  digest.add(value.index());
  std::visit([&](const auto& alternative) { add(digest, alternative); }, value);
}

template <class T>
void add(Digest& digest, const std::vector<T>& values) {
  digest.add(values.size());
  for (const T& value : values) add(digest, value);
}

void add(Digest& digest, const Module& module) {
  add(digest, module.name);
  for (const auto part : {module.kind, module.source}) add(digest, part);
  add(digest, module.trainable);
  for (const int size : {module.merge, module.projector_in, module.projector_hidden,
                         module.projector_out, module.condition})
    add(digest, size);
  for (const ModuleField& field : module_fields())
    std::visit([&](auto member) { add(digest, module.*member); }, field.member);
  add(digest, module.abstract);
}

template <class Field, class Whole>
void add(Digest& digest, const Field& field, const Whole& whole) {
  field.visit(whole, [&](const auto& value) { add(digest, value); });
}

void add(Digest& digest, const Layout& layout) {
  for (const LayoutField& field : layout_fields()) {
    add(digest, field, layout);
    if (&field == &layout_fields().front()) add(digest, layout.modules);
  }
  add(digest, layout.actions);
}

void add(Digest& digest, const ModuleLayout& grid) {
  for (const GridField& field : grid_fields()) add(digest, field, grid);
}

}  // namespace

std::uint64_t hash(const Program& program) {
  Digest digest;
  add(digest, program);
  return digest.value();
}

}  // namespace polyphony

#include "exec/parameters/held_parameters.h"

#include <algorithm>
#include <utility>

#include "exec/on_device.h"
#include "shared/chunk/held_sizes.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

Tensor nothing(const torch::TensorOptions& options) { return torch::empty({0}, options); }

Interval intersection(const Interval& a, const Interval& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace

void HeldParameters::Flat::append(LocalParameter* parameter) {
  places.push_back({parameter, parameter->value.sizes().vec(), count, parameter->value.numel()});
  count += places.back().count;
}

void HeldParameters::Flat::divide(int parts, int index) {
  shares.clear();
  for (int i = 0; i < parts; ++i)
    shares.push_back(cut_begin(count, parts, i + 1) - cut_begin(count, parts, i));
  mine = {cut_begin(count, parts, index), cut_begin(count, parts, index + 1)};
}

void HeldParameters::Flat::set_values() {
  for (const Place& place : places)
    place.parameter->value = whole.numel() == 0 && place.count > 0
                                 ? nothing(whole.options())
                                 : whole.narrow(0, place.offset, place.count).view(place.shape);
}

HeldParameters::HeldParameters(std::vector<LocalParameter*> parameters, const HeldOptions& options)
    : options_(options), parameters_(std::move(parameters)) {
  const torch::NoGradGuard no_grad;
  if (options_.shards == 1) options_.shard = Shard::none;
  if (options_.shard == Shard::none) options_.shards = 1, options_.shard_index = 0;
  const auto partial = [&](const LocalParameter* p) {
    return p->spec.sums_over_tensor(options_.place, options_.sequence_parallel) &&
           !p->spec.shares_heads(options_.place);
  };
  for (const bool first : {true, false}) {
    for (LocalParameter* p : parameters_)
      if (p->grad.defined() && partial(p) == first) trained_.append(p);
    if (first) partial_ = trained_.count;
  }
  for (LocalParameter* p : parameters_)
    if (!p->grad.defined()) frozen_.append(p);
  for (const Place& place : trained_.places)
    if (place.parameter->spec.shares_heads(options_.place)) shared_.push_back(place);
  for (Flat* flat : {&trained_, &frozen_}) {
    flat->divide(options_.shards, options_.shard_index);
    if (!flat->places.empty()) hold_values(*flat);
  }
  if (trains()) hold_gradient();
  add_pieces();
  find_counted();
}

// If values are never gathered, each parameter keeps a tensor of its own.
void HeldParameters::hold_values(Flat& flat) {
  const bool full = options_.shard == Shard::full;
  if (options_.shard == Shard::none || (&flat == &frozen_ && !full)) return;
  flat.whole = torch::empty({flat.count}, flat.places.front().parameter->value.options());
  for (const Place& place : flat.places)
    flat.whole.narrow(0, place.offset, place.count).copy_(place.parameter->value.view({-1}));
  flat.owned = flat.whole.narrow(0, flat.mine.begin, flat.mine.size());
  if (full) {
    flat.owned = flat.owned.clone();
    flat.whole = nothing(flat.whole.options());
  }
  flat.set_values();
}

void HeldParameters::hold_gradient() {
  const LocalParameter& any = *trained_.places.front().parameter;
  const torch::TensorOptions wide = any.grad.options();
  const bool divided = options_.shard == Shard::gradients || options_.shard == Shard::full;
  gradient_ = divided ? nothing(wide) : torch::zeros({trained_.count}, wide);
  const std::int64_t mine = trained_.mine.size();
  owned_gradient_ =
      divided ? torch::zeros({mine}, wide) : gradient_.narrow(0, trained_.mine.begin, mine);
  first_moment_ = torch::zeros({mine}, wide);
  second_moment_ = torch::zeros({mine}, wide);
  if (any.value.scalar_type() != any.grad.scalar_type()) master_ = torch::empty({mine}, wide);
  set_gradients();
}

// Changes the gradients in place, because a forward pass on another thread may ask whether the
// parameter has a gradient while a reduce-scatter frees its elements.
void HeldParameters::set_gradients() {
  for (const Place& place : trained_.places)
    place.parameter->grad.set_data(
        gradient_.numel() == 0 && place.count > 0
            ? nothing(gradient_.options())
            : gradient_.narrow(0, place.offset, place.count).view(place.shape));
}

HeldPiece HeldParameters::piece_of(const Flat& flat, const Place& place, bool trained) const {
  const bool divided = trained || options_.shard == Shard::full;
  const Interval all{place.offset, place.offset + place.count};
  const Interval held = divided ? intersection(all, flat.mine) : all;
  HeldPiece piece;
  piece.parameter = place.parameter;
  piece.elements = {held.begin - place.offset, held.end - place.offset};
  piece.repeated = !divided && options_.shard_index > 0;
  if (held.size() == 0) return piece;
  const auto part = [&](const Tensor& owned) {
    return owned.narrow(0, held.begin - flat.mine.begin, held.size());
  };
  piece.value = flat.owned.defined() ? part(flat.owned)
                                     : place.parameter->value.view({-1}).narrow(
                                           0, piece.elements.begin, held.size());
  if (!trained) return piece;
  piece.gradient = part(owned_gradient_);
  piece.first_moment = part(first_moment_);
  piece.second_moment = part(second_moment_);
  if (master_.defined()) piece.master = part(master_).copy_(piece.value);
  return piece;
}

void HeldParameters::add_pieces() {
  for (const Flat* flat : {&trained_, &frozen_}) {
    for (const Place& place : flat->places) {
      HeldPiece piece = piece_of(*flat, place, flat == &trained_);
      if (piece.elements.size() > 0) pieces_.push_back(std::move(piece));
    }
  }
}

// When the norm is computed, partial sums are complete, so any one of the ranks that share an
// element may count it.
void HeldParameters::find_counted() {
  for (const Place& place : trained_.places) {
    for (const ElementRun& run : place.parameter->spec.owned_runs(options_.place)) {
      const std::int64_t begin = place.offset + run.local;
      const Interval part = intersection({begin, begin + run.count}, trained_.mine);
      if (part.size() == 0) continue;
      const Interval own{part.begin - trained_.mine.begin, part.end - trained_.mine.begin};
      if (!counted_.empty() && counted_.back().end == own.begin)
        counted_.back().end = own.end;
      else
        counted_.push_back(own);
    }
  }
}

void HeldParameters::open_gradient() {
  if (!trains() || gradient_.numel() > 0) return;
  gradient_ = torch::zeros({trained_.count}, gradient_.options());
  set_gradients();
}

void HeldParameters::reduce_partial(Communicator& tensor) {
  const torch::NoGradGuard no_grad;
  POLYPHONY_CHECK(gradient_.numel() == trained_.count,
                  "reduce_partial() must come before the gradient is reduce-scattered");
  const Tensor replicated = gradient_.narrow(0, 0, partial_);
  if (shared_.empty()) {
    Tensor sums = replicated;
    return tensor.all_reduce(sums, Reduction::sum);
  }
  // The buffer is [replicated | k and v of every head]: each rank adds its own k and v at the place
  // of its heads.
  std::int64_t total = partial_;
  std::vector<std::pair<std::int64_t, Tensor>> own;  // place in the buffer, gradient
  for (const Place& place : shared_) {
    const Parameter& spec = place.parameter->spec;
    const std::int64_t head = shared_head_elements(spec);
    const std::int64_t index =
        options_.place.tensor_index / (options_.place.tensor / spec.key_value_heads);
    own.emplace_back(total + index * head,
                     gradient_.narrow(0, place.offset + place.count - head, head));
    total += spec.key_value_heads * head;
  }
  Tensor sums = torch::zeros({total}, gradient_.options());
  sums.narrow(0, 0, partial_).copy_(replicated);
  for (const auto& [place, part] : own) sums.narrow(0, place, part.numel()).copy_(part);
  tensor.all_reduce(sums, Reduction::sum);
  replicated.copy_(sums.narrow(0, 0, partial_));
  for (const auto& [place, part] : own) part.copy_(sums.narrow(0, place, part.numel()));
}

void HeldParameters::reduce_tied(Communicator& copies) {
  const torch::NoGradGuard no_grad;
  for (const Place& place : trained_.places) {
    if (!place.parameter->spec.tied) continue;
    Tensor part = gradient_.narrow(0, place.offset, place.count);
    copies.all_reduce(part, Reduction::sum);
  }
}

void HeldParameters::reduce_scatter(Communicator& shards) {
  const torch::NoGradGuard no_grad;
  POLYPHONY_CHECK(gradient_.numel() == trained_.count && shards.size() == options_.shards,
                  gradient_.numel()
                      << " of " << trained_.count << " elements scatter over " << shards.size()
                      << " ranks, but the layout has " << options_.shards);
  Tensor mine = gradient_.narrow(0, trained_.mine.begin, trained_.mine.size());
  shards.reduce_scatter(gradient_, mine, trained_.shares);
  if (options_.shard == Shard::optimizer) return;
  owned_gradient_.add_(mine);
  gradient_ = nothing(gradient_.options());
  set_gradients();
}

void HeldParameters::all_reduce(Communicator& replicas) {
  replicas.all_reduce(owned_gradient_, Reduction::sum);
}

void HeldParameters::gather(Communicator& shards) {
  const torch::NoGradGuard no_grad;
  for (Flat* flat : {&trained_, &frozen_}) {
    if (!flat->owned.defined()) continue;
    const bool absent = flat->whole.numel() == 0;
    if (absent) flat->whole = torch::empty({flat->count}, flat->owned.options());
    shards.all_gather(flat->owned, flat->whole, flat->shares);
    if (absent) flat->set_values();
  }
}

void HeldParameters::release() {
  if (options_.shard != Shard::full) return;
  for (Flat* flat : {&trained_, &frozen_}) {
    if (!flat->owned.defined()) continue;
    flat->whole = nothing(flat->owned.options());
    flat->set_values();
  }
}

void HeldParameters::use_here() {
  const auto use = [](const Tensor& tensor) {
    if (!tensor.defined() || tensor.is_cpu() || tensor.numel() == 0) return;
    tensor.record_stream(current_stream(tensor.device()));
  };
  use(gradient_);
  for (const Flat* flat : {&trained_, &frozen_}) use(flat->whole);
}

}  // namespace polyphony::exec

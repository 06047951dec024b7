#include <algorithm>
#include <vector>

#include "tests/shared/support/hand_made.h"

namespace polyphony::hand_made {
namespace {

// Builds pipeline(): one rank at a time, in any order, because a message is created by the end that
// is built first.
class PipelineMaker {
 public:
  explicit PipelineMaker(const PipelineShape& shape)
      : shape_(shape),
        maker_(static_cast<std::uint32_t>(shape.stages * shape.lanes * shape.tensor)) {
    make_tables();
    make_works();
    make_boundaries();
  }

  Program make() {
    for (int stage = 0; stage < shape_.stages; ++stage) {
      for (int lane = 0; lane < shape_.lanes; ++lane) {
        for (int t = 0; t < shape_.tensor; ++t) make_rank(stage, lane, t);
      }
    }
    return maker_.finish();
  }

 private:
  struct Boundary {
    BufferId out, in;  // at the producer and the consumer
    MessageId message;
  };
  // What one rank needs while its ops are added.
  struct Place {
    int stage = 0, lane = 0, t = 0;
    Rank rank{};
    StreamId compute{};
    GroupId tensor{};
    LayerRange layers{};
    ParamGroupId params{};
    BufferId gradient{};
    std::vector<BufferId> tapes{};
  };

  Rank rank_at(int stage, int lane, int t) const {
    return Rank(static_cast<std::size_t>(t + shape_.tensor * (lane + shape_.lanes * stage)));
  }
  WorkId work_at(int lane, int microbatch) const {
    return WorkId(static_cast<std::size_t>(lane * shape_.microbatches + microbatch));
  }
  std::size_t boundary_at(int stage, int lane, int t, int microbatch) const {
    return rank_at(stage, lane, t).value * static_cast<std::size_t>(shape_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  bool is_last(const Place& place) const { return place.stage + 1 == shape_.stages; }

  GroupId group(GroupKind kind, std::vector<Rank> members) {
    if (members.size() < 2) return {};
    auto& groups = maker_.program.groups;
    const Group wanted{kind, std::move(members)};
    const auto found = std::find(groups.begin(), groups.end(), wanted);
    const auto position = static_cast<std::size_t>(found - groups.begin());
    if (found == groups.end()) groups.push_back(wanted);
    return GroupId(position);
  }

  void make_tables() {
    Program& program = maker_.program;
    program.model.modules = {language(shape_.stages)};
    ModuleLayout grid;
    grid.tp = shape_.tensor;
    grid.pp = shape_.stages;
    grid.ranks = static_cast<int>(program.ranks);
    program.layout.modules = {grid};
    program.layout.microbatches = shape_.microbatches;
    program.layout.schedule = shape_.one_f_one_b ? ScheduleKind::one_f_one_b : ScheduleKind::gpipe;
  }

  void make_works() {
    Program& program = maker_.program;
    for (int lane = 0; lane < shape_.lanes; ++lane) {
      for (int i = 0; i < shape_.microbatches; ++i) {
        const auto sample = work_at(lane, i).value;
        program.batch.samples.push_back({sample, {{Modality::text, kTokens, kTokens - 1}}});
        program.work_samples.push_back(sample);
        program.works.push_back({.lane = static_cast<std::uint16_t>(lane),
                                 .index = static_cast<std::uint16_t>(i),
                                 .samples = {sample, sample + 1},
                                 .rows = {sample, sample + 1}});
        program.work_rows.push_back({0, kTokens});
        program.sizes.push_back(language_size());
        program.totals.loss_tokens += kTokens - 1;
      }
    }
  }

  // Messages between consecutive stages: activations forward, gradients backward. Indexed by the
  // earlier stage's rank and the microbatch.
  void make_boundaries() {
    const int edges = shape_.stages - 1;
    for (int stage = 0; stage < edges; ++stage) {
      for (int lane = 0; lane < shape_.lanes; ++lane) {
        for (int t = 0; t < shape_.tensor; ++t) {
          for (int i = 0; i < shape_.microbatches; ++i) {
            const Rank here = rank_at(stage, lane, t), next = rank_at(stage + 1, lane, t);
            forward_.push_back(make_boundary(here, next, BufferKind::boundary));
            backward_.push_back(make_boundary(next, here, BufferKind::boundary_gradient));
          }
        }
      }
    }
  }

  Boundary make_boundary(Rank from, Rank to, BufferKind kind) {
    const BufferId out = maker_.boundary(from, kind);
    const BufferId in = maker_.boundary(to, kind);
    return {out, in, maker_.message(out, in)};
  }

  void make_rank(int stage, int lane, int t) {
    Place place = make_place(stage, lane, t);
    const int count = shape_.microbatches;
    const int first = shape_.one_f_one_b ? std::min(shape_.stages - stage, count) : count;
    for (int i = 0; i < first; ++i) add_forward(place, i);
    OpId last;
    for (int i = 0; i < count; ++i) {
      last = add_backward(place, i);
      if (first + i < count) add_forward(place, first + i);
    }
    add_step_end(place, last);
  }

  Place make_place(int stage, int lane, int t) {
    Place place{.stage = stage, .lane = lane, .t = t, .rank = rank_at(stage, lane, t)};
    place.compute = maker_.stream(place.rank, StreamKind::compute, "compute");
    std::vector<Rank> tensor, replicas;
    for (int i = 0; i < shape_.tensor; ++i) tensor.push_back(rank_at(stage, lane, i));
    for (int i = 0; i < shape_.lanes; ++i) replicas.push_back(rank_at(stage, i, t));
    place.tensor = group(GroupKind::tensor, tensor);
    place.layers.begin = static_cast<std::uint16_t>(stage == 0 ? 0 : stage + 1);
    place.layers.end =
        static_cast<std::uint16_t>(stage + 1 == shape_.stages ? stage + 3 : stage + 2);
    auto& params = maker_.program.params;
    place.params = ParamGroupId(params.size());
    params.push_back({.rank = place.rank,
                      .module = ModuleId(0),
                      .layers = place.layers,
                      .replicas = group(GroupKind::data, replicas),
                      .bytes = kParameters});
    place.gradient = maker_.buffer(place.rank, BufferKind::gradient, kParameters);
    maker_.buffer(place.rank, BufferKind::optimizer, 2 * kParameters);
    place.tapes.resize(static_cast<std::size_t>(shape_.microbatches));
    return place;
  }

  OpId add_compute(const Place& place, int i, Phase phase, const std::vector<OpId>& waits) {
    return maker_.add(place.compute,
                      Compute{ModuleId(0), place.layers, phase, work_at(place.lane, i)}, waits,
                      place.tensor);
  }

  OpId add_receive(const Place& place, const Boundary& boundary, const char* stream) {
    const OpId op = maker_.exchange(maker_.stream(place.rank, StreamKind::receive, stream), false,
                                    {boundary.message});
    maker_.use(op, boundary.in, {Use::allocate, Use::write});
    return op;
  }

  void add_send(const Place& place, const Boundary& boundary, const char* stream, OpId after) {
    const OpId op = maker_.exchange(maker_.stream(place.rank, StreamKind::send, stream), true,
                                    {boundary.message}, {after});
    maker_.use(after, boundary.out, {Use::allocate, Use::write});
    maker_.use(op, boundary.out, {Use::read, Use::free});
  }

  void add_forward(Place& place, int i) {
    std::vector<OpId> waits;
    if (place.stage > 0) {
      const Boundary& before = forward_[boundary_at(place.stage - 1, place.lane, place.t, i)];
      waits.push_back(add_receive(place, before, "forward receive"));
    }
    const OpId op = add_compute(place, i, Phase::forward, waits);
    if (place.stage > 0) {
      maker_.use(op, forward_[boundary_at(place.stage - 1, place.lane, place.t, i)].in,
                 {Use::read, Use::free});
    }
    BufferId& tape = place.tapes[static_cast<std::size_t>(i)];
    tape = maker_.buffer(place.rank, BufferKind::tape, kTape);
    maker_.use(op, tape, {Use::allocate, Use::write});
    if (is_last(place)) return;
    add_send(place, forward_[boundary_at(place.stage, place.lane, place.t, i)], "forward send", op);
  }

  OpId add_backward(Place& place, int i) {
    std::vector<OpId> waits;
    if (!is_last(place)) {
      const Boundary& after = backward_[boundary_at(place.stage, place.lane, place.t, i)];
      waits.push_back(add_receive(place, after, "backward receive"));
    }
    const OpId op = add_compute(place, i, Phase::backward, waits);
    if (!is_last(place)) {
      maker_.use(op, backward_[boundary_at(place.stage, place.lane, place.t, i)].in,
                 {Use::read, Use::free});
    }
    maker_.use(op, place.tapes[static_cast<std::size_t>(i)], {Use::read, Use::free});
    maker_.use(op, place.gradient, {Use::accumulate});
    if (place.stage == 0) return op;
    add_send(place, backward_[boundary_at(place.stage - 1, place.lane, place.t, i)],
             "backward send", op);
    return op;
  }

  void add_step_end(const Place& place, OpId last) {
    const StreamId stream = maker_.stream(place.rank, StreamKind::collective, "collective");
    const GroupId replicas = maker_.program.params[place.params.value].replicas;
    if (replicas.valid()) {
      last = maker_.add(stream,
                        Collective{.group = replicas, .params = place.params, .bytes = kParameters},
                        {last});
    }
    std::vector<Rank> all;
    for (std::uint32_t rank = 0; rank < maker_.program.ranks; ++rank) all.push_back(Rank(rank));
    const GroupId world = group(GroupKind::world, all);
    if (world.valid()) {
      last = maker_.add(stream, Collective{.group = world, .bytes = Bytes(24)}, {last});
    }
    maker_.add(place.compute, Update{{place.params.value, place.params.value + 1}}, {last});
  }

  PipelineShape shape_;
  Maker maker_;
  std::vector<Boundary> forward_, backward_;
};

}  // namespace

Program pipeline(const PipelineShape& shape) { return PipelineMaker(shape).make(); }

}  // namespace polyphony::hand_made

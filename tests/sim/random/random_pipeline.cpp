// Makes Programs of Shape::pipeline (tests/sim/random/random_program.h).
#include <algorithm>
#include <optional>
#include <utility>

#include "shared/schedule/schedule.h"
#include "tests/sim/random/dice.h"
#include "tests/sim/random/program_builder.h"
#include "tests/sim/random/random_program.h"
#include "tests/sim/random/random_work.h"

namespace polyphony::tests {
namespace {

constexpr std::int32_t kWidth = 64;

class Pipeline {
 public:
  Pipeline(const PipelineShape& shape, std::uint64_t seed)
      : shape_(shape),
        dice_(seed),
        builder_(static_cast<std::uint32_t>(shape.stages * shape.lanes * shape.tensor)) {}

  Program build() {
    describe();
    make_groups();
    for (int lane = 0; lane < shape_.lanes; ++lane) run_lane(lane);
    if (shape_.trainable) update();
    return builder_.finish();
  }

 private:
  // Buffers and ops of one microbatch on one stage, by tensor rank.
  struct Held {
    std::vector<BufferId> input, output, output_grad, input_grad, tape;
  };

  Rank rank(int stage, int lane, int t) const {
    return Rank(static_cast<std::size_t>(t + shape_.tensor * (lane + shape_.lanes * stage)));
  }
  std::size_t column(int stage, int lane) const {
    return static_cast<std::size_t>(stage * shape_.lanes + lane);
  }
  WorkId work(int lane, int microbatch) const {
    return WorkId(static_cast<std::size_t>(lane * shape_.microbatches + microbatch));
  }
  StreamId compute_stream(Rank at) { return builder_.stream(at, StreamKind::compute, "compute"); }

  void describe();
  void make_groups();
  LayerRange stage_layers(int stage) const;
  void run_lane(int lane);
  bool try_slot(int lane, int stage, const Action& action);
  void forward(int lane, int stage, int microbatch);
  void backward(int lane, int stage, int microbatch);
  // Whole matrices go from each tensor rank of one stage to its counterpart on another.
  std::vector<BufferId> transfer(int lane, int from_stage, int to_stage,
                                 const std::vector<BufferId>& from, BufferKind kind);
  void update();
  Held& held(int lane, int stage, int microbatch) {
    return held_[column(stage, lane) * static_cast<std::size_t>(shape_.microbatches) +
                 static_cast<std::size_t>(microbatch)];
  }

  PipelineShape shape_;
  Dice dice_;
  ProgramBuilder builder_;
  std::vector<GroupId> tensor_group_, data_group_;  // by pipeline rank; by stage × tensor rank
  GroupId world_;
  std::vector<Held> held_;
  std::vector<std::vector<bool>> forward_done_, backward_done_;  // by pipeline rank, by microbatch
};

void Pipeline::describe() {
  Program& program = builder_.program;
  add_language(program, shape_.trainable, shape_.stages, kWidth, shape_.tensor, shape_.stages);
  program.layout.schedule = shape_.one_f_one_b ? ScheduleKind::one_f_one_b : ScheduleKind::gpipe;
  program.layout.microbatches = shape_.microbatches;
  for (int lane = 0; lane < shape_.lanes; ++lane) {
    for (int microbatch = 0; microbatch < shape_.microbatches; ++microbatch) {
      add_work(program, lane, microbatch, dice_.small(2, 200));
    }
  }
}

void Pipeline::make_groups() {
  for (int stage = 0; stage < shape_.stages; ++stage) {
    for (int lane = 0; lane < shape_.lanes; ++lane) {
      std::vector<Rank> members;
      for (int t = 0; t < shape_.tensor; ++t) members.push_back(rank(stage, lane, t));
      tensor_group_.push_back(
          shape_.tensor == 1 ? GroupId() : builder_.group(GroupKind::tensor, std::move(members)));
    }
    for (int t = 0; t < shape_.tensor; ++t) {
      std::vector<Rank> members;
      for (int lane = 0; lane < shape_.lanes; ++lane) members.push_back(rank(stage, lane, t));
      data_group_.push_back(
          shape_.lanes == 1 ? GroupId() : builder_.group(GroupKind::data, std::move(members)));
    }
  }
  std::vector<Rank> everyone;
  for (std::uint32_t r = 0; r < builder_.program.ranks; ++r) everyone.push_back(Rank(r));
  world_ = builder_.group(GroupKind::world, std::move(everyone));

  Program& program = builder_.program;
  for (std::uint32_t r = 0; r < program.ranks; ++r) {
    const int t = static_cast<int>(r) % shape_.tensor;
    const int stage = static_cast<int>(r) / (shape_.tensor * shape_.lanes);
    const GroupId replicas = data_group_[static_cast<std::size_t>(stage * shape_.tensor + t)];
    program.params.push_back({Rank(r), ModuleId(0), stage_layers(stage), replicas, shape_.trainable,
                              Bytes(dice_.whole(1, 1 << 24))});
  }
  const auto columns = static_cast<std::size_t>(shape_.stages * shape_.lanes);
  const auto count = static_cast<std::size_t>(shape_.microbatches);
  held_.resize(columns * count);
  forward_done_.assign(columns, std::vector<bool>(count, false));
  backward_done_.assign(columns, std::vector<bool>(count, false));
}

// One block per stage; the embedding is before the first and the output layer after the last.
LayerRange Pipeline::stage_layers(int stage) const {
  const int begin = stage == 0 ? 0 : stage + 1;
  const int end = stage + 1 == shape_.stages ? shape_.stages + 2 : stage + 2;
  return {static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(end)};
}

// Adds the next op of any stage that can continue, so that the order respects every dependency.
void Pipeline::run_lane(int lane) {
  const ScheduleKind kind = builder_.program.layout.schedule;
  std::vector<Actions> orders;
  std::size_t left = 0;
  for (int stage = 0; stage < shape_.stages; ++stage) {
    orders.push_back(schedule(kind).order({shape_.stages, 1, shape_.microbatches}, stage));
    if (!shape_.trainable)
      std::erase_if(orders.back(), [](const Action& action) { return !is_forward(action); });
    left += orders.back().size();
  }
  std::vector<std::size_t> at(orders.size(), 0);
  while (left > 0) {
    for (std::size_t stage = 0; stage < orders.size(); ++stage) {
      while (at[stage] < orders[stage].size() &&
             try_slot(lane, static_cast<int>(stage), orders[stage][at[stage]])) {
        ++at[stage];
        --left;
      }
    }
  }
}

bool Pipeline::try_slot(int lane, int stage, const Action& action) {
  const auto microbatch = static_cast<std::size_t>(action.work);
  if (is_forward(action)) {
    if (stage > 0 && !forward_done_[column(stage - 1, lane)][microbatch]) return false;
    forward(lane, stage, action.work);
    forward_done_[column(stage, lane)][microbatch] = true;
    return true;
  }
  if (stage + 1 < shape_.stages && !backward_done_[column(stage + 1, lane)][microbatch]) {
    return false;
  }
  backward(lane, stage, action.work);
  backward_done_[column(stage, lane)][microbatch] = true;
  return true;
}

void Pipeline::forward(int lane, int stage, int microbatch) {
  Held& here = held(lane, stage, microbatch);
  if (stage > 0) {
    here.input = transfer(lane, stage - 1, stage, held(lane, stage - 1, microbatch).output,
                          BufferKind::boundary);
  }
  const WorkId item = work(lane, microbatch);
  const std::int64_t tokens = builder_.program.sizes[item.value].tokens;
  const bool last = stage + 1 == shape_.stages;
  for (int t = 0; t < shape_.tensor; ++t) {
    const Rank at = rank(stage, lane, t);
    const auto index = static_cast<std::size_t>(t);
    std::vector<BufferUse> uses;
    if (stage > 0) {
      uses.push_back({here.input[index], Use::read});
      uses.push_back({here.input[index], Use::free});
    }
    if (shape_.trainable) {
      here.tape.push_back(builder_.buffer(at, BufferKind::tape, tokens, 4 * kWidth));
      uses.push_back({here.tape.back(), Use::allocate});
      uses.push_back({here.tape.back(), Use::write});
    }
    if (!last) {
      here.output.push_back(builder_.buffer(at, BufferKind::boundary, tokens, kWidth));
      uses.push_back({here.output.back(), Use::allocate});
      uses.push_back({here.output.back(), Use::write});
    }
    builder_.compute(compute_stream(at), {ModuleId(0), stage_layers(stage), Phase::forward, item},
                     tensor_group_[column(stage, lane)], {}, std::move(uses));
  }
}

void Pipeline::backward(int lane, int stage, int microbatch) {
  Held& here = held(lane, stage, microbatch);
  const bool last = stage + 1 == shape_.stages;
  if (!last) {
    here.output_grad =
        transfer(lane, stage + 1, stage, held(lane, stage + 1, microbatch).input_grad,
                 BufferKind::boundary_gradient);
  }
  const WorkId item = work(lane, microbatch);
  const std::int64_t tokens = builder_.program.sizes[item.value].tokens;
  for (int t = 0; t < shape_.tensor; ++t) {
    const Rank at = rank(stage, lane, t);
    const auto index = static_cast<std::size_t>(t);
    std::vector<BufferUse> uses{{here.tape[index], Use::read}, {here.tape[index], Use::free}};
    if (!last) {
      uses.push_back({here.output_grad[index], Use::read});
      uses.push_back({here.output_grad[index], Use::free});
    }
    if (stage > 0) {
      here.input_grad.push_back(builder_.buffer(at, BufferKind::boundary_gradient, tokens, kWidth));
      uses.push_back({here.input_grad.back(), Use::allocate});
      uses.push_back({here.input_grad.back(), Use::write});
    }
    builder_.compute(compute_stream(at), {ModuleId(0), stage_layers(stage), Phase::backward, item},
                     tensor_group_[column(stage, lane)], {}, std::move(uses));
  }
}

std::vector<BufferId> Pipeline::transfer(int lane, int from_stage, int to_stage,
                                         const std::vector<BufferId>& from, BufferKind kind) {
  const std::string edge = from_stage < to_stage ? "forward" : "backward";
  const auto ranks = static_cast<std::size_t>(shape_.tensor);
  std::vector<BufferId> to;
  std::vector<std::vector<MessageId>> out(ranks), in(ranks);
  for (std::size_t t = 0; t < ranks; ++t) {
    const Buffer source = builder_.program.buffers[from[t].value];
    to.push_back(builder_.buffer(rank(to_stage, lane, static_cast<int>(t)), kind, source.rows,
                                 source.width));
    const std::int64_t cut = shape_.split_rows ? dice_.whole(1, source.rows) : source.rows;
    const std::size_t other = (t + 1) % ranks;
    out[t].push_back(builder_.message(from[t], 0, to[t], 0, cut));
    in[t].push_back(MessageId(out[t].back()));
    if (cut < source.rows) {
      out[other].push_back(builder_.message(from[other], cut, to[t], cut, source.rows - cut));
      in[t].push_back(MessageId(out[other].back()));
    }
  }
  for (std::size_t t = 0; t < ranks; ++t) {
    const StreamId stream = builder_.stream(rank(from_stage, lane, static_cast<int>(t)),
                                            StreamKind::send, edge + " send");
    builder_.exchange(stream, true, out[t], {}, {{from[t], Use::read}, {from[t], Use::free}});
  }
  for (std::size_t t = 0; t < ranks; ++t) {
    const Rank at = rank(to_stage, lane, static_cast<int>(t));
    const StreamId stream = builder_.stream(at, StreamKind::receive, edge + " receive");
    std::vector<Draft> waits;  // a random earlier op represents the last user of the receive slot
    const auto& before = builder_.of_rank(at);
    if (!before.empty() && dice_.chance(0.5)) waits.push_back(dice_.pick(before));
    builder_.exchange(stream, false, in[t], std::move(waits),
                      {{to[t], Use::allocate}, {to[t], Use::write}});
  }
  return to;
}

void Pipeline::update() {
  const std::uint32_t ranks = builder_.program.ranks;
  std::vector<std::vector<Draft>> last(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) last[r] = {builder_.of_rank(Rank(r)).back()};
  if (shape_.lanes > 1) {
    for (std::uint32_t first = 0; first < ranks; ++first) {
      const GroupId replicas = builder_.program.params[first].replicas;
      const std::vector<Rank> members = builder_.program.groups[replicas.value].members;
      if (members.front() != Rank(first)) continue;
      std::vector<std::vector<Draft>> waits;
      std::vector<ParamGroupId> params;
      for (const Rank member : members) {
        waits.push_back(last[member.value]);
        params.push_back(ParamGroupId(member.value));
      }
      const Bytes bytes = builder_.program.params[first].bytes;
      const auto ops =
          builder_.collective(CollectiveKind::all_reduce, replicas, bytes, waits, params);
      for (std::size_t i = 0; i < members.size(); ++i) last[members[i].value].push_back(ops[i]);
    }
  }
  constexpr std::int64_t kScalars = 3 * 8;  // loss sum, squared norm, non-finite flag in fp64
  const auto scalars =
      builder_.collective(CollectiveKind::all_reduce, world_, Bytes(kScalars), last, {});
  for (std::uint32_t r = 0; r < ranks; ++r) {
    Op op;
    op.what = Update{{r, r + 1}};
    builder_.add(compute_stream(Rank(r)), op, {scalars[r]}, {});
  }
}

}  // namespace

Program make_pipeline(const PipelineShape& shape, std::uint64_t seed) {
  return Pipeline(shape, seed).build();
}

}  // namespace polyphony::tests

#include "shared/plan/lower.h"

#include <algorithm>

#include "shared/expand.h"
#include "shared/plan/boundaries.h"
#include "shared/plan/lowering.h"
#include "shared/plan/schedule.h"
#include "shared/plan/sizes.h"

namespace polyphony {
namespace lowering {

Builder::Builder(const Scenario& scenario, const Layout& layout, const Plan& plan,
                 const Batch& batch, Pass pass)
    : plan_(plan), training_(pass == Pass::train) {
  program_.model = scenario.model;
  program_.layout = layout;
  program_.precision = scenario.training.precision;
  program_.ranks = static_cast<std::uint32_t>(world_size(layout));
  program_.batch = batch;
  make_works();
  make_groups();
  for (const Boundary& boundary : make_boundaries(program_.model, plan_)) make_crossing(boundary);
}

void Builder::make_works() {
  WorkTable table = assign_work(plan_, program_.batch);
  first_work_ = table.first_work;
  program_.works = std::move(table.works);
  program_.work_samples = std::move(table.work_samples);
  const std::size_t modules = program_.model.modules.size();
  program_.sizes.resize(program_.works.size() * modules);
  for (std::size_t b = 0; b < plan_.branches.size(); ++b) {
    std::vector<bool> inside(modules, false);
    for (const Stage& stage : plan_.branches[b].stages)
      for (const Chunk& chunk : stage.chunks) inside[chunk.module.value] = true;
    for (std::size_t w = 0; w < program_.works.size(); ++w) {
      if (program_.works[w].branch != b) continue;
      const Range samples = program_.works[w].samples;
      for (std::size_t m = 0; m < modules; ++m)
        if (inside[m])
          program_.sizes[w * modules + m] =
              work_size(program_.model, ModuleId(m), program_.batch,
                        program_.work_samples.data() + samples.begin, samples.size());
    }
  }
  for (const Sample& sample : program_.batch.samples)
    for (const Item& item : sample.items) program_.loss_tokens += item.loss_tokens;
}

void Builder::make_groups() {
  for (const Branch& branch : plan_.branches) {
    const ModuleLayout& grid = branch.grid;
    tensor_groups_.emplace_back();
    data_groups_.emplace_back();
    for (int p = 0; p < grid.pp; ++p) {
      for (int d = 0; d < grid.dp(); ++d) {
        tensor_groups_.back().emplace_back();
        if (grid.tp == 1) continue;
        tensor_groups_.back().back() = GroupId(program_.groups.size());
        Group group{GroupKind::tensor, {}};
        for (int t = 0; t < grid.tp; ++t) group.members.push_back(grid.rank_at(t, 0, d, p));
        program_.groups.push_back(std::move(group));
      }
      for (int t = 0; t < grid.tp; ++t) {
        data_groups_.back().emplace_back();
        if (grid.dp() == 1) continue;
        data_groups_.back().back() = GroupId(program_.groups.size());
        Group group{GroupKind::data, {}};
        for (int d = 0; d < grid.dp(); ++d) group.members.push_back(grid.rank_at(t, 0, d, p));
        program_.groups.push_back(std::move(group));
      }
    }
  }
  if (program_.ranks > 1) {
    world_group_ = GroupId(program_.groups.size());
    Group group{GroupKind::world, {}};
    for (std::uint32_t r = 0; r < program_.ranks; ++r) group.members.emplace_back(r);
    program_.groups.push_back(std::move(group));
  }
}

BufferId Builder::add_buffer(Rank rank, BufferKind kind, std::int64_t rows, std::int32_t width,
                             Bytes bytes) {
  program_.buffers.push_back({rank, kind, rows, width, bytes});
  return BufferId(program_.buffers.size() - 1);
}

BufferId Builder::add_boundary_buffer(Rank rank, BufferKind kind, std::int64_t rows,
                                      ModuleId module) {
  if (rows == 0) return {};
  const int width = output_width(program_.model.modules[module.value]);
  return add_buffer(rank, kind, rows, width, size_of(program_.precision) * (rows * width));
}

namespace {

// The replica that rank `receiver` (index `index` of its own tensor-parallel group) takes rows
// from.
int choose_replica(const ModuleLayout& grid, int lane, int stage, Rank receiver, int index) {
  for (int t = 0; t < grid.tp; ++t)
    if (grid.rank_at(t, 0, lane, stage) == receiver) return t;
  return index % grid.tp;
}

}  // namespace

// One direction of a boundary. `sources` and `destinations` are (branch, stage) with their own run
// coordinates already in `runs`.
void Builder::make_messages(const std::vector<Run>& runs, Side& source, Side& destination,
                            BufferKind kind, ModuleId module) {
  const ModuleLayout& from_grid = plan_.branches[source.branch].grid;
  const ModuleLayout& to_grid = plan_.branches[destination.branch].grid;
  const auto prepare = [&](Side& side, const ModuleLayout& grid, auto work_of, auto end_row) {
    const Branch& branch = plan_.branches[side.branch];
    const auto works = static_cast<std::size_t>(branch.microbatches * grid.dp());
    side.tp = static_cast<std::size_t>(grid.tp);
    std::vector<std::int64_t> rows(works, 0);
    for (const Run& run : runs) rows[work_of(run)] = std::max(rows[work_of(run)], end_row(run));
    side.buffers.resize(works * side.tp);
    side.messages.resize(works * side.tp);
    for (std::size_t w = 0; w < works; ++w)
      for (int t = 0; t < grid.tp; ++t)
        side.buffers[w * side.tp + static_cast<std::size_t>(t)] = add_boundary_buffer(
            grid.rank_at(t, 0, static_cast<int>(w) % grid.dp(), static_cast<int>(side.stage)), kind,
            rows[w], module);
  };
  prepare(
      source, from_grid, [](const Run& r) { return r.producer_work; },
      [](const Run& r) { return r.from + r.rows; });
  prepare(
      destination, to_grid, [](const Run& r) { return r.consumer_work; },
      [](const Run& r) { return r.to + r.rows; });
  for (const Run& run : runs) {
    const int from_lane = static_cast<int>(run.producer_work) % from_grid.dp();
    const int to_lane = static_cast<int>(run.consumer_work) % to_grid.dp();
    for (int t = 0; t < to_grid.tp; ++t) {
      const Rank receiver = to_grid.rank_at(t, 0, to_lane, static_cast<int>(destination.stage));
      const int replica =
          choose_replica(from_grid, from_lane, static_cast<int>(source.stage), receiver, t);
      const std::size_t from = run.producer_work * source.tp + static_cast<std::size_t>(replica);
      const std::size_t to = run.consumer_work * destination.tp + static_cast<std::size_t>(t);
      const Rank sender = from_grid.rank_at(replica, 0, from_lane, static_cast<int>(source.stage));
      const Buffer& buffer = program_.buffers[destination.buffers[to].value];
      program_.messages.push_back({sender, receiver, source.buffers[from], destination.buffers[to],
                                   run.from, run.to, run.rows,
                                   size_of(program_.precision) * (run.rows * buffer.width)});
      source.messages[from].emplace_back(program_.messages.size() - 1);
      destination.messages[to].emplace_back(program_.messages.size() - 1);
    }
  }
}

void Builder::make_crossing(const Boundary& boundary) {
  std::vector<Run> runs =
      make_runs(program_.model, plan_, boundary,
                {program_.works, program_.work_samples, first_work_}, program_.batch);
  Crossing crossing;
  crossing.boundary = boundary;
  const Side producer{boundary.producer_branch, boundary.producer_stage, 1, {}, {}};
  const Side consumer{boundary.consumer_branch, boundary.consumer_stage, 1, {}, {}};
  crossing.forward_source = producer;
  crossing.forward_destination = consumer;
  make_messages(runs, crossing.forward_source, crossing.forward_destination, BufferKind::boundary,
                boundary.producer_module);
  if (boundary.backward && training_) {
    for (Run& run : runs) {
      std::swap(run.producer_work, run.consumer_work);
      std::swap(run.from, run.to);
    }
    crossing.backward_source = consumer;
    crossing.backward_destination = producer;
    make_messages(runs, crossing.backward_source, crossing.backward_destination,
                  BufferKind::boundary_gradient, boundary.producer_module);
  }
  crossings_.push_back(std::move(crossing));
}

Program Builder::build() {
  for (std::uint32_t r = 0; r < program_.ranks; ++r) {
    const auto begin = static_cast<std::uint32_t>(program_.ops.size());
    RankLowering(*this, Rank(r)).emit();
    program_.rank_ops.push_back({begin, static_cast<std::uint32_t>(program_.ops.size())});
  }
  return std::move(program_);
}

}  // namespace lowering

Program lower(const Scenario& scenario, const Layout& layout, const Plan& plan, const Batch& batch,
              Pass pass) {
  return lowering::Builder(scenario, layout, plan, batch, pass).build();
}

}  // namespace polyphony

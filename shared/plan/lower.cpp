// The tables of a Program: works and their sizes, buffers and messages of every link that crosses
// ranks. Groups: lower_groups.cpp.
#include "shared/plan/lower.h"

#include <algorithm>

#include "shared/error.h"
#include "shared/layers/expand.h"
#include "shared/plan/lowering.h"

namespace polyphony {
namespace lowering {

Builder::Builder(const Scenario& scenario, const Layout& layout, const Plan& plan,
                 const StepPlan& step, const Batch& batch, StepKind kind,
                 const SoftwareStack& stack)
    : plan_(plan),
      step_(step),
      table_(step.works),
      stack_(stack),
      training_(kind == StepKind::train) {
  program_.model = scenario.model;
  program_.layout = layout;
  program_.precision = scenario.training.precision;
  program_.ranks = static_cast<std::uint32_t>(world_size(layout));
  program_.batch = batch;
  program_.totals = step.totals;
  program_.only = step.only;
  make_works();
  for (const Branch& branch : plan_.branches) make_groups(branch);
  world_group_ =
      add_group(GroupKind::world, RankList::spaced(Rank(0), 1, static_cast<int>(program_.ranks)));
  links_ = make_links(program_.model, plan_);
  for (const ChunkLink& link : links_) {
    const bool crosses = !link.local && (here(link.producer) || here(link.consumer));
    crossing_of_.push_back(crosses ? static_cast<std::int32_t>(crossings_.size()) : -1);
    if (crosses) make_crossing(link);
  }
}

void Builder::make_works() {
  program_.works = table_.works;
  program_.work_samples = table_.work_samples;
  program_.work_items = table_.work_items;
  program_.work_rows = table_.work_rows;
  const std::size_t modules = program_.model.modules.size();
  program_.sizes.resize(program_.works.size() * modules);
  for (std::size_t b = 0; b < plan_.branches.size(); ++b) {
    std::vector<bool> inside(modules, false);
    for (const Stage& stage : plan_.branches[b].stages)
      for (const Chunk& chunk : stage.chunks) inside[chunk.module.value] = true;
    const Range works = table_.of_branch(b);
    for (std::size_t w = works.begin; w < works.end; ++w) {
      for (std::size_t m = 0; m < modules; ++m)
        if (inside[m])
          program_.sizes[w * modules + m] =
              work_size(program_.model, ModuleId(m), program_.batch, table_, program_.works[w]);
    }
  }
}

bool Builder::here(const ChunkPlace& place) const {
  if (!step_.only.valid()) return true;
  const Branch& branch = plan_.branches[place.branch];
  const int at = static_cast<int>(step_.only.value) - branch.grid.first_rank;
  return at >= 0 && at < branch.grid.ranks &&
         at / (branch.grid.ranks / branch.grid.pp) == branch.rank_of_stage[place.stage];
}

BufferId Builder::add_buffer(Rank rank, BufferKind kind, Bytes bytes) {
  program_.buffers.push_back({rank, kind, 0, 0, bytes});
  return BufferId(program_.buffers.size() - 1);
}

BufferId Builder::add_boundary_buffer(Rank rank, BufferKind kind, std::int64_t rows,
                                      const ChunkLink& link) {
  if (rows == 0) return {};
  const std::int32_t width = link.input.width;
  program_.buffers.push_back(
      {rank, kind, rows, width, size_of(program_.precision) * (rows * width), link.slot});
  return BufferId(program_.buffers.size() - 1);
}

// Rows that each work item leaves behind at the end of a chunk.
std::vector<std::int64_t> Builder::rows_leaving_all(const ChunkPlace& place) const {
  const Chunk& chunk = chunk_at(place);
  const Module& module = program_.model.modules[chunk.module.value];
  std::vector<std::int64_t> rows;
  const Range works = table_.of_branch(place.branch);
  for (std::size_t w = works.begin; w < works.end; ++w)
    rows.push_back(
        rows_leaving(module, chunk.layers.end, program_.size_of(WorkId(w), chunk.module)));
  return rows;
}

Builder::Seat Builder::seat(std::size_t branch, std::size_t work) const {
  const Work& at = table_.works[table_.first_work[branch] + work];
  return {static_cast<int>(at.context), static_cast<int>(at.lane)};
}

Side Builder::make_side(const ChunkPlace& place, std::vector<std::int64_t> rows, BufferKind kind,
                        const ChunkLink& link) {
  const Branch& branch = plan_.branches[place.branch];
  const ModuleLayout& grid = branch.grid;
  Side side{place,
            static_cast<std::size_t>(branch.folded ? 1 : grid.tp),
            shards_rows(chunk_at(place).module),
            std::move(rows),
            {},
            {}};
  for (std::size_t w = 0; w < side.rows.size(); ++w) {
    const std::int64_t all = side.rows[w];
    const auto [context, lane] = seat(place.branch, w);
    for (int t = 0; t < static_cast<int>(side.tp); ++t) {
      if (branch.folded && context > 0) {
        side.buffers.emplace_back();
        continue;
      }
      const Rank rank = grid.rank_at(t, context, lane, branch.rank_of_stage[place.stage]);
      side.buffers.push_back(add_boundary_buffer(
          rank, kind, side.sharded ? own_rows(all, grid.tp, t).size() : all, link));
    }
  }
  side.messages.resize(side.buffers.size());
  return side;
}

namespace {

// The replica that rank `receiver` (index `index` of its own tensor-parallel group) takes rows
// from: itself if it is one.
int choose_replica(const ModuleLayout& grid, int context, int lane, int stage, Rank receiver,
                   int index) {
  const std::uint32_t first = grid.rank_at(0, context, lane, stage).value;  // the others follow
  const auto tp = static_cast<std::uint32_t>(grid.tp);
  if (receiver.value >= first && receiver.value < first + tp)
    return static_cast<int>(receiver.value - first);
  return index % grid.tp;
}

}  // namespace

void Builder::add_run(const RowRun& run, Side& source, Side& destination) {
  const Branch& producer = plan_.branches[source.place.branch];
  const Branch& consumer = plan_.branches[destination.place.branch];
  const ModuleLayout &from = producer.grid, &to = consumer.grid;
  const bool folded = producer.folded;
  const auto [from_context, from_lane] = seat(source.place.branch, run.producer_work);
  const auto [to_context, to_lane] = seat(destination.place.branch, run.consumer_work);
  const int from_stage = producer.rank_of_stage[source.place.stage],
            to_stage = consumer.rank_of_stage[destination.place.stage];
  const bool led = leads(source, destination);
  const auto send = [&](int t, int replica, Interval wanted, std::int64_t first_to) {
    const Rank sender = from.rank_at(replica, from_context, from_lane, from_stage),
               receiver = to.rank_at(t, to_context, to_lane, to_stage);
    // A leader's relays are made of what it is sent, whoever lowers.
    if (step_.only.valid() && !led && sender != step_.only && receiver != step_.only) return;
    const std::int64_t first_from =
        source.sharded ? own_rows(source.rows[run.producer_work], from.tp, replica).begin : 0;
    const std::size_t a = run.producer_work * source.tp + static_cast<std::size_t>(replica);
    const std::size_t b = run.consumer_work * destination.tp + static_cast<std::size_t>(t);
    const Buffer& buffer = program_.buffers[destination.buffers[b].value];
    program_.messages.push_back({sender, receiver, source.buffers[a], destination.buffers[b],
                                 wanted.begin - run.to + run.from - first_from,
                                 wanted.begin - first_to, wanted.size(),
                                 size_of(program_.precision) * (wanted.size() * buffer.width)});
    source.messages[a].emplace_back(program_.messages.size() - 1);
    destination.messages[b].emplace_back(program_.messages.size() - 1);
  };
  if (folded && (from_context > 0 || to_context > 0)) return;
  for (int t = 0; t < (led ? 1 : static_cast<int>(destination.tp)); ++t) {
    Interval own{run.to, run.to + run.rows};
    std::int64_t first = 0;
    if (destination.sharded) {
      const Interval mine = own_rows(destination.rows[run.consumer_work], to.tp, t);
      own = {std::max(own.begin, mine.begin), std::min(own.end, mine.end)};
      first = mine.begin;
    }
    if (own.begin >= own.end) continue;
    if (!source.sharded) {
      const Rank receiver = to.rank_at(t, to_context, to_lane, to_stage);
      const int replica =
          led ? 0 : choose_replica(from, from_context, from_lane, from_stage, receiver, t);
      send(t, replica, own, first);
      continue;
    }
    const std::int64_t all = source.rows[run.producer_work],
                       share = std::max<std::int64_t>(1, (all + from.tp - 1) / from.tp);
    const auto owner = static_cast<int>((own.begin - run.to + run.from) / share);
    for (int s = owner; s < static_cast<int>(source.tp); ++s) {
      const Interval theirs = own_rows(all, from.tp, s);
      const Interval part{std::max(own.begin, theirs.begin - run.from + run.to),
                          std::min(own.end, theirs.end - run.from + run.to)};
      if (part.begin >= part.end) break;
      send(t, s, part, first);
    }
  }
}

void Builder::make_messages(const std::vector<RowRun>& runs, Side& source, Side& destination) {
  for (const RowRun& run : runs) add_run(run, source, destination);
  if (leads(source, destination)) add_relays(destination);
}

bool Builder::leads(const Side& source, const Side& destination) const {
  return program_.layout.bridge == Bridge::leader &&
         source.place.branch != destination.place.branch;
}

// Whole buffers, once all their rows are there.
void Builder::add_relays(Side& destination) {
  destination.relays.resize(destination.buffers.size());
  for (std::size_t first = 0; first < destination.buffers.size(); first += destination.tp) {
    if (destination.messages[first].empty()) continue;
    const Buffer& whole = program_.buffers[destination.buffers[first].value];
    for (std::size_t i = first + 1; i < first + destination.tp; ++i) {
      const BufferId to = destination.buffers[i];
      program_.messages.push_back({whole.rank, program_.buffers[to.value].rank,
                                   destination.buffers[first], to, 0, 0, whole.rows, whole.bytes});
      destination.relays[first].emplace_back(program_.messages.size() - 1);
      destination.messages[i].emplace_back(program_.messages.size() - 1);
    }
  }
}

void Builder::make_crossing(const ChunkLink& link) {
  auto [runs, taken] = make_runs(program_.model, plan_, link, table_, program_.batch);
  const std::vector<std::int64_t> made = rows_leaving_all(link.producer);
  Crossing crossing;
  crossing.link = link;
  crossing.forward_source = make_side(link.producer, made, BufferKind::boundary, link);
  crossing.forward_destination = make_side(link.consumer, taken, BufferKind::boundary, link);
  make_messages(runs, crossing.forward_source, crossing.forward_destination);
  if (link.input.gradient && training_) {
    std::vector<std::int64_t> returned(made.size(), 0);
    for (RowRun& run : runs) {
      std::swap(run.producer_work, run.consumer_work);
      std::swap(run.from, run.to);
      returned[run.consumer_work] += run.rows;
    }
    crossing.backward_source = make_side(link.consumer, taken, BufferKind::boundary_gradient, link);
    crossing.backward_destination =
        make_side(link.producer, made, BufferKind::boundary_gradient, link);
    for (std::size_t w = 0; w < made.size(); ++w)
      for (std::size_t t = 0; t < crossing.backward_destination.tp; ++t) {
        const BufferId buffer =
            crossing.backward_destination.buffers[w * crossing.backward_destination.tp + t];
        if (buffer.valid()) program_.buffers[buffer.value].zeroed = returned[w] < made[w];
      }
    make_messages(runs, crossing.backward_source, crossing.backward_destination);
  }
  crossings_.push_back(std::move(crossing));
}

Program Builder::build() {
  const bool part = step_.only.valid();
  const std::uint32_t first = part ? step_.only.value : 0, end = part ? first + 1 : program_.ranks;
  for (std::uint32_t r = first; r < end; ++r) {
    const auto begin = static_cast<std::uint32_t>(program_.ops.size());
    if (!stood_for(Rank(r))) RankLowering(*this, Rank(r)).emit();
    program_.rank_ops.push_back({begin, static_cast<std::uint32_t>(program_.ops.size())});
  }
  return std::move(program_);
}

}  // namespace lowering

Program lower(const Scenario& scenario, const Layout& layout, const Plan& plan,
              const StepPlan& step, const Batch& batch, StepKind kind, const SoftwareStack& stack) {
  return lowering::Builder(scenario, layout, plan, step, batch, kind, stack).build();
}

Program lower(const Scenario& scenario, const Layout& layout, const Plan& plan, const Batch& batch,
              StepKind kind, const SoftwareStack& stack) {
  return lower(scenario, layout, plan, make_step_plan(scenario, layout, plan, batch), batch, kind,
               stack);
}

}  // namespace polyphony

// The tables of a Program: works and their sizes. Groups are made in lower_groups.cpp; buffers
// and messages of links that cross ranks in lower_crossings.cpp.
#include "shared/lower/lower.h"

#include <algorithm>

#include "shared/chunk/expand.h"
#include "shared/error.h"
#include "shared/lower/lowering.h"

namespace polyphony {
namespace lowering {

Builder::Builder(const Scenario& scenario, const Layout& layout, const Plan& plan,
                 const StepPlan& step, const Batch& batch, StepKind kind,
                 const SoftwareStack& stack)
    : plan_(plan),
      step_(step),
      table_(step.works),
      turns_(plan, step.works, step.turns),
      stack_(stack),
      cluster_(scenario.cluster),
      training_(kind == StepKind::train) {
  program_.model = scenario.model;
  program_.layout = layout;
  program_.precision = scenario.training.precision;
  program_.ranks = static_cast<std::uint32_t>(world_size(layout));
  program_.batch = batch;
  program_.totals = step.totals;
  program_.only = step.only;
  make_works();
  find_representatives();
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
  program_.items_of_works = table_.items_of_works;
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

void Builder::find_representatives() {
  representatives_.resize(plan_.branches.size());
  for (std::size_t b = 0; b < plan_.branches.size(); ++b) {
    const Branch& branch = plan_.branches[b];
    if (!branch.folded()) continue;
    const Range works = table_.of_branch(b);
    for (std::uint32_t w = works.begin; w < works.end; ++w) {
      const Work& work = table_.works[w];
      const int lane = static_cast<int>(work.lane), context = static_cast<int>(work.context);
      const int lanes_back = lane - branch.represented_by(lane),
                contexts_back = context < branch.kept.contexts ? 0 : context;
      const int back = lanes_back * branch.grid.cp + contexts_back;
      representatives_[b].push_back(
          static_cast<std::uint32_t>(static_cast<int>(w - works.begin) - back));
    }
  }
}

const std::vector<Parameter>& Builder::parameters_of(const Chunk& chunk, bool experts) {
  const auto [entry, fresh] = parameters_.try_emplace({chunk.module, chunk.layers});
  if (fresh)
    for (Parameter& parameter :
         parameters(program_.model.modules[chunk.module.value], chunk.layers))
      entry->second[parameter.expert ? 1 : 0].push_back(std::move(parameter));
  return entry->second[experts ? 1 : 0];
}

std::int64_t Builder::most_tokens(ModuleId module) {
  if (most_tokens_.empty()) {  // once for all ranks: there are as many works as ranks
    most_tokens_.resize(program_.model.modules.size());
    for (std::size_t w = 0; w < program_.works.size(); ++w)
      for (std::size_t m = 0; m < most_tokens_.size(); ++m)
        most_tokens_[m] =
            std::max(most_tokens_[m], program_.size_of(WorkId(w), ModuleId(m)).tokens);
  }
  return most_tokens_[module.value];
}

bool Builder::here(const ChunkPlace& place) const {
  return !step_.only.valid() || plan_.branches[place.branch].holds(step_.only, place.stage);
}

BufferId Builder::add_buffer(Rank rank, BufferKind kind, Bytes bytes) {
  program_.buffers.push_back({rank, kind, 0, 0, bytes});
  return BufferId(program_.buffers.size() - 1);
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

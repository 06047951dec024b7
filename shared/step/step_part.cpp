#include "shared/step/step_part.h"

#include <algorithm>

namespace polyphony {
namespace {

template <class T>
Range append(std::vector<T>& list, const std::vector<T>& from, Range range) {
  const auto begin = static_cast<std::uint32_t>(list.size());
  list.insert(list.end(), from.begin() + range.begin, from.begin() + range.end);
  return {begin, static_cast<std::uint32_t>(list.size())};
}

template <class T>
void sort_unique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

StepParts::StepParts(const Model& model, const Plan& plan, const StepPlan& step, const Batch& batch)
    : plan_(plan),
      step_(step),
      batch_(batch),
      links_(make_links(model, plan)),
      turns_(make_turns(model, plan, step, batch)),
      turn_table_(plan, step.works, turns_),
      first_(batch.samples.size() + 1, 0),
      digest_(digest(step, batch)) {
  const WorkTable& table = step.works;
  const auto each = [&](auto visit) {
    for (std::uint32_t w = 0; w < table.works.size(); ++w)
      for (std::uint32_t i = table.works[w].samples.begin; i < table.works[w].samples.end; ++i)
        visit(table.work_samples[i], w);
  };
  each([&](std::uint32_t sample, std::uint32_t) { ++first_[sample + 1]; });
  for (std::size_t s = 1; s < first_.size(); ++s) first_[s] += first_[s - 1];
  holders_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  each([&](std::uint32_t sample, std::uint32_t w) { holders_[next[sample]++] = w; });
}

std::vector<bool> StepParts::branches_met(Rank rank) const {
  std::vector<bool> met(plan_.branches.size(), false);
  const auto here = [&](const ChunkPlace& at) {
    return plan_.branches[at.branch].holds(rank, at.stage);
  };
  for (std::size_t b = 0; b < met.size(); ++b) met[b] = plan_.branches[b].place_of(rank) >= 0;
  for (const ChunkLink& link : links_) {
    if (here(link.producer)) met[link.consumer.branch] = true;
    if (here(link.consumer)) met[link.producer.branch] = true;
  }
  return met;
}

StepPart StepParts::of(Rank rank) const {
  const WorkTable& table = step_.works;
  const std::vector<bool> met = branches_met(rank);
  std::vector<std::uint32_t> works;
  for (std::size_t b = 0; b < plan_.branches.size(); ++b) {
    const ModuleLayout& grid = plan_.branches[b].grid;
    const int place = plan_.branches[b].place_of(rank);
    if (place < 0) continue;
    const auto context = static_cast<std::uint32_t>(place / grid.tp % grid.cp),
               lane = static_cast<std::uint32_t>(place / (grid.tp * grid.cp) % grid.dp());
    for (int m = 0; m < plan_.branches[b].microbatches; ++m)
      works.push_back(table.first_work[b] +
                      table.place_of(b, static_cast<std::uint32_t>(m), lane, context));
  }
  for (std::size_t own = works.size(), i = 0; i < own; ++i) {
    const Range samples = table.works[works[i]].samples;
    for (std::uint32_t s = samples.begin; s < samples.end; ++s) {
      const std::uint32_t sample = table.work_samples[s];
      for (std::uint32_t h = first_[sample]; h < first_[sample + 1]; ++h)
        if (met[table.works[holders_[h]].branch]) works.push_back(holders_[h]);
    }
  }
  sort_unique(works);

  StepPart part;
  part.step.turns = turn_table_.of(works);
  part.whole = digest_;
  part.step.only = rank;
  part.step.totals = step_.totals;
  part.step.receive_slots = step_.receive_slots;
  part.step.orders = {step_.actions(rank)};
  WorkTable& mine = part.step.works;
  mine.part = true;
  std::size_t branch = 0;
  for (const std::uint32_t w : works) {
    Work work = table.works[w];
    for (; branch <= work.branch; ++branch)
      mine.first_work.push_back(static_cast<std::uint32_t>(mine.works.size()));
    work.samples = append(mine.work_samples, table.work_samples, work.samples);
    work.items = append(mine.items_of_works, table.items_of_works, work.items);
    work.rows = append(mine.work_rows, table.work_rows, work.rows);
    mine.works.push_back(work);
  }
  for (; branch < plan_.branches.size(); ++branch)
    mine.first_work.push_back(static_cast<std::uint32_t>(mine.works.size()));

  part.positions = mine.work_samples;
  sort_unique(part.positions);
  for (const std::uint32_t position : part.positions)
    part.batch.samples.push_back(batch_.samples[position]);
  const auto local = [&](std::uint32_t& sample) {
    sample = static_cast<std::uint32_t>(
        std::lower_bound(part.positions.begin(), part.positions.end(), sample) -
        part.positions.begin());
  };
  for (std::uint32_t& sample : mine.work_samples) local(sample);
  for (ItemOfWork& item : mine.items_of_works) local(item.sample);
  return part;
}

}  // namespace polyphony

#include "shared/search/shortlist.h"

#include <algorithm>
#include <utility>

#include "shared/check/check.h"

namespace polyphony {
bool listed_before(const Listed& a, const Listed& b) {
  if (a.bound.step != b.bound.step) return a.bound.step < b.bound.step;
  if (a.bound.footprint.memory != b.bound.footprint.memory)
    return a.bound.footprint.memory < b.bound.footprint.memory;
  return simpler(a.layout, b.layout);
}

Lister::Lister(const Scenario& scenario, const Space& space, const HardwareProfile& profile,
               const Batch& batch, bool choose_attention)
    : scenario_(scenario),
      space_(space),
      profile_(profile),
      batch_(batch),
      screen_(scenario, profile, batch),
      choose_attention_(choose_attention) {
  divisions_ = space.divisions(rejections_);
  for (std::size_t d = 0; d < divisions_.size(); ++d) {
    const Division& division = divisions_[d];
    Grids grids;
    double others = 1;
    for (std::size_t o = 0; o < space.owners().size(); ++o) {
      const bool own = o == space.language() || !Space::one_grid(division);
      grids.by_owner.push_back(own ? space.grids(division, o, rejections_)
                                   : std::vector<ModuleLayout>(1));
      if (o != space.language()) others *= static_cast<double>(grids.by_owner.back().size());
    }
    if (choose_attention)
      for (ModuleLayout& grid : grids.by_owner[space.language()])
        choose_context_attention(division, grid);
    grids_.push_back(std::move(grids));
    const std::vector<ModuleLayout>& of = grids_.back().by_owner[space.language()];
    if (others == 0) continue;
    for (std::size_t begin = 0; begin < of.size();) {
      std::size_t end = begin;
      const auto same = [&](const ModuleLayout& grid) {
        return grid.tp == of[begin].tp && grid.cp == of[begin].cp && grid.pp == of[begin].pp;
      };
      // Drives depend only on pp, vpp and the number of lanes.
      std::map<int, double> drives;
      Rejections none;
      for (; end < of.size() && same(of[end]); ++end) {
        const auto [known, added] = drives.try_emplace(of[end].vpp);
        if (added)
          known->second = static_cast<double>(space.drives(division, of[end], none).size());
        combinations_ += others * known->second;
      }
      units_.push_back({d, begin, end});
      begin = end;
    }
  }
}

std::unique_ptr<Lister> Lister::another() const {
  return std::make_unique<Lister>(scenario_, space_, profile_, batch_, choose_attention_);
}

// Returns the lower bound for the language module alone; the other modules get plain grids on their
// ranks.
Lister::Least Lister::of_language(const Task& task, const Drive& drive) {
  if (Space::one_grid(task.division)) return {};
  std::vector<ModuleLayout> grids;
  for (std::size_t o = 0; o < task.grids.size(); ++o)
    grids.push_back(o == space_.language() ? task.grids[o] : plain(task.division.ranks[o]));
  const Layout layout = space_.assemble(task.division, grids, drive);
  if (check_layout(scenario_, layout)) return {};  // may be legal with other grids
  const ModuleId language = space_.owners()[space_.language()];
  const PartBound part = screen_.part(layout, language);
  Least least{part.step, part.memory};
  if (least.step > task.limit)  // may be faster with less recomputation
    least.step = std::min(least.step, screen_.part(without_recompute(layout), language).step);
  return least;
}

// Decides whether `combinations` combinations with this lower bound are dropped. While no layout
// fits, one that may need less memory than all before stays open.
Lister::Fate Lister::judge(const Least& least, std::int64_t combinations, Task& task) const {
  const Bytes capacity = scenario_.memory_limit();
  Shortlist& list = task.list;
  // If all grids are listed, the layout may fit with another split into stages.
  const bool splits = task.options.encoders == 0 && task.grids[space_.language()].pp > 1;
  if (capacity.value > 0 && least.memory > capacity && !splits &&
      (list.fits || (list.smallest_too_large &&
                     list.smallest_too_large->bound.footprint.memory <= least.memory))) {
    list.too_large += combinations;
    return Fate::too_large;
  }
  if (least.step <= task.limit) return Fate::open;
  list.pruned += combinations;
  list.rest = std::min(list.rest, least.step);
  return Fate::pruned;
}

void Lister::combine(Task& task, const Drive& drive, std::size_t owner, const Least& least) {
  if (owner == task.grids.size())
    return look(task, space_.assemble(task.division, task.grids, drive));
  if (owner == space_.language()) return combine(task, drive, owner + 1, least);
  const std::vector<RankRange>& ranks = task.division.ranks;
  const bool shares = ranks[owner] == ranks[space_.language()];
  const ModuleLayout& language = task.grids[space_.language()];
  for (const Encoder& encoder : front(task, owner, drive)) {
    Least with = least;
    if (shares) with.memory += encoder.part.always;
    // Some blocks that recompute now may not in the end (recompute_less()).
    if (language.recompute == Recompute::none && encoder.grid.recompute == Recompute::none)
      with.step = shares ? with.step + encoder.part.least : std::max(with.step, encoder.part.step);
    if (judge(with, 1, task) != Fate::open) continue;
    task.grids[owner] = encoder.grid;
    combine(task, drive, owner + 1, with);
  }
}

Shortlist Lister::list(const Unit& unit, const ListerOptions& options) {
  const Division& division = divisions_[unit.division];
  const std::vector<std::vector<ModuleLayout>>& choices = grids_[unit.division].by_owner;
  const auto limit = options.limits.find(division.placement);
  Task task{unit, division, options,
            limit != options.limits.end() ? limit->second
                                          : Seconds(std::numeric_limits<double>::infinity())};
  Shortlist& list = task.list;
  std::int64_t others = 1;
  for (std::size_t o = 0; o < choices.size(); ++o) {
    task.grids.push_back(choices[o].front());
    if (o != space_.language()) others *= static_cast<std::int64_t>(choices[o].size());
  }
  // Drives depend only on pp, vpp and the number of lanes.
  struct Drives {
    std::vector<Drive> list;
    Rejections rejections;
    std::int64_t grids = 0;
  };
  std::map<int, Drives> drives;
  for (std::size_t i = unit.begin; i < unit.end; ++i) {
    const ModuleLayout& grid = choices[space_.language()][i];
    task.grids[space_.language()] = grid;
    Drives& of = drives[grid.vpp];
    if (of.grids++ == 0) of.list = space_.drives(division, grid, of.rejections);
    // Within one schedule, larger microbatches need no less memory: after the first that does not
    // fit, the others of its schedule are skipped.
    std::optional<ScheduleKind> full;
    // All schedules that place stages in the same way have the same work: one that is too slow
    // rules out all.
    using Place = decltype(Schedule::place);
    std::vector<std::pair<int, Place>> slow;
    for (const Drive& drive : of.list) {
      list.considered += others;
      if (full == drive.schedule) {
        list.too_large += others;
        continue;
      }
      const std::pair<int, Place> work{drive.microbatches, schedule(drive.schedule).place};
      if (std::find(slow.begin(), slow.end(), work) != slow.end()) {
        list.pruned += others;
        continue;
      }
      const Least least = of_language(task, drive);
      const Fate fate = judge(least, others, task);
      const std::int64_t large = list.too_large;
      const std::size_t resplit = list.may_fit_if_resplit.size();
      if (fate == Fate::open) combine(task, drive, 0, least);
      if (fate == Fate::pruned) slow.push_back(work);
      const bool alone =
          drive.encoder_microbatches == 0 && drive.encoder_order == EncoderOrder::in_turn;
      if ((fate == Fate::too_large && alone) ||
          (Space::one_grid(division) && list.too_large > large &&
           list.may_fit_if_resplit.size() == resplit))
        full = drive.schedule;
    }
  }
  for (const auto& [vpp, of] : drives)
    for (const Rejection& r : of.rejections.all())
      task.rejections.add(r.placement, r.example, r.count * of.grids);
  list.rejections = task.rejections.all();
  return std::move(list);
}

}  // namespace polyphony

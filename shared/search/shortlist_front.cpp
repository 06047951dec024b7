// Selects the grids of an encoder that are worth combining: shared/search/shortlist.h.
#include <algorithm>
#include <utility>

#include "shared/check/check.h"
#include "shared/search/shortlist.h"

namespace polyphony {
namespace {

// Returns whether two grids have the same ranks, with equal tp, cp, pp and dp.
ModuleLayout plain(const ModuleLayout& grid) {
  ModuleLayout other;
  other.tp = grid.tp;
  other.cp = grid.cp;
  other.pp = grid.pp;
  other.first_rank = grid.first_rank;
  other.ranks = grid.ranks;
  return other;
}

}  // namespace

ModuleLayout plain(const RankRange& ranks) {
  ModuleLayout grid;
  grid.first_rank = ranks.first;
  grid.ranks = ranks.count;
  return grid;
}

const std::vector<Lister::Encoder>& Lister::front(const Task& task, std::size_t owner,
                                                  const Drive& drive) {
  const std::vector<ModuleLayout>& all = grids_[task.unit.division].by_owner[owner];
  if (task.options.encoders == 0 || Space::one_grid(task.division)) {
    const auto [known, added] =
        fronts_.try_emplace(FrontKey{task.unit.division, owner, 0, 0, {}, 0, 0, 0});
    if (added)
      for (const ModuleLayout& grid : all) known->second.push_back({grid, {}});
    return known->second;
  }
  const std::vector<RankRange>& ranks = task.division.ranks;
  // The other fields of the language module do not affect an encoder.
  std::vector<ModuleLayout> tried = task.grids;
  ModuleLayout& language = tried[space_.language()];
  language = plain(language);
  // Encoders on the same ranks have the same pp and vpp: chosen by the first of them, used by the
  // others.
  int shared_pp = 0, shared_vpp = 0;
  bool shares = ranks[owner] == ranks[space_.language()];
  std::vector<std::size_t> following;
  for (std::size_t o = 0; o < tried.size(); ++o) {
    if (o == owner || o == space_.language() || ranks[o] != ranks[owner]) continue;
    shares = true;
    if (o < owner)
      shared_pp = tried[o].pp, shared_vpp = tried[o].vpp;
    else
      following.push_back(o);
  }
  const auto [known, added] = fronts_.try_emplace(
      FrontKey{task.unit.division, owner, drive.microbatches, drive.encoder_microbatches,
               drive.encoder_order, language.pp, shared_pp, shared_vpp});
  if (!added) return known->second;
  std::vector<Encoder> found;
  Drive plain_drive = drive;
  plain_drive.schedule = ScheduleKind::one_f_one_b;
  const Bytes capacity = scenario_.memory_limit();
  for (const ModuleLayout& grid : all) {
    tried[owner] = grid;
    for (const std::size_t o : following) {
      tried[o] = plain(ranks[o]);
      tried[o].pp = grid.pp;
      tried[o].vpp = grid.vpp;
    }
    const Layout layout = space_.assemble(task.division, tried, plain_drive);
    if (check_layout(scenario_, layout)) continue;
    const PartBound part = screen_.part(layout, space_.owners()[owner]);
    if (capacity.value > 0 && part.memory > capacity) continue;
    found.push_back({grid, part});
  }
  // On shared ranks, other modules add to the memory that is always resident.
  const auto memory = [&](const Encoder& of) { return shares ? of.part.always : of.part.memory; };
  std::sort(found.begin(), found.end(), [&](const Encoder& a, const Encoder& b) {
    if (a.part.step != b.part.step) return a.part.step < b.part.step;
    if (memory(a) != memory(b)) return memory(a) < memory(b);
    return simpler(a.grid, b.grid);
  });
  Bytes least{std::numeric_limits<std::int64_t>::max()};
  for (const Encoder& each : found) {
    if (memory(each) >= least) continue;
    least = memory(each);
    known->second.push_back(each);
    if (known->second.size() == task.options.encoders) break;
  }
  return known->second;
}

}  // namespace polyphony

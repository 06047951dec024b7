// Checks samples: each branch processes every sample or item that it consumes once. The language
// module's branch consumes all samples; with context parallelism, the tokens of a sample are
// partitioned over the contexts. Other branches consume the items of their modality. A module has
// processed a microbatch if a forward op runs it.
#include <algorithm>
#include <map>

#include "shared/program/work.h"
#include "shared/verify/verify_checks.h"

namespace polyphony {
namespace {

bool is_language(const Program& program, std::size_t module) {
  return program.model.modules[module].kind == ModuleKind::language;
}

// Returns true if a microbatch has samples or items for the module.
bool has_part(const Program& program, std::size_t module, const Work& work) {
  if (is_language(program, module)) return work.samples.size() > 0;
  return std::any_of(program.items_of_works.begin() + work.items.begin,
                     program.items_of_works.begin() + work.items.end, [&](const ItemOfWork& place) {
                       return takes(program.model, ModuleId(module),
                                    program.batch.samples[place.sample].items[place.item].modality);
                     });
}

// Checks the language module's branch: each sample is in one replica, each of its tokens in one
// context.
void check_language(const Program& program, std::uint32_t branch, Faults& faults) {
  std::vector<std::uint32_t> uses(program.batch.samples.size(), 0);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Interval>> rows;  // by index, lane
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> totals;
  for (const Work& work : program.works) {
    if (work.branch != branch) continue;
    std::vector<Interval>& held = rows[{work.index, work.lane}];
    held.insert(held.end(), program.work_rows.begin() + work.rows.begin,
                program.work_rows.begin() + work.rows.end);
    if (work.context > 0) continue;
    for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i) {
      ++uses[program.work_samples[i]];
      totals[{work.index, work.lane}] +=
          language_rows(program.model, program.batch.samples[program.work_samples[i]]);
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const std::string text =
        "sample " + std::to_string(i) + " of the batch, branch " + std::to_string(branch);
    if (uses[i] > 1) faults.add(FaultKind::doubled_sample, text + ": in more than one microbatch");
    if (uses[i] == 0) faults.add(FaultKind::unused_sample, text + ": in no microbatch");
  }
  for (auto& [work, held] : rows) {
    std::sort(held.begin(), held.end());
    std::int64_t reached = 0;
    for (const Interval& interval : held) {
      const std::string text = "microbatch " + std::to_string(work.first) + ", lane " +
                               std::to_string(work.second) + ", token " + std::to_string(reached);
      if (interval.begin > reached) faults.add(FaultKind::unused_sample, text + ": in no context");
      if (interval.begin < reached)
        faults.add(FaultKind::doubled_sample, text + ": in more than one context");
      reached = std::max(reached, interval.end);
    }
    if (reached != totals[work])
      faults.add(FaultKind::unused_sample,
                 "microbatch " + std::to_string(work.first) + ", lane " +
                     std::to_string(work.second) + ": " + std::to_string(reached) + " of " +
                     std::to_string(totals[work]) + " tokens are assigned to contexts");
  }
}

// Returns whether context-parallel ranks of the branch encode the same items.
bool copies_items(const Program& program, const std::vector<char>& member) {
  for (std::size_t m = 0; m < member.size(); ++m)
    if (member[m] && program.layout.modules[m].copies_items()) return true;
  return false;
}

// Checks that each item that a module of the branch processes is in one microbatch; if they are
// copied, on each context-parallel rank.
void check_items(const Program& program, std::uint32_t branch, const std::vector<char>& member,
                 Faults& faults) {
  const bool copied = copies_items(program, member);
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> uses;
  std::vector<ItemOfWork> first;  // of context 0, the works of whose contexts are neighbors
  for (const Work& work : program.works) {
    if (work.branch != branch) continue;
    const std::vector<ItemOfWork> items(program.items_of_works.begin() + work.items.begin,
                                        program.items_of_works.begin() + work.items.end);
    if (copied && work.context > 0) {
      if (items != first)
        faults.add(FaultKind::unused_sample,
                   "microbatch " + std::to_string(work.index) + ", lane " +
                       std::to_string(work.lane) + ", context " + std::to_string(work.context) +
                       ": other items than context 0, of which they should be copies");
      continue;
    }
    first = items;
    for (const ItemOfWork& item : items) ++uses[{item.sample, item.item}];
  }
  for (std::uint32_t s = 0; s < program.batch.samples.size(); ++s) {
    const std::vector<Item>& items = program.batch.samples[s].items;
    for (std::uint32_t k = 0; k < items.size(); ++k) {
      bool wanted = false;
      for (std::size_t m = 0; m < program.model.modules.size(); ++m)
        wanted = wanted || (member[m] && takes(program.model, ModuleId(m), items[k].modality));
      const int count = uses[{s, k}];
      const std::string text = "sample " + std::to_string(s) + ", item " + std::to_string(k) +
                               " of the batch, branch " + std::to_string(branch);
      if (count > 1) faults.add(FaultKind::doubled_sample, text + ": in more than one microbatch");
      if (wanted && count == 0) faults.add(FaultKind::unused_sample, text + ": in no microbatch");
    }
  }
}

// A module belongs to the branches of which it runs a microbatch. It must run all microbatches of
// these branches that have samples or items for it.
void check_runs(const Program& program, std::size_t branches, Faults& faults) {
  const std::size_t modules = program.model.modules.size();
  std::vector<char> ran(program.works.size() * modules, 0), member(branches * modules, 0);
  for (const Op& op : program.ops) {
    const auto* compute = std::get_if<Compute>(&op.what);
    if (compute == nullptr || compute->phase != Phase::forward) continue;
    ran[compute->work.value * modules + compute->module.value] = 1;
    member[program.works[compute->work.value].branch * modules + compute->module.value] = 1;
  }
  for (std::size_t i = 0; i < program.works.size(); ++i) {
    const Work& work = program.works[i];
    for (std::size_t module = 0; module < modules; ++module) {
      if (ran[i * modules + module] || !member[work.branch * modules + module]) continue;
      if (!has_part(program, module, work)) continue;
      faults.add(FaultKind::unused_sample, "microbatch (work) " + std::to_string(i) +
                                               " never runs through module " +
                                               program.model.modules[module].name);
    }
  }
  for (std::size_t branch = 0; branch < branches; ++branch) {
    const std::vector<char> of(
        member.begin() + static_cast<std::ptrdiff_t>(branch * modules),
        member.begin() + static_cast<std::ptrdiff_t>((branch + 1) * modules));
    bool language = false;
    for (std::size_t m = 0; m < modules; ++m)
      language = language || (of[m] && is_language(program, m));
    if (language) check_language(program, static_cast<std::uint32_t>(branch), faults);
    check_items(program, static_cast<std::uint32_t>(branch), of, faults);
  }
}

}  // namespace

void check_samples(const Program& program, Faults& faults) {
  std::size_t branches = 0;
  for (const Work& work : program.works)
    branches = std::max<std::size_t>(branches, work.branch + 1u);
  if (branches == 0 && !program.batch.samples.empty()) {
    faults.add(FaultKind::unused_sample, "the batch has samples, but there are no microbatches");
  }
  check_runs(program, branches, faults);
}

}  // namespace polyphony

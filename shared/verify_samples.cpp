// Every sample is used once by each branch that consumes it: the last branch takes all samples, an
// encoder's those that hold an image (samples without one may go through it or not). A sample
// counts as used by a module when a forward op runs its work.
#include <algorithm>

#include "shared/verify_checks.h"

namespace polyphony {
namespace {

bool has_image(const Sample& sample) {
  return std::any_of(sample.items.begin(), sample.items.end(),
                     [](const Item& item) { return item.modality == Modality::image; });
}

bool needs_every_sample(const Module& module) {
  switch (module.kind) {
    case ModuleKind::language:
    case ModuleKind::diffusion:
      return true;
    case ModuleKind::vision:
    case ModuleKind::audio:
    case ModuleKind::projector:
      return false;
  }
  return true;
}

void check_branch(const Program& program, std::uint16_t branch, bool is_last, Faults& faults) {
  std::vector<std::uint32_t> uses(program.batch.samples.size(), 0);
  for (const Work& work : program.works) {
    if (work.branch != branch) continue;
    for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i) {
      ++uses[program.work_samples[i]];
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const std::string text =
        "sample " + std::to_string(i) + " of the batch, branch " + std::to_string(branch);
    if (uses[i] > 1) faults.add(FaultKind::doubled_sample, text + ": in more than one work");
    if (uses[i] == 0 && (is_last || has_image(program.batch.samples[i]))) {
      faults.add(FaultKind::unused_sample, text + ": in no work");
    }
  }
}

// A module belongs to the branches whose works it ever runs; it must run all of their works that
// hold something for it.
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
      const bool all = needs_every_sample(program.model.modules[module]);
      for (std::uint32_t k = work.samples.begin; k < work.samples.end; ++k) {
        const std::uint32_t sample = program.work_samples[k];
        if (!all && !has_image(program.batch.samples[sample])) continue;
        faults.add(FaultKind::unused_sample, "sample " + std::to_string(sample) +
                                                 " of the batch: its work " + std::to_string(i) +
                                                 " never runs through module " +
                                                 program.model.modules[module].name);
      }
    }
  }
}

}  // namespace

void check_samples(const Program& program, Faults& faults) {
  std::size_t branches = 0;
  for (const Work& work : program.works)
    branches = std::max<std::size_t>(branches, work.branch + 1u);
  for (std::size_t branch = 0; branch < branches; ++branch) {
    check_branch(program, static_cast<std::uint16_t>(branch), branch + 1 == branches, faults);
  }
  if (branches == 0 && !program.batch.samples.empty()) {
    faults.add(FaultKind::unused_sample, "the batch has samples, but there is no work");
  }
  check_runs(program, branches, faults);
}

}  // namespace polyphony

#include "shared/chance/extrapolation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "shared/program/expand_op.h"
#include "shared/text/quantity_text.h"

namespace polyphony {
namespace {

// The size of one kernel or transfer, how often it occurs, and its fraction of the work.
struct Asked {
  double value = 0;
  double work = 0;
  std::size_t count = 1;
};
struct Demands {
  std::vector<Asked> gemm_size, message_bytes, collective_bytes, ranks;
  std::map<std::pair<LayerKind, Phase>, Asked> layers;  // value unused
  double kernel_work = 0, sent = 0;
};

// Compute ops of equal shape are examined once.
using Shape = std::tuple<std::uint32_t, std::uint16_t, std::uint16_t, Phase, std::int64_t,
                         std::int64_t, std::int64_t, std::uint32_t, Recipe>;

std::size_t group_size(const Program& program, const Op& op, const Compute& compute,
                       GroupKind kind) {
  GroupId group = op.group;
  if (compute.params.valid()) {
    const ParamGroup& params = program.params[compute.params.value];
    group = kind == GroupKind::context  ? params.context
            : kind == GroupKind::expert ? params.expert
                                        : params.tensor;
  }
  return group.valid() ? program.groups[group.value].members.size() : 1;
}

void add_compute(const Program& program, OpId id, const Compute& compute, std::size_t count,
                 const HardwareProfile* profile, Demands& demands) {
  // Measured layer times are not modeled, so that they are not extrapolated.
  const Module& module = program.model.modules[compute.module.value];
  if (profile && profile->layer_times.contains(module.name)) return;
  const Expansion inside = expand(program, id);
  const auto times = static_cast<double>(count);
  for (const Kernel& kernel : inside.kernels) {
    const double work =
        profile ? times * kernel_time(*profile, kernel, program.precision).count() : times;
    demands.kernel_work += work;
    Asked& layer = demands.layers[{kernel.layer, compute.phase}];
    layer.work += work;
    layer.count += count;
    // A rank may have no rows for a GEMM, as for the head of a context without labels.
    if (kernel.kind != KernelKind::gemm || !(kernel.flops.value > 0)) continue;
    demands.gemm_size.push_back(
        {std::cbrt(static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                   static_cast<double>(kernel.k)),
         work, count});
  }
  for (const InnerCollective& collective : inside.collectives) {
    const auto ranks =
        static_cast<double>(group_size(program, program.ops[id.value], compute, collective.group));
    if (ranks < 2) continue;
    const auto bytes = static_cast<double>(collective.bytes.value);
    demands.sent += times * bytes;
    demands.collective_bytes.push_back({bytes, times * bytes, count});
    demands.ranks.push_back({ranks, times * bytes, count});
  }
}

Demands demands_of(const Program& program, const HardwareProfile* profile) {
  Demands demands;
  std::map<Shape, std::pair<OpId, std::size_t>> shapes;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Op& what = program.ops[op];
    if (const auto* compute = std::get_if<Compute>(&what.what)) {
      const WorkSize& size = program.size_of(compute->work, compute->module);
      const Shape shape{compute->module.value, compute->layers.begin, compute->layers.end,
                        compute->phase,        size.tokens,           size.pairs,
                        size.loss_tokens,      what.group.value,      compute->recipe};
      ++shapes.try_emplace(shape, OpId(op), 0).first->second.second;
    } else if (const auto* collective = std::get_if<Collective>(&what.what)) {
      const auto ranks =
          static_cast<double>(program.groups[collective->group.value].members.size());
      if (!collective->params.valid() || ranks < 2) continue;
      const auto bytes = static_cast<double>(collective->bytes.value);
      demands.collective_bytes.push_back({bytes, bytes});
      demands.ranks.push_back({ranks, bytes});
      demands.sent += bytes;
    }
  }
  for (const auto& [shape, seen] : shapes)
    add_compute(program, seen.first, std::get<Compute>(program.ops[seen.first.value].what),
                seen.second, profile, demands);
  for (const Message& message : program.messages) {
    if (message.source == message.destination || message.bytes.value == 0) continue;
    const auto bytes = static_cast<double>(message.bytes.value);
    demands.message_bytes.push_back({bytes, bytes});
    demands.sent += bytes;
  }
  return demands;
}

void widen(std::optional<FittedRange>& range, const std::vector<Asked>& all) {
  for (const Asked& asked : all) {
    if (asked.value <= 0) continue;
    if (!range) range = {asked.value, asked.value};
    range->low = std::min(range->low, asked.value);
    range->high = std::max(range->high, asked.value);
  }
}

std::string bytes_in_words(double value) {
  const auto text = [](double number, const char* unit) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.3g %s", number, unit);
    return std::string(buffer);
  };
  if (value >= 1 << 30) return text(value / (1 << 30), "GiB");
  if (value >= 1 << 20) return text(value / (1 << 20), "MiB");
  if (value >= 1 << 10) return text(value / (1 << 10), "KiB");
  return text(value, "B");
}
std::string elements_in_words(double value) { return std::to_string(std::llround(value)); }

// Adds one entry for values below the range, and one for values above.
void judge(const std::string& what, const std::optional<FittedRange>& fitted,
           const std::vector<Asked>& all, double whole, std::string (*words)(double),
           std::vector<Extrapolation>& found) {
  if (!fitted) return;
  constexpr double kSlack = 0.05;  // values up to 5 % outside are not reported
  for (const bool above : {false, true}) {
    Extrapolation outside;
    double worst = above ? fitted->high : fitted->low;
    for (const Asked& asked : all) {
      const bool out = above ? asked.value > fitted->high * (1 + kSlack)
                             : asked.value < fitted->low * (1 - kSlack);
      if (!out) continue;
      outside.share += whole > 0 ? asked.work / whole : 0;
      outside.count += asked.count;
      worst = above ? std::max(worst, asked.value) : std::min(worst, asked.value);
    }
    if (outside.count == 0) continue;
    outside.what = what + (above ? " up to " : " down to ") + words(worst) + "; fitted on " +
                   words(fitted->low) + " to " + words(fitted->high);
    found.push_back(std::move(outside));
  }
}

}  // namespace

std::string other_software(const std::string& wanted, const HardwareProfile& profile) {
  const auto holds = [&](const std::string& text) {
    return text.find(wanted) != std::string::npos;
  };
  if (wanted.empty() || profile.stack.name == wanted || holds(profile.software)) return "";
  return profile.stack.name + (profile.software.empty() ? "" : " (" + profile.software + ")");
}

FittedRanges seen_ranges(const std::vector<const Program*>& programs) {
  FittedRanges ranges;
  for (const Program* program : programs) {
    const Demands demands = demands_of(*program, nullptr);
    widen(ranges.gemm_size, demands.gemm_size);
    widen(ranges.message_bytes, demands.message_bytes);
    widen(ranges.collective_bytes, demands.collective_bytes);
    widen(ranges.ranks, demands.ranks);
  }
  return ranges;
}

std::vector<Extrapolation> find_extrapolations(const Program& program,
                                               const HardwareProfile& profile) {
  const Demands demands = demands_of(program, &profile);
  const FittedRanges& fitted = profile.certainty.fitted;
  std::vector<Extrapolation> found;
  judge("GEMM sizes (m·n·k)^(1/3)", fitted.gemm_size, demands.gemm_size, demands.kernel_work,
        elements_in_words, found);
  judge("messages", fitted.message_bytes, demands.message_bytes, demands.sent, bytes_in_words,
        found);
  judge("collectives", fitted.collective_bytes, demands.collective_bytes, demands.sent,
        bytes_in_words, found);
  judge("groups of ranks", fitted.ranks, demands.ranks, demands.sent, elements_in_words, found);
  if (fitted != FittedRanges{}) {
    const auto unseen = [&](const char* what, const auto& range, const std::vector<Asked>& all) {
      if (range || all.empty()) return;
      Extrapolation none{std::string(what) + ": the profile was fitted on none", 0, 0};
      for (const Asked& asked : all) {
        none.share += demands.sent > 0 ? asked.work / demands.sent : 0;
        none.count += asked.count;
      }
      found.push_back(std::move(none));
    };
    unseen("messages", fitted.message_bytes, demands.message_bytes);
    if (!fitted.ranks) unseen("collectives", fitted.collective_bytes, demands.collective_bytes);
  }
  if (!profile.corrections.empty()) {
    for (const auto& [key, asked] : demands.layers) {
      if (profile.corrections.contains(key)) continue;
      found.push_back(
          {std::string(name(key.first)) + " " + name(key.second) + ": no correction in the profile",
           demands.kernel_work > 0 ? asked.work / demands.kernel_work : 0, asked.count});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Extrapolation& a, const Extrapolation& b) {
    return a.share > b.share;
  });
  return found;
}

}  // namespace polyphony

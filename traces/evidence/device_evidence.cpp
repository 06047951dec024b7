#include "traces/evidence/device_evidence.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "shared/error.h"
#include "traces/compare/spread.h"
#include "traces/kineto/device_times.h"
#include "traces/kineto/summary.h"

namespace polyphony::traces {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

std::string_view text_of(const DeviceTrace& trace, std::uint32_t name) {
  return name == kNone ? std::string_view() : trace.names[name];
}

bool is_grouped(std::string_view name) { return has_any(name, {"rouped", "GroupProblemShape"}); }

bool is_backward(std::string_view name) {
  return has_any(name, {"bwd", "Bwd", "bprop", "ackward", "_dq", "_dkv", "dot_do_o"});
}

// Returns the group of a kernel; nothing for communication, copies to and from the host, and
// kernels that no table has.
std::optional<KernelGroup> group_of(const DeviceTrace& trace, const DeviceEvent& event) {
  const std::string_view kernel = trace.names[event.name], op = text_of(trace, event.op);
  switch (event.kind) {
    case KernelClass::gemm:
      return is_grouped(kernel) || is_grouped(op) ? KernelGroup::grouped_gemm : KernelGroup::gemm;
    case KernelClass::convolution:
      return KernelGroup::gemm;
    case KernelClass::attention:
      return is_backward(kernel) || is_backward(op) ? KernelGroup::attention_backward
                                                    : KernelGroup::attention_forward;
    case KernelClass::optimizer:
      return KernelGroup::optimizer;
    case KernelClass::normalisation:
    case KernelClass::softmax:
    case KernelClass::elementwise:
    case KernelClass::reduction:
    case KernelClass::embedding:
    case KernelClass::data_movement:
    case KernelClass::sort:
    case KernelClass::on_device:
    case KernelClass::fill:
      return KernelGroup::memory_bound;
    case KernelClass::layers:
    case KernelClass::unknown:
    case KernelClass::collective:
    case KernelClass::to_device:
    case KernelClass::to_host:
      break;
  }
  return {};
}

double relative_deviation_of_mean(const std::vector<Seconds>& times) {
  if (times.size() < 2) return 0;
  const double n = static_cast<double>(times.size());
  double mean = 0, squares = 0;
  for (const Seconds time : times) mean += time.count() / n;
  for (const Seconds time : times) squares += (time.count() - mean) * (time.count() - mean);
  return mean > 0 ? std::sqrt(squares / (n - 1) / n) / mean : 0;
}

class Collector {
 public:
  explicit Collector(const DeviceTrace& trace) : trace_(trace) {
    // Events outside of all steps count only if there are no steps.
    sums_.resize(std::max<std::size_t>(1, trace.steps.size()));
    unknown_.resize(sums_.size());
    ran_.resize(sums_.size());
    for (const DeviceEvent& event : trace.events)
      if (event.step >= 0 || trace.steps.empty())
        add(event, static_cast<std::size_t>(std::max(0, event.step)));
    for (const ProductCall& call : product_calls(trace))
      if ((call.step >= 0 || trace.steps.empty()) && !is_grouped(text_of(trace, call.op)))
        products_[call.product].emplace_back(call.time);
  }

  DeviceEvidence finish() {
    DeviceEvidence found{trace_.file, trace_.rank, trace_.world, trace_.device};
    if (trace_.numbered) found.rank.reset();
    found.steps = static_cast<std::size_t>(std::count(ran_.begin(), ran_.end(), true));
    if (found.steps == 0)
      throw InputError(trace_.file, "", "has no kernels that were launched within its steps",
                       "name the annotations of steps with --step");
    found.separated = !trace_.steps.empty();
    for (std::size_t group = 0; group < kKernelGroups; ++group)
      found.groups[group] = measured(group);
    found.unknown = median(of_steps_that_ran(unknown_));
    for (const auto& [product, times] : products_) {
      const double count = static_cast<double>(times.size()) / static_cast<double>(found.steps);
      Seconds all{};
      for (const Seconds time : times) all += time;
      found.products.push_back({product, count, all / static_cast<double>(times.size())});
      found.known_products += all.count();
    }
    double all = 0;
    for (std::size_t step = 0; step < sums_.size(); ++step)
      all += sums_[step][place(KernelGroup::gemm)].count();
    found.known_products = all > 0 ? found.known_products / all : 0;
    found.step = step_time();
    return found;
  }

 private:
  void add(const DeviceEvent& event, std::size_t step) {
    ran_[step] = true;
    const Seconds time(event.duration);
    const auto group = group_of(trace_, event);
    if (!group) {
      if (event.kind == KernelClass::unknown) unknown_[step] += time;
      return;
    }
    sums_[step][place(*group)] += time;
    ++kernels_[place(*group)];
    names_[place(*group)][event.name] += time;
  }

  std::vector<Seconds> of_steps_that_ran(const std::vector<Seconds>& by_step) const {
    std::vector<Seconds> kept;
    for (std::size_t step = 0; step < by_step.size(); ++step)
      if (ran_[step]) kept.push_back(by_step[step]);
    return kept;
  }

  MeasuredGroup measured(std::size_t group) const {
    std::vector<Seconds> by_step;
    for (const auto& sums : sums_) by_step.push_back(sums[group]);
    by_step = of_steps_that_ran(by_step);
    MeasuredGroup result{median(by_step), relative_deviation_of_mean(by_step), kernels_[group], {}};
    for (const auto& [name, time] : names_[group])
      result.by_name[trace_.names[name]] = time / static_cast<double>(by_step.size());
    return result;
  }

  Seconds step_time() const {
    const RankTimes times = rank_times(trace_);
    std::vector<Seconds> lengths;
    for (std::size_t i = 0; i + 1 < times.steps.size(); ++i)
      lengths.push_back(times.steps[i + 1].times.first - times.steps[i].times.first);
    if (!lengths.empty()) return median(lengths);
    if (times.steps.empty()) return times.whole.span;
    const StepTimes& only = times.steps.front();
    return std::max(only.times.span, trace_.steps[only.step].duration);
  }

  const DeviceTrace& trace_;
  std::vector<std::array<Seconds, kKernelGroups>> sums_;  // by step
  std::vector<Seconds> unknown_;                          // by step
  std::vector<bool> ran_;                                 // by step: whether it launched anything
  std::array<std::int64_t, kKernelGroups> kernels_ = {};
  std::array<std::map<std::uint32_t, Seconds>, kKernelGroups> names_;  // time by name
  std::map<MatrixProduct, std::vector<Seconds>> products_;
};

}  // namespace

DeviceEvidence device_evidence(const DeviceTrace& trace) {
  if (trace.on_host)
    throw InputError(trace.file, "", "is of a rank on a CPU, whose kernels it does not have",
                     "give the profile of a rank on a GPU");
  DeviceEvidence found = Collector(trace).finish();
  if (!(found.of(KernelGroup::gemm).time > Seconds(0)))
    throw InputError(trace.file, "", "has no GEMMs: a training step has",
                     "profile whole steps, and call profiler.step() once a step");
  return found;
}

}  // namespace polyphony::traces

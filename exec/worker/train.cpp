#include "exec/worker/train.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "exec/checkpoint/checkpoint.h"
#include "exec/runner/clock.h"
#include "exec/runner/step_data.h"
#include "exec/system/process.h"
#include "exec/worker/run_files.h"
#include "shared/cost/cost_model.h"
#include "shared/error.h"
#include "shared/plan/lower.h"
#include "shared/program/verify.h"

namespace polyphony::exec {
namespace {

double learning_rate(const Training& training, std::int64_t step) {
  if (step >= training.warmup_steps) return training.learning_rate;
  return training.learning_rate * static_cast<double>(step + 1) /
         static_cast<double>(training.warmup_steps);
}

Runner::Pace make_pace(const Program& program, Rank rank, const Cluster& cluster,
                       const HardwareProfile& profile, double scale) {
  Runner::Pace pace(program.ops.size());
  const Range ops = program.ops_of(rank);
  for (std::uint32_t i = ops.begin; i < ops.end; ++i)
    if (std::holds_alternative<Compute>(program.ops[i].what))
      pace[i] = scale * compute_time(program, OpId(i), cluster, profile);
  return pace;
}

// Decisions that all ranks must take at the same step. Exchanged about twice a second, at steps
// that all ranks derive from the same numbers, so that short steps do not pay for it.
class Control {
 public:
  struct Decision {
    bool interrupted = false;
    Seconds elapsed{};  // of the rank that has run longest
  };
  explicit Control(Transport& transport) : world_(transport.world_size()) {
    std::vector<Rank> all;
    for (int r = 0; r < world_; ++r) all.emplace_back(static_cast<std::size_t>(r));
    group_ = transport.make_group("control", all);
  }

  bool due(std::int64_t step) const { return step >= next_; }

  Decision exchange(std::int64_t step, bool interrupted, Seconds elapsed, Seconds last_step,
                    std::uint64_t plan) {
    const auto high = static_cast<double>(plan >> 32),
               low = static_cast<double>(plan & 0xffffffffu);
    torch::Tensor values = torch::tensor(
        {interrupted ? 1.0 : 0.0, elapsed.count(), last_step.count(), high, -high, low, -low},
        torch::kFloat64);
    group_->all_reduce(values, Reduction::max);
    const double* v = values.const_data_ptr<double>();
    POLYPHONY_CHECK(v[3] == -v[4] && v[5] == -v[6], "the ranks have different plans for step "
                                                        << step << "; do all read the same data?");
    next_ = step + std::max<std::int64_t>(1, static_cast<std::int64_t>(0.5 / std::max(1e-3, v[2])));
    return {v[0] > 0, Seconds(v[1])};
  }

  // Sums over the ranks.
  void sum(torch::Tensor& values) { group_->all_reduce(values, Reduction::sum); }

 private:
  int world_;
  std::unique_ptr<Communicator> group_;
  std::int64_t next_ = 0;
};

// Tensor-parallel index of the rank in the language module's grid; only index 0 counts predictions.
bool counts_predictions(const Program& program, Rank rank) {
  const ModuleLayout& grid = program.layout.modules[language_module(program.model).value];
  return (static_cast<int>(rank.value) - grid.first_rank) % grid.tp == 0;
}

std::vector<Sample> spread_out(std::vector<Sample> samples, int wanted) {
  if (wanted <= 0 || static_cast<std::size_t>(wanted) >= samples.size()) return samples;
  std::vector<Sample> chosen;
  for (int i = 0; i < wanted; ++i)
    chosen.push_back(
        samples[samples.size() * static_cast<std::size_t>(i) / static_cast<std::size_t>(wanted)]);
  return chosen;
}

// Right answers and questions among the first `real` samples of a batch, as far as this rank
// predicted them. `positions`: of the Program's samples in the batch.
std::pair<double, double> count_right(const Program& program,
                                      const std::vector<std::uint32_t>& positions,
                                      const std::map<WorkId, torch::Tensor>& predictions,
                                      const std::map<WorkId, WorkInput>& inputs, std::size_t real) {
  double right = 0, asked = 0;
  for (const auto& [work, predicted] : predictions) {
    const torch::Tensor same =
        predicted.eq(inputs.at(work).labels).to(torch::kInt64).cpu().contiguous();
    const std::int64_t* hit = same.const_data_ptr<std::int64_t>();
    const Range samples = program.works[work.value].samples;
    for (std::uint32_t i = samples.begin; i < samples.end; ++i) {
      const std::uint32_t position = program.work_samples[i];
      std::int64_t labels = 0, hits = 0;
      for (const Item& item : program.batch.samples[position].items) labels += item.loss_tokens;
      for (std::int64_t k = 0; k < labels; ++k) hits += *hit++;
      if (labels == 0 || positions[position] >= real) continue;
      asked += 1;
      right += hits == labels ? 1 : 0;
    }
  }
  return {right, asked};
}

// Held-out samples whose labels are all predicted, and how many were asked. Equal on every rank.
struct Answers {
  double share = 0;
  int asked = 0;
};
Answers evaluate(Control& control, Transport& transport, Runner& runner, const Scenario& scenario,
                 const StepPlanner& planner, const Dataset& dataset, int samples,
                 torch::Device device) {
  const std::vector<Sample> questions = spread_out(dataset.held_out(), samples);
  if (questions.empty())
    throw InputError(scenario.file, "/data/source", "has no held-out samples to evaluate on",
                     "use a data set with a test split, or leave evaluation out");
  const auto size = static_cast<std::size_t>(scenario.data.global_batch);
  torch::Tensor counts = torch::zeros({2}, torch::kFloat64);
  for (std::size_t begin = 0; begin < questions.size(); begin += size) {
    Batch batch;
    for (std::size_t i = 0; i < size;
         ++i)  // the last batch is filled up with questions that do not count
      batch.samples.push_back(questions[(begin + i) % questions.size()]);
    const StepPart part = planner.own_part(batch);
    const Program program = planner.lower(part, StepKind::evaluate);
    const std::map<WorkId, WorkInput> inputs =
        pack_inputs(program, transport.rank(), dataset, {scenario.data.seed, 0}, device);
    const auto predictions =
        runner.evaluate(program, [&](WorkId work) -> const WorkInput& { return inputs.at(work); });
    if (!counts_predictions(program, transport.rank())) continue;
    const auto [right, asked] =
        count_right(program, part.positions, predictions, inputs, questions.size() - begin);
    counts[0] += right;
    counts[1] += asked;
  }
  control.sum(counts);
  const auto asked = counts[1].item<double>();
  return {counts[0].item<double>() / asked, static_cast<int>(asked)};
}

class Trainer {
 public:
  Trainer(Transport& transport, const Scenario& scenario, const Layout& layout,
          const Dataset& dataset, const TrainOptions& options)
      : transport_(transport),
        scenario_(scenario),
        layout_(layout),
        dataset_(dataset),
        options_(options),
        plan_(make_plan(scenario, layout)),
        planner_(transport, scenario, layout, plan_, dataset,
                 transport.world_size() >= kPlanForAll ? Planner::first : options.planner),
        structure_(structure(planner_, transport.world_size(), dataset.batch(0))),
        runner_(transport, scenario, structure_,
                {false, options.check_collectives, options.device}),
        control_(transport),
        loader_(planner_, dataset_, scenario.data.seed, transport.rank(), options.device) {
    if (options.out.empty()) return;
    std::error_code failed;
    std::filesystem::create_directories(options.out + "/trace", failed);
    if (failed)
      throw InputError(options.out, "", "cannot be made: " + failed.message(),
                       "choose another --out folder");
  }

  TrainResult run();

 private:
  // This rank's part of a first Program whose whole is proven, where that is no large work.
  static Program structure(const StepPlanner& planner, int ranks, const Batch& batch) {
    if (ranks <= kProveWhole) {
      const std::vector<Fault> faults = verify(planner.whole(batch));
      POLYPHONY_CHECK(faults.empty(), name(faults.front().kind) << ": " << faults.front().text);
    }
    return planner.lower(planner.own_part(batch));
  }
  void step(std::int64_t number, MetricsFile& metrics);
  bool stop_here(std::int64_t done, MetricsFile& metrics);
  void checkpoint(std::int64_t done);

  Transport& transport_;
  const Scenario& scenario_;
  const Layout& layout_;
  const Dataset& dataset_;
  const TrainOptions& options_;
  Plan plan_;
  StepPlanner planner_;
  Program structure_;
  Runner runner_;
  Control control_;
  StepLoader loader_;
  TrainResult result_;
  Seconds began_ = steady_now();
  Seconds last_checkpoint_ = steady_now();
  std::int64_t checkpointed_ = -1;
  Seconds last_seconds_{};
  std::uint64_t last_plan_ = 0;
  std::vector<double> seconds_;
  std::vector<TracedStep> traced_;
};

void Trainer::step(std::int64_t number, MetricsFile& metrics) {
  StepData data = loader_.take(static_cast<std::uint64_t>(number));
  Runner::Pace pace;
  if (options_.pace)
    pace = make_pace(data.program, transport_.rank(), scenario_.cluster, *options_.pace,
                     options_.pace_scale);
  const double rate = learning_rate(scenario_.training, number);
  const Seconds start = steady_now();
  const StepScalars scalars = runner_.train_step(
      data.program, [&](WorkId work) -> const WorkInput& { return data.inputs.at(work); }, rate,
      pace);
  last_seconds_ = steady_now() - start;
  last_plan_ = control_.due(number + 1) ? data.plan : 0;
  result_.loss = scalars.loss;
  seconds_.push_back(last_seconds_.count());
  metrics.step(number, scalars, rate, last_seconds_, scenario_.data.global_batch);
  if (!scalars.not_finite.empty())
    std::cerr << "polyphony-worker: rank " << transport_.rank().value << ": step " << number
              << " is skipped on all ranks: a number is not finite in " << scalars.not_finite
              << "\n";
  if (number >= options_.trace_first && number < options_.trace_last)
    traced_.push_back({number, runner_.times()});
}

void Trainer::checkpoint(std::int64_t done) {
  if (options_.out.empty() || checkpointed_ == done) return;
  save_checkpoint(options_.out + "/checkpoints", done, transport_, runner_, structure_);
  checkpointed_ = done;
  last_checkpoint_ = steady_now();
}

// After `done` steps: evaluation, interruption, checkpoint. True: stop.
bool Trainer::stop_here(std::int64_t done, MetricsFile& metrics) {
  if (options_.evaluate_every > 0 &&
      (done % options_.evaluate_every == 0 || done >= options_.steps)) {
    const Answers answers = evaluate(control_, transport_, runner_, scenario_, planner_, dataset_,
                                     options_.evaluate_samples, options_.device);
    result_.accuracy = answers.share;
    metrics.accuracy(done, answers.share, answers.asked);
    if (options_.stop_accuracy > 0 && *result_.accuracy >= options_.stop_accuracy) return true;
  }
  if (!control_.due(done)) return false;
  const bool wants_stop = options_.interrupted && options_.interrupted();
  const Control::Decision decision = control_.exchange(
      done, wants_stop, steady_now() - last_checkpoint_, last_seconds_, last_plan_);
  if (decision.interrupted) {
    result_.interrupted = true;
    return true;
  }
  if (options_.checkpoint_every.count() > 0 && decision.elapsed >= options_.checkpoint_every)
    checkpoint(done);
  return false;
}

TrainResult Trainer::run() {
  std::int64_t done = 0;
  if (options_.resume) {
    const std::string folder = options_.out + "/checkpoints";
    const std::optional<std::int64_t> newest = newest_checkpoint(folder);
    if (!newest)
      throw InputError(folder, "", "holds no complete checkpoint",
                       "start without --resume, or name the right --out");
    load_checkpoint(folder, *newest, transport_, runner_, structure_);
    done = checkpointed_ = *newest;
  }
  MetricsFile metrics(options_.out, transport_.rank(), done);
  const Seconds offset = clock_offset(transport_);
  while (done < options_.steps) {
    step(done, metrics);
    ++done;
    if (stop_here(done, metrics)) break;
  }
  result_.steps = done;
  for (TracedStep& traced : traced_) {
    for (OpTime& time : traced.times) {
      time.start += offset;
      time.end += offset;
    }
  }
  checkpoint(done);  // first: what was learnt must not be lost to a disk that the traces fill up
  write_traces(options_.out, transport_.rank(), traced_, [&](std::int64_t step) {
    return planner_.whole(dataset_.batch(static_cast<std::uint64_t>(step)));
  });
  if (seconds_.size() > 3) seconds_.erase(seconds_.begin(), seconds_.begin() + 3);  // warm-up
  if (!seconds_.empty()) {
    std::nth_element(seconds_.begin(),
                     seconds_.begin() + static_cast<std::ptrdiff_t>(seconds_.size() / 2),
                     seconds_.end());
    result_.median_step = Seconds(seconds_[seconds_.size() / 2]);
  }
  return result_;
}

}  // namespace

TrainResult train(Transport& transport, const Scenario& scenario, const Layout& layout,
                  const Dataset& dataset, const TrainOptions& options) {
  return Trainer(transport, scenario, layout, dataset, options).run();
}

}  // namespace polyphony::exec

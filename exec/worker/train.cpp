#include "exec/worker/train.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <iostream>
#include <utility>

#include "exec/checkpoint/checkpoint.h"
#include "exec/device/device.h"
#include "exec/planning/step_data.h"
#include "exec/system/process.h"
#include "exec/worker/answers_file.h"
#include "exec/worker/control.h"
#include "exec/worker/evaluation.h"
#include "exec/worker/kineto.h"
#include "exec/worker/metrics_file.h"
#include "exec/worker/pace.h"
#include "exec/worker/recorder.h"
#include "exec/worker/run_checkpoints.h"
#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/lower/lower.h"
#include "shared/program/queue_order.h"
#include "shared/scenario/learning_rate.h"
#include "shared/scenario_io/run_record_json.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/verify/verify.h"

namespace polyphony::exec {
namespace {

// Whether a checkpoint will replace the weights that the run began with.
bool resumes(const TrainOptions& options) {
  return options.earlier == EarlierRun::resume &&
         newest_checkpoint(RunPaths{options.out}.checkpoints()).has_value();
}

class Trainer {
 public:
  Trainer(Transport& transport, const Scenario& scenario, const Layout& layout, const Plan& plan,
          const Dataset& dataset, const TrainOptions& options)
      : transport_(transport),
        scenario_(scenario),
        layout_(layout),
        dataset_(dataset),
        options_(options),
        plan_(plan),
        planner_(transport, scenario, layout, plan_, dataset,
                 options.planner == Planner::each && transport.world_size() >= kPlanForAll
                     ? Planner::first
                     : options.planner),
        structure_(structure(dataset.batch(0))),
        checkpoints_(transport, control_, options, structure_),
        runner_(transport, scenario, structure_,
                {.check_collectives = options.check_collectives,
                 .device = options.device,
                 .processors = transport.queues() ? processors_of(options.device) : 0,
                 .pretrained = !resumes(options) && options.weights_from.empty(),
                 .ranges = options.ranges,
                 .before_update = [this] { checkpoints_.wait_for_copy(); }}),
        control_(transport),
        loader_(planner_, dataset_, scenario.data.seed, transport.rank(), options.device),
        recorder_(options.out, options.trace_first, options.trace_last, transport, dataset),
        kineto_(options.out, options.kineto, transport, dataset, options.device) {
    if (!options.out.empty() && transport.rank() == Rank(0)) claim();
  }

  TrainResult run();

 private:
  // Returns this rank's part of the first Program. Checks the whole Program, if there are not too
  // many ranks.
  Program structure(const Batch& batch) {
    if (transport_.world_size() <= kProveWhole) {
      const Program whole = planner_.whole(batch);
      const std::vector<Fault> faults = verify(whole);
      POLYPHONY_CHECK(faults.empty(), name(faults.front().kind) << ": " << faults.front().text);
      const std::string stuck = transport_.queues() ? find_queue_deadlock(whole) : "";
      if (!stuck.empty())
        throw InputError("layout", "",
                         "kernels of several GPUs would wait for each other: " + stuck,
                         "shard full of a module that shares its ranks with another has no common "
                         "order here: use optimizer, or run with --device cpu");
    }
    return planner_.lower_own(planner_.own_part(batch));
  }
  void claim();
  std::int64_t begin();
  void take_over_weights();
  void go_live(std::int64_t done);
  std::int64_t train_from(std::int64_t done, MetricsFile& metrics);
  struct Begun {
    std::int64_t number = 0;
    StepData data;
    double rate = 0;
    StepLimits limits;
    Seconds asked{}, start{};  // when the data were requested; when the step began
  };
  void begin_step(std::int64_t number, MetricsFile& metrics);
  void end_step(const Begun& step, MetricsFile& metrics);
  void judge_step(const Begun& step, const StepScalars& scalars, traces::StepMetrics& line);
  void end_steps(MetricsFile& metrics, std::size_t left);
  std::int64_t rewind(MetricsFile& metrics);
  bool stop_here(std::int64_t done, MetricsFile& metrics);
  bool due_checkpoint(std::int64_t done, MetricsFile& metrics);
  void checkpoint(std::int64_t done, MetricsFile& metrics);
  void checkpoint_beside(std::int64_t done, MetricsFile& metrics, bool agreed = false);
  RunCheckpoints::Contents contents(std::int64_t done, MetricsFile& metrics);

  Transport& transport_;
  const Scenario& scenario_;
  const Layout& layout_;
  const Dataset& dataset_;
  const TrainOptions& options_;
  Plan plan_;
  StepPlanner planner_;
  Program structure_;
  RunCheckpoints checkpoints_;
  Runner runner_;
  Control control_;
  std::optional<RunFolder> folder_;  // on rank 0
  StepLoader loader_;
  std::deque<Begun> begun_;  // steps that have not ended
  Recorder recorder_;
  KinetoRecorder kineto_;
  TrainResult result_;
  Seconds began_ = steady_now();
  std::optional<BestEvaluation> best_;  // if the best checkpoint is kept
  Patience patience_;
  BadStepState bad_steps_;
  // A bad step to rewind from, which has ended and is the last one that has begun.
  struct RewindFrom {
    std::int64_t step = 0;
    Verdict verdict;
  };
  std::optional<RewindFrom> rewind_from_;
  Seconds last_seconds_{}, ended_{};  // duration and end of the last step that ended
  std::uint64_t last_plan_ = 0;
  std::vector<double> seconds_;
};

// Runs a step on a CPU, or queues it on a device. A recorded step ends before the next one begins.
void Trainer::begin_step(std::int64_t number, MetricsFile& metrics) {
  const bool records = recorder_.records(number), profiles = kineto_.records(number);
  if (records || profiles) end_steps(metrics, 0);
  if (records) recorder_.begin();
  if (profiles) kineto_.begin(number);
  Begun& step = begun_.emplace_back();
  step.number = number;
  step.asked = steady_now();
  step.data = loader_.take(static_cast<std::uint64_t>(number + bad_steps_.passed_over));
  step.start = steady_now();
  step.limits = limits_of(options_.bad_steps, bad_steps_, number);
  step.rate = learning_rate(scenario_.training, number);
  Runner::Pace pace;
  if (options_.pace)
    pace = make_pace(step.data.program, transport_.rank(), scenario_.cluster, *options_.pace,
                     options_.pace_scale);
  last_plan_ = control_.due(number + 1) ? step.data.plan : 0;
  runner_.begin_step(
      step.data.program,
      [&step](WorkId work) -> const WorkInput& { return step.data.inputs.at(work); }, step.rate,
      pace, step.limits);
  const std::size_t ops = step.data.program.ops.size();
  const bool late = step.data.late;
  const bool alone =
      options_.device.is_cpu() || records || profiles || options_.bad_steps.rewinds();
  end_steps(metrics, alone ? 0 : 1);
  if (profiles) kineto_.end(runner_, ops, late);
}

void Trainer::end_steps(MetricsFile& metrics, std::size_t left) {
  for (; begun_.size() > left; begun_.pop_front()) end_step(begun_.front(), metrics);
}

void Trainer::end_step(const Begun& step, MetricsFile& metrics) {
  const StepScalars scalars = runner_.end_step();
  const Seconds now = steady_now(), waited = step.start - step.asked;
  last_seconds_ = now - std::max(step.start, std::exchange(ended_, now));
  result_.loss = scalars.loss;
  seconds_.push_back(last_seconds_.count());
  traces::StepMetrics line{step.number,
                           scalars.loss,
                           scalars.gradient_norm,
                           scalars.skipped,
                           step.rate,
                           last_seconds_,
                           scenario_.data.global_batch / last_seconds_.count()};
  line.waited = waited;
  line.saving = checkpoints_.take_waited();
  judge_step(step, scalars, line);
  if (planner_.live()) {
    line.late_plan = step.data.late;
    ++result_.live;
    result_.late += step.data.late ? 1 : 0;
  }
  metrics.write(line);
  if (!scalars.not_finite.empty())
    std::cerr << "polyphony-worker: rank " << transport_.rank().value << ": step " << step.number
              << " is skipped on all ranks: non-finite value in " << scalars.not_finite << "\n";
  if (recorder_.records(step.number))
    recorder_.add({static_cast<std::uint64_t>(step.number),
                   step.data.plan,
                   step.data.late,
                   {step.asked, step.start},
                   {},
                   runner_.times()});
}

// Decides what follows from a step's numbers, which are the same on all ranks.
void Trainer::judge_step(const Begun& step, const StepScalars& scalars, traces::StepMetrics& line) {
  const Verdict verdict = judge(options_.bad_steps, step.limits, step.number, scalars, bad_steps_);
  if (scalars.finite) line.why = verdict.kind;
  const std::string text = "step " + std::to_string(step.number) + ": " + verdict.why;
  if (verdict.action == BadStepAction::stop && result_.stopped.empty()) result_.stopped = text;
  if (verdict.action == BadStepAction::rewind) rewind_from_ = {step.number, verdict};
  if (verdict.action == BadStepAction::skip && scalars.finite && transport_.rank() == Rank(0))
    std::cerr << "polyphony-worker: " << text << ": it is skipped on all ranks\n";
}

// Goes back to a checkpoint. Returns its step, with which training goes on, on new data.
std::int64_t Trainer::rewind(MetricsFile& metrics) {
  const auto [bad, verdict] = *std::exchange(rewind_from_, {});
  checkpoints_.finish();
  const std::string folder = RunPaths{options_.out}.checkpoints();
  const std::vector<std::int64_t> saved = steps_in(folder);
  const std::int64_t step = rewind_target(saved, bad, options_.bad_steps.rewind_every);
  if (step < 0)
    throw InputError(folder, "", "has no checkpoint to rewind to", "restore it, or begin anew");
  const Loaded loaded =
      load_step(folder, step, transport_, runner_, structure_, run_record(scenario_));
  bad_steps_ = rewound(bad_steps_, loaded.bad_steps, bad, step);
  checkpoints_.has(step);
  control_.rewind(step);
  if (transport_.rank() == Rank(0)) {
    for (const std::int64_t later : saved)  // of steps that will be trained again
      if (later > step) remove_checkpoint(step_folder(folder, later));
    std::cerr << "polyphony-worker: step " << bad << ": " << verdict.why
              << ": rewinds to the checkpoint of step " << step
              << ", batches passed over: " << bad + 1 - step << " (rewind " << bad_steps_.rewinds
              << " of " << options_.bad_steps.most_rewinds << ")\n";
  }
  metrics.begin(step, bad_steps_.rewinds - 1);
  metrics.write(traces::Rewind{step, bad_steps_.rewinds, bad, bad + 1 - step, verdict.kind});
  if (options_.keep_best) best_ = agreed_best(control_, metrics.best());
  if (options_.stop_patience > 0) patience_ = agreed_patience(control_, metrics.patience());
  return step;
}

void Trainer::claim() {
  folder_.emplace(options_.out, options_.earlier, "polyphony-worker", options_.folder_lock);
  if (!folder_->note().empty()) std::cerr << "polyphony-worker: " << folder_->note() << "\n";
}

// Takes over the parameters of another run.
void Trainer::take_over_weights() {
  const Loaded from =
      load_weights(options_.weights_from, transport_, runner_, structure_, run_record(scenario_));
  if (transport_.rank() != Rank(0)) return;
  std::cerr << "polyphony-worker: begins with the parameters of " << options_.weights_from
            << ", step " << from.step << "\n";
  for (const std::string& change : from.changed)
    std::cerr << "polyphony-worker: the model differs: " << change << "\n";
}

// Loads the checkpoint that the run resumes from. All checks that can fail have then passed, and
// the run's folder is written for the first time. Returns the number of steps done before.
std::int64_t Trainer::begin() {
  std::optional<Loaded> loaded;
  if (options_.earlier == EarlierRun::resume)
    loaded = load_newest(RunPaths{options_.out}.checkpoints(), transport_, runner_, structure_,
                         run_record(scenario_));
  if (!loaded && !options_.weights_from.empty()) take_over_weights();
  return_freed_memory();
  const std::int64_t done = loaded ? loaded->step : 0;
  if (loaded) {
    checkpoints_.has(done);
    bad_steps_ = loaded->bad_steps;
    if (bad_steps_.passed_over > 0 && (options_.planner == Planner::live ||
                                       options_.trace_last > done || !options_.kineto.empty()))
      throw InputError(options_.out, "",
                       "has passed over data by a rewind, so the numbers of its steps are not "
                       "those of their batches: it can be neither planned live nor recorded",
                       "omit --planning, --trace-steps and --kineto");
  }
  if (!folder_) return done;
  if (options_.earlier == EarlierRun::resume && !loaded)
    std::cerr << "polyphony-worker: " << options_.out
              << ": the run had not saved a checkpoint: it restarts from the beginning\n";
  if (done > 0 && !options_.kineto.empty() && options_.kineto.smallest() < done)
    std::cerr << "polyphony-worker: --kineto: steps before " << done
              << " were trained earlier, and are not recorded\n";
  for (const std::string& change : loaded ? loaded->changed : std::vector<std::string>{})
    std::cerr << "polyphony-worker: from step " << done << " on: " << change << "\n";
  folder_->begin();
  Scenario here = scenario_;
  here.layout = layout_;
  here.search.reset();
  write_file(folder_->paths().scenario(),
             movable_text(here, std::filesystem::current_path().string()));
  return done;
}

// Returns false if no checkpoint of this step is needed. Else ends all steps.
bool Trainer::due_checkpoint(std::int64_t done, MetricsFile& metrics) {
  if (!checkpoints_.lacks(done)) return false;
  end_steps(metrics, 0);
  return result_.stopped.empty();
}

// Writes a checkpoint, and returns when it is published.
void Trainer::checkpoint(std::int64_t done, MetricsFile& metrics) {
  checkpoints_.finish();
  if (due_checkpoint(done, metrics)) checkpoints_.write(done, contents(done, metrics));
}

// Begins a checkpoint that is written while training goes on.
void Trainer::checkpoint_beside(std::int64_t done, MetricsFile& metrics, bool agreed) {
  if (due_checkpoint(done, metrics)) checkpoints_.begin(done, contents(done, metrics), agreed);
}

RunCheckpoints::Contents Trainer::contents(std::int64_t done, MetricsFile& metrics) {
  RunCheckpoints::Contents all{
      runner_state(runner_, transport_.rank(), structure_, run_record(scenario_)),
      {.newest = options_.keep_checkpoints},
      metrics.flush()};  // a checkpoint must not contain more steps than the metrics
  all.state.bad_steps = bad_steps_;
  if (best_) all.keep.best = best_->step;
  if (options_.bad_steps.rewinds()) all.keep.rewind = done - done % options_.bad_steps.rewind_every;
  return all;
}

// Called after `done` steps: evaluation, interruption, checkpoint. Returns true to stop.
bool Trainer::stop_here(std::int64_t done, MetricsFile& metrics) {
  if (options_.evaluate_every > 0 &&
      (done % options_.evaluate_every == 0 || done >= options_.steps)) {
    end_steps(metrics, 0);
    const Answers answers =
        evaluate(control_, transport_, runner_, scenario_, planner_, dataset_,
                 {options_.evaluate_samples, options_.save_answers, options_.device});
    if (options_.save_answers && transport_.rank() == Rank(0))
      write_answers(RunPaths{options_.out}.answers(), done, answers, dataset_);
    result_.accuracy = answers.share;
    result_.held_out_loss = answers.loss;
    metrics.write(traces::Accuracy{done, answers.share, answers.asked, answers.loss});
    if (options_.keep_best && std::isfinite(answers.loss) &&
        (!best_ || answers.loss < best_->loss)) {
      best_ = {done, answers.loss};
      checkpoint_beside(done, metrics);
    }
    patience_.add(answers.loss);
    if (options_.stop_patience > 0 && patience_.since >= options_.stop_patience) return true;
    if (options_.stop_accuracy > 0 && *result_.accuracy >= options_.stop_accuracy) return true;
  }
  if (options_.bad_steps.rewinds() && done % options_.bad_steps.rewind_every == 0)
    checkpoint_beside(done, metrics);
  if (!control_.due(done)) return false;
  if (last_seconds_ == Seconds(0)) end_steps(metrics, 0);  // the step time is still unknown
  const bool wants_stop = options_.interrupted && options_.interrupted();
  const Control::Decision decision = control_.exchange(
      done, wants_stop, checkpoints_.due(done), last_seconds_, last_plan_, checkpoints_.works());
  if (decision.interrupted) {
    result_.interrupted = true;
    return true;
  }
  if (checkpoints_.begun() && !decision.saving) {
    end_steps(metrics, 0);
    checkpoints_.go_on();
  } else if (decision.checkpoint) {  // one that is not written by now gets the cores
    checkpoint_beside(done, metrics, /*agreed=*/true);
  }
  return false;
}

void Trainer::go_live(std::int64_t done) {
  const auto step = [](std::int64_t number) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, number));
  };
  planner_.go_live(
      {scenario_, layout_, plan_, dataset_, step(done), std::max(step(done), step(options_.steps)),
       step(options_.trace_first), step(options_.trace_last)},
      options_.live);
}

// Trains, and returns the number of steps done.
std::int64_t Trainer::train_from(std::int64_t done, MetricsFile& metrics) {
  go_live(done);
  try {
    while (done < options_.steps) {
      begin_step(done, metrics);
      ++done;
      if (rewind_from_) {
        done = rewind(metrics);
        continue;
      }
      if (!result_.stopped.empty() || stop_here(done, metrics)) break;
    }
    end_steps(metrics, 0);
    planner_.stop();
    loader_.finish();
    planner_.finish();
  } catch (const LostPeer&) {
    planner_.stop();
    throw;
  } catch (const std::exception& error) {
    // The loader may be waiting for a plan that will not be made.
    planner_.stop();
    if (planner_.live()) transport_.abort(error.what());
    throw;
  }
  return done;
}

TrainResult Trainer::run() {
  std::int64_t done = begin();
  MetricsFile metrics(options_.out, transport_.rank(), done, bad_steps_.rewinds);
  if (options_.keep_best) best_ = agreed_best(control_, metrics.best());
  if (options_.stop_patience > 0) patience_ = agreed_patience(control_, metrics.patience());
  if (options_.bad_steps.rewinds() && !checkpoints_.newest())
    checkpoint(done, metrics);  // not timed
  done = train_from(done, metrics);
  result_.steps = done;
  result_.bad_steps = metrics.bad_steps().text();
  if (!options_.device.is_cpu()) result_.memory = memory_of(options_.device);
  // Before the traces, which may fill up the disk.
  checkpoint(done, metrics);
  recorder_.finish(
      [&](std::int64_t step) { return planner_.whole_of(static_cast<std::uint64_t>(step)); });
  kineto_.finish();
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
  return train(transport, scenario, layout, make_plan(scenario, layout), dataset, options);
}

TrainResult train(Transport& transport, const Scenario& scenario, const Layout& layout,
                  const Plan& plan, const Dataset& dataset, const TrainOptions& options) {
  return Trainer(transport, scenario, layout, plan, dataset, options).run();
}

}  // namespace polyphony::exec

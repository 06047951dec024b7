#include "exec/planning/live_plans.h"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "exec/planning/plan_file.h"
#include "exec/planning/plan_making.h"
#include "exec/planning/plan_ring.h"
#include "exec/runner/idle_thread.h"
#include "exec/system/process.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

std::string record_key(std::uint64_t step, Rank rank) {
  return "plan record/" + std::to_string(step) + "/" + std::to_string(rank.value);
}

// The implementation on ranks other than 0.
class ToldPlans : public LivePlans {
 public:
  ToldPlans(Transport& transport, std::uint64_t first)
      : transport_(transport), reader_(transport, first) {}

  std::future<StepLetter> ask(std::uint64_t step) override {
    return std::async(std::launch::async, [this, step] { return reader_.read(step); });
  }
  void finish() override { reader_.finish(); }
  StepRecord record(std::uint64_t step) override {
    return read_step_record(transport_.fetch(record_key(step, transport_.rank())));
  }

 private:
  Transport& transport_;
  PlanReader reader_;
};

// The implementation on rank 0.
class OwnPlans : public LivePlans {
 public:
  OwnPlans(Transport& transport, const PlannedRun& run, LiveOptions options)
      : transport_(transport),
        run_(run),
        options_(std::move(options)),
        file_(options_.save, run.first),
        writer_(transport),
        began_(steady_now()),
        aim_(run.first),
        begun_(run.first),
        decided_(run.first),
        planner_([this] { wake(); }),
        decider_([this] { decide_all(); }) {}

  ~OwnPlans() override {
    stop();
    if (decider_.joinable()) decider_.join();
  }

  std::future<StepLetter> ask(std::uint64_t step) override {
    const std::lock_guard lock(mutex_);
    std::promise<StepLetter> asked;
    std::future<StepLetter> answer = asked.get_future();
    if (const auto told = told_.extract(step))
      asked.set_value(std::move(told.mapped()));
    else if (error_)
      asked.set_exception(error_);
    else if (halted())
      asked.set_value(end_of(step));
    else
      asked_.emplace(step, std::move(asked));
    return answer;
  }

  void begin(std::uint64_t step) override {
    begun_.store(step + 1, std::memory_order_release);
    wake();
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      halted_.store(true, std::memory_order_release);
      for (auto& [step, asked] : asked_) asked.set_value(end_of(step));
      asked_.clear();
    }
    wake();
  }

  void finish() override {
    stop();
    if (decider_.joinable()) decider_.join();
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

  StepRecord record(std::uint64_t step) override {
    const StepRecord& record = kept_.at(step);
    for (int r = 1; r < transport_.world_size(); ++r) {
      const Rank rank(static_cast<std::size_t>(r));
      transport_.post(record_key(step, rank), to_bytes(record));
    }
    return record;
  }

 private:
  struct Planned {
    StepRecord record;
    StepPart own;                      // rank 0's part
    std::vector<std::string> letters;  // by rank
    std::exception_ptr error;
  };

  static StepLetter end_of(std::uint64_t step) { return {step, StepLetter::Kind::end, {}}; }
  bool halted() const { return halted_.load(std::memory_order_acquire); }
  bool replays() const { return !options_.replayed.empty(); }
  void wake() {
    events_.fetch_add(1, std::memory_order_release);
    futex_wake_all(events_);
  }

  void decide_all() {
    try {
      be_prompt();
      while (!halted()) {
        const std::uint32_t seen = events_.load(std::memory_order_acquire);
        collect();
        plan_next();
        if (!decide()) futex_wait(events_, seen, Seconds(0.5));
      }
      tell({{decided_, 0, true, {}}, {}, letters_of(StepLetter::Kind::end, decided_), {}});
      writer_.drain();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      halted_.store(true, std::memory_order_release);
      for (auto& [step, asked] : asked_) asked.set_exception(error_);
      asked_.clear();
    }
  }

  // Takes the plan that the planner has finished, if any.
  void collect() {
    if (!planning_ || !planner_.free()) return;
    planning_ = false;
    if (made_.error) std::rethrow_exception(made_.error);
    const bool late = made_.record.step < decided_;
    misses_ = late ? std::min<std::uint64_t>(misses_ + 1, kPlanSlots - 1) : 0;
    if (!late) ready_.emplace(made_.record.step, std::move(made_));
    made_ = {};
  }

  void plan_next() {
    aim_ = std::max(aim_, decided_ + misses_);
    if (planning_ || aim_ >= run_.last || aim_ >= begun() + kPlanSlots) return;
    planning_ = true;
    planner_.start([this, step = aim_++] {
      made_.record.step = step;
      try {
        made_ = make(step);
      } catch (...) {
        made_.error = std::current_exception();
      }
    });
  }

  std::uint64_t begun() const { return begun_.load(std::memory_order_acquire); }

  // Runs on the planner's thread.
  Planned make(std::uint64_t step) const {
    const Batch batch = run_.dataset.batch(step);
    const StepRecord record = replays() ? replay(step, batch) : plan(step, batch);
    if (record.late) return {record, {}, letters_of(StepLetter::Kind::late, step), {}};
    const StepParts parts(run_.scenario.model, run_.plan, record.plan, batch);
    Planned planned{record, parts.of(Rank(0)), {""}, {}};
    for (int r = 1; r < transport_.world_size(); ++r)
      planned.letters.push_back(to_bytes(StepLetter{step, StepLetter::Kind::planned,
                                                    parts.of(Rank(static_cast<std::size_t>(r)))}));
    return planned;
  }

  StepRecord plan(std::uint64_t step, const Batch& batch) const {
    const Seconds start = steady_now();
    const auto over = [&] {
      return steady_now() - start >= options_.budget || halted() || decided_ > step;
    };
    StepRecord record{step, digest(StepPlan{}, batch), false, options_.make(step, batch, over)};
    const std::string no = refusal_of(run_, record.plan, batch, options_.too_large);
    if (no.empty()) return record;
    std::cerr << "polyphony-worker: step " << step
              << ": plan rejected, using the default schedule: " << no << "\n";
    return {step, record.batch, true, {}};
  }

  StepRecord replay(std::uint64_t step, const Batch& batch) const {
    StepRecord record = replayed(run_.scenario.model, run_.plan, options_.replayed, step, batch);
    const std::string no =
        record.late ? "" : refusal_of(run_, record.plan, batch, options_.too_large);
    if (!no.empty())
      throw InputError("--plans", "", "the plan of step " + std::to_string(step) + ": " + no,
                       "make new plans: --planning live --plans FILE");
    return record;
  }

  std::vector<std::string> letters_of(StepLetter::Kind kind, std::uint64_t step) const {
    const StepLetter letter{step, kind, {}};
    return std::vector<std::string>(static_cast<std::size_t>(transport_.world_size()),
                                    to_bytes(letter));
  }

  // Decides the next step and returns true, or returns false if it cannot be decided yet.
  bool decide() {
    const std::uint64_t step = decided_;
    if (step >= run_.last) return false;
    if (auto made = ready_.extract(step)) {
      ++decided_;
      tell(std::move(made.mapped()));
      return true;
    }
    const bool patient =
        replays() || (step == run_.first && steady_now() - began_ < options_.budget);
    if (begun() <= step || patient) return false;
    ++decided_;
    tell({{step, digest(StepPlan{}, run_.dataset.batch(step)), true, {}},
          {},
          letters_of(StepLetter::Kind::late, step),
          {}});
    return true;
  }

  void tell(Planned planned) {
    const std::uint64_t step = planned.record.step;
    const StepLetter::Kind kind =
        planned.record.late ? StepLetter::Kind::late : StepLetter::Kind::planned;
    if (!halted()) {
      const std::lock_guard lock(mutex_);
      StepLetter own{step, kind, std::move(planned.own)};
      if (auto asked = asked_.extract(step))
        asked.mapped().set_value(std::move(own));
      else
        told_.emplace(step, std::move(own));
      if (step >= run_.kept && step < run_.kept_end) kept_.emplace(step, planned.record);
      file_.add(planned.record);
    }
    writer_.post(step, planned.letters);
  }

  Transport& transport_;
  const PlannedRun run_;
  const LiveOptions options_;

  // Used by the decider's thread; `made_` by the planner's thread while it plans.
  PlanFile file_;
  PlanWriter writer_;
  const Seconds began_;
  bool planning_ = false;
  Planned made_;
  std::uint64_t aim_, misses_ = 0;
  std::map<std::uint64_t, Planned> ready_;

  // Shared by all threads. Steps are counts: the number of steps begun, and decided.
  std::atomic<std::uint32_t> events_{0};
  std::atomic<std::uint64_t> begun_, decided_;
  std::atomic<bool> halted_{false};

  std::mutex mutex_;  // protects the members below; never taken by the planner
  std::exception_ptr error_;
  std::map<std::uint64_t, StepLetter> told_;                 // decided, not yet asked for
  std::map<std::uint64_t, std::promise<StepLetter>> asked_;  // asked for, not yet decided
  std::map<std::uint64_t, StepRecord> kept_;

  IdleThread planner_;   // used by the decider's thread
  std::thread decider_;  // last member: starts when all others are constructed
};

}  // namespace

std::unique_ptr<LivePlans> LivePlans::start(Transport& transport, const PlannedRun& run,
                                            LiveOptions options) {
  if (transport.rank() != Rank(0)) return std::make_unique<ToldPlans>(transport, run.first);
  if (!options.make)
    options.make = [run](std::uint64_t, const Batch& batch, const std::function<bool()>& stop) {
      return plan_until(run, batch, stop);
    };
  return std::make_unique<OwnPlans>(transport, run, std::move(options));
}

}  // namespace polyphony::exec

#include "tests/exec/parity/parity.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "exec/transport/in_process.h"
#include "shared/error.h"
#include "shared/lower/lower.h"
#include "shared/step/turns.h"
#include "tests/exec/parity/parity_judge.h"
#include "tests/exec/parity/parity_memory.h"
#include "tests/exec/support/counted_transport.h"
#include "tests/exec/support/tensor_ledger.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts = {torch::empty({0}, torch::kFloat64)};
  for (const Tensor& tensor : tensors)
    parts.push_back(tensor.reshape({-1}).cpu().to(torch::kFloat64));
  return torch::cat(parts);
}

// One rank's training run of a case.
class Trainee {
 public:
  Trainee(Transport& transport, const Case& c, torch::Device device)
      : transport_(transport),
        device_(device),
        case_(c),
        scenario_(make_scenario(c)),
        dataset_(make_dataset(c, scenario_)),
        plan_(make_plan(scenario_, c.layout)),
        planner_(transport, scenario_, c.layout, plan_, *dataset_, Planner::first) {}

  // Programs of all ranks, for the judge. A rank runs its own part, by the plan that rank 0 sent.
  Program program(int step, StepKind kind = StepKind::train) const {
    const Batch batch = dataset_->batch(static_cast<std::uint64_t>(step));
    return lower(scenario_, case_.layout, plan_,
                 make_queued_step(scenario_, case_.layout, plan_, batch), batch, kind);
  }

  std::vector<QueuedCounts> counts;  // of the steps, on a queued device

  Report run() {
    Report report;
    TensorLedger ledger;
    CountedTransport transport(transport_);
    RunnerOptions options{true, true, device_};
    options.watch = [&](OpId op, bool starts) { open_ledger(&ledger, starts ? op : OpId{}); };
    auto measured = std::make_unique<LedgerScope>(&ledger);
    Runner runner(transport, scenario_, own(0, StepKind::train), options);
    measured.reset();
    std::vector<Tensor> scalars;
    std::vector<double> memory;
    for (int step = 0; step < case_.steps; ++step) {
      const Program ops = planner_.lower(planner_.part(static_cast<std::uint64_t>(step)));
      const std::map<WorkId, WorkInput> inputs =
          pack_inputs(ops, transport_.rank(), *dataset_,
                      {scenario_.data.seed, static_cast<std::uint64_t>(step)}, device_);
      if (device_.is_privateuseone()) take_counts(device_);
      const InputOf input_of = [&](WorkId work) -> const WorkInput& { return inputs.at(work); };
      transport.take();
      ledger.begin_step();
      measured = std::make_unique<LedgerScope>(&ledger);
      const StepScalars got = runner.train_step(ops, input_of, scenario_.training.learning_rate);
      measured.reset();
      if (device_.is_privateuseone()) counts.push_back(take_counts(device_));
      const Traffic traffic = transport.take();
      if (const std::string wrong = wrong_traffic(ops, transport.rank(), traffic); !wrong.empty())
        throw std::runtime_error(case_.name + ": " + wrong);
      const PeakMemory peak = !device_.is_cpu() ? PeakMemory{Bytes(1), Bytes(1), Bytes(1), Bytes(1)}
                                                : peak_memory(ops, transport.rank(), runner.times(),
                                                              ledger.blocks(), input_of, traffic);
      for (const Bytes bytes :
           {peak.measured, peak.program, peak.measured_before, peak.program_before})
        memory.push_back(static_cast<double>(bytes.value));
      scalars.push_back(
          torch::tensor({got.loss, got.gradient_norm, got.finite ? 1.0 : 0.0}, torch::kFloat64));
      if (step == 0) hold(runner, report, true);
    }
    report.scalars = flat(scalars);
    hold(runner, report, false);
    report.times = times_of(runner);
    report.predictions = predict(runner);
    report.memory = torch::tensor(memory, torch::kFloat64);
    return report;
  }

 private:
  Program own(std::uint64_t step, StepKind kind) const {
    return planner_.lower_own(planner_.own_part(dataset_->batch(step)), kind);
  }
  // What the rank holds; moments are filled in after step 1, values after the last step.
  void hold(Runner& runner, Report& report, bool moments) const {
    const std::vector<Parameter> all = whole_model(scenario_.model);
    std::vector<double> places;
    std::vector<Tensor> elements;
    double group = 0;
    for (HeldParameters* store : runner.stores()) {
      for (const HeldPiece& piece : store->pieces()) {
        const auto found = std::find_if(all.begin(), all.end(), [&](const Parameter& parameter) {
          return parameter.name ==
                 piece.parameter->spec.name;  // a copy has the matrix's position, too
        });
        POLYPHONY_CHECK(found != all.end(), "no parameter " << piece.parameter->spec.name);
        places.insert(places.end(), {static_cast<double>(found - all.begin()), group,
                                     static_cast<double>(piece.elements.begin),
                                     static_cast<double>(piece.elements.end)});
        const Tensor& wanted =
            !moments ? (piece.master.defined() ? piece.master : piece.value) : piece.first_moment;
        elements.push_back(wanted.defined()
                               ? wanted
                               : torch::full({piece.elements.size()}, std::nan(""),
                                             torch::dtype(torch::kFloat64).device(device_)));
      }
      group += 1;
    }
    report.pieces = torch::tensor(places, torch::kFloat64).view({-1, 4});
    (moments ? report.moments : report.values) = flat(elements).clone();
  }
  static Tensor times_of(Runner& runner) {
    std::vector<double> times;
    for (const OpTime& time : runner.times())
      times.insert(times.end(), {time.start.count(), time.end.count()});
    return torch::tensor(times, torch::kFloat64);
  }
  Tensor predict(Runner& runner) const {
    const Program ops = own(0, StepKind::evaluate);
    const std::map<WorkId, WorkInput> inputs =
        pack_inputs(ops, transport_.rank(), *dataset_, {}, device_);
    const auto predicted =
        runner.evaluate(ops, [&](WorkId work) -> const WorkInput& { return inputs.at(work); });
    std::vector<Tensor> all;
    for (const auto& [work, rows] : predicted)
      all.push_back(at::stack({rows.ids.to(torch::kFloat64), rows.losses}, 1));
    return flat(all);
  }

  Transport& transport_;
  torch::Device device_;
  const Case& case_;
  Scenario scenario_;
  std::unique_ptr<Dataset> dataset_;
  Plan plan_;
  StepPlanner planner_;
};

}  // namespace

Outcome run_case(Transport& transport, const Case& c, torch::Device device) {
  torch::set_num_threads(
      1);  // with tensors this small, several threads would only wait for each other
  Trainee trainee(transport, c, device);
  const bool judges = transport.rank() == Rank(0);
  std::unique_ptr<Judge> judge;
  if (judges) {
    judge = std::make_unique<Judge>(c, trainee.program(0), trainee.program(c.steps - 1),
                                    trainee.program(0, StepKind::evaluate));
    if (const std::string no = judge->objection(); !no.empty())
      throw std::runtime_error(c.name + ": " + no);
  }
  std::vector<Report> reports = {trainee.run()};
  // Sizes first, so that the judge can make room.
  const auto exchange = [&](std::vector<Tensor*> parts, Rank peer, std::uint64_t rank, bool sends) {
    std::vector<Transfer> list;
    std::uint64_t tag = kTagEnd - 16 * (rank + 1);
    for (Tensor* part : parts) list.push_back({*part, peer, tag++, sends});
    transport.exchange(list);
  };
  const auto sizes_of = [](Report& report) {
    std::vector<std::int64_t> sizes;
    for (Tensor* part : report.parts()) sizes.push_back(part->numel());
    return torch::tensor(sizes, torch::kInt64);
  };
  if (!judges) {
    Tensor sizes = sizes_of(reports[0]);
    exchange({&sizes}, Rank(0), transport.rank().value, true);
    exchange(reports[0].parts(), Rank(0), transport.rank().value, true);
    return {};
  }
  for (std::uint32_t r = 1; r < static_cast<std::uint32_t>(transport.world_size()); ++r) {
    reports.emplace_back();
    Tensor sizes =
        torch::zeros({static_cast<std::int64_t>(reports.back().parts().size())}, torch::kInt64);
    exchange({&sizes}, Rank(r), r, false);
    const std::vector<Tensor*> parts = reports.back().parts();
    for (std::size_t i = 0; i < parts.size(); ++i)
      *parts[i] = torch::zeros({sizes.const_data_ptr<std::int64_t>()[i]}, torch::kFloat64);
    exchange(parts, Rank(r), r, false);
    reports.back().pieces = reports.back().pieces.view({-1, 4});
  }
  constexpr double kClocksApart =
      5e-3;  // between devices, each read by its own rank on a busy machine
  Outcome outcome = judge->judge(reports, device.is_cpu() ? 0 : kClocksApart,
                                 !device.is_cpu() && transport.queues());
  outcome.counts = std::move(trainee.counts);
  return outcome;
}

Outcome run_in_process(const Case& c) {
  Outcome outcome;
  exec::run_in_process(
      world_size(c.layout),
      [&](Transport& transport) {
        const Outcome mine = run_case(transport, c);
        if (transport.rank() == Rank(0)) outcome = mine;
      },
      Seconds(60));
  return outcome;
}

Program whole_program(const Case& c) {
  const Scenario scenario = make_scenario(c);
  const Plan plan = make_plan(scenario, c.layout);
  const Batch batch = make_dataset(c, scenario)->batch(0);
  return lower(scenario, c.layout, plan, make_queued_step(scenario, c.layout, plan, batch), batch);
}

}  // namespace polyphony::exec::testing

#include "exec/planning/step_data.h"

#include <c10/core/StreamGuard.h>

#include "exec/on_device.h"
#include "exec/runner/chunk_set.h"
#include "shared/error.h"
#include "shared/step/turns.h"

namespace polyphony::exec {

namespace {

void move_to(torch::Device device, WorkInput& input) {
  const auto move = [&](torch::Tensor& tensor) {
    if (tensor.defined()) tensor = on_device(tensor, device);
  };
  move(input.patches);
  move(input.frames);
  move(input.latents);
  move(input.noise);
  move(input.token_ids);
  move(input.text_rows);
  for (auto& [edge, rows] : input.edge_rows) move(rows);
  move(input.positions);
  move(input.labels);
}

}  // namespace

std::map<WorkId, WorkInput> pack_inputs(const Program& program, Rank rank, const Dataset& dataset,
                                        Draw draw, torch::Device device) {
  const torch::Dtype dtype = torch_dtype(program.precision);
  std::map<WorkId, PackParts> wanted;
  const Range ops = program.ops_of(rank);
  for (std::uint32_t i = ops.begin; i < ops.end; ++i) {
    const auto* what = std::get_if<Compute>(&program.ops[i].what);
    if (!what || what->phase != Phase::forward) continue;
    const Module& module = program.model.modules[what->module.value];
    const bool first = what->layers.begin == 0, last = what->layers.end == layers(module).size();
    PackParts& parts = wanted[what->work];
    parts.draw = draw;
    parts.images |= module.kind == ModuleKind::vision && first;
    parts.audio |= module.kind == ModuleKind::audio && first;
    parts.text |= module.kind == ModuleKind::language;
    parts.latents |= module.kind == ModuleKind::diffusion && (first || last);
  }
  std::map<WorkId, WorkInput> inputs;
  for (const auto& [work, parts] : wanted)
    move_to(device,
            inputs.emplace(work, pack_work(program, work, dataset, dtype, parts)).first->second);
  return inputs;
}

StepPlanner::StepPlanner(Transport& transport, const Scenario& scenario, const Layout& layout,
                         const Plan& plan, const Dataset& dataset, Planner planner)
    : transport_(transport),
      scenario_(scenario),
      layout_(layout),
      plan_(plan),
      dataset_(dataset),
      planner_(planner) {
  if (planner != Planner::live) return;
  const Layout plain = without_planner(layout);
  plain_ = Plain{plain, make_plan(scenario, plain)};
}

void StepPlanner::go_live(const PlannedRun& run, LiveOptions options) {
  if (planner_ == Planner::live) live_ = LivePlans::start(transport_, run, std::move(options));
}
void StepPlanner::begin(std::uint64_t step) const {
  if (live_) live_->begin(step);
}
void StepPlanner::stop() const {
  if (live_) live_->stop();
}
void StepPlanner::finish() const {
  if (live_) live_->finish();
}

StepPart StepPlanner::part(std::uint64_t step) const {
  const Rank own = transport_.rank();
  if (planner_ != Planner::first) return own_part(dataset_.batch(step));
  const auto key = [&](Rank rank) {
    return "plan/" + std::to_string(step) + "/" + std::to_string(rank.value);
  };
  if (own != Rank(0)) {
    StepPart part = read_step_part(transport_.fetch(key(own)));
    POLYPHONY_CHECK(part.step.only == own,
                    "received the plan of step " << step << " for rank " << part.step.only.value);
    return part;
  }
  const Batch batch = dataset_.batch(step);
  const StepPlan plan = make_step_plan(scenario_, layout_, plan_, batch);
  const StepParts parts(scenario_.model, plan_, plan, batch);
  for (int rank = 1; rank < transport_.world_size(); ++rank) {
    const Rank other(static_cast<std::size_t>(rank));
    transport_.post(key(other), to_bytes(parts.of(other)));
  }
  return parts.of(own);
}

Program StepPlanner::lower(const StepPart& part) const {
  return polyphony::lower(scenario_, layout_, plan_, part.step, part.batch);
}

StepPart StepPlanner::own_part(const Batch& batch) const {
  const Layout& layout = plain_ ? plain_->layout : layout_;
  const Plan& grids = plain_ ? plain_->plan : plan_;
  const StepPlan plan = make_step_plan(scenario_, layout, grids, batch);
  return StepParts(scenario_.model, grids, plan, batch).of(transport_.rank());
}

Program StepPlanner::lower_own(const StepPart& part, StepKind kind) const {
  return polyphony::lower(scenario_, plain_ ? plain_->layout : layout_,
                          plain_ ? plain_->plan : plan_, part.step, part.batch, kind);
}

Program StepPlanner::whole(const Batch& batch) const {
  const Layout& layout = plain_ ? plain_->layout : layout_;
  const Plan& plan = plain_ ? plain_->plan : plan_;
  return polyphony::lower(scenario_, layout, plan, make_queued_step(scenario_, layout, plan, batch),
                          batch);
}

WholeStep StepPlanner::whole_of(std::uint64_t step) const {
  const Batch batch = dataset_.batch(step);
  if (!live_) return {whole(batch), {}};
  StepRecord record = live_->record(step);
  Program program =
      record.late ? whole(batch) : polyphony::lower(scenario_, layout_, plan_, record.plan, batch);
  return {std::move(program), std::move(record)};
}

StepLoader::StepLoader(const StepPlanner& planner, const Dataset& dataset, std::uint64_t seed,
                       Rank rank, torch::Device device)
    : planner_(planner), dataset_(dataset), seed_(seed), rank_(rank), device_(device) {
  if (!device.is_cpu()) stream_.emplace(device, Priority::normal);
}

StepLoader::~StepLoader() { finish(); }

void StepLoader::finish() {
  if (ahead_.valid()) ahead_.wait();
}

StepData StepLoader::filled(std::uint64_t step, const StepPart& part, Program program) const {
  StepData data{step, part.whole, false, std::move(program), {}};
  const auto pack = [&] {
    data.inputs = pack_inputs(data.program, rank_, dataset_, {seed_, step}, device_);
  };
  if (!stream_) {
    pack();
    return data;
  }
  const c10::StreamGuard apart(stream_->get());
  pack();
  c10::Event copied(device_.type());
  copied.record(stream_->get());
  copied.synchronize();
  return data;
}

StepData StepLoader::load(std::uint64_t step) const {
  if (planner_.live()) return load_live(step);
  const StepPart part = planner_.part(step);
  return filled(step, part, planner_.lower(part));
}

StepData StepLoader::load_live(std::uint64_t step) const {
  constexpr std::chrono::milliseconds kAtOnce{10};
  std::future<StepLetter> asked = planner_.live()->ask(step);
  std::optional<StepData> late;
  const auto load_late = [&] {
    const StepPart part = planner_.own_part(dataset_.batch(step));
    late = filled(step, part, planner_.lower_own(part));
    late->late = true;
  };
  if (asked.wait_for(kAtOnce) != std::future_status::ready) load_late();
  const StepLetter letter = asked.get();
  if (letter.kind == StepLetter::Kind::end) return {};
  if (letter.kind == StepLetter::Kind::planned)
    return filled(step, letter.part, planner_.lower(letter.part));
  if (!late) load_late();
  return std::move(*late);
}

StepData StepLoader::take(std::uint64_t step) {
  planner_.begin(step);
  StepData data = ahead_.valid() && ahead_step_ == step ? ahead_.get() : load(step);
  ahead_step_ = step + 1;
  ahead_ = std::async(std::launch::async, [this, step] { return load(step + 1); });
  return data;
}

}  // namespace polyphony::exec

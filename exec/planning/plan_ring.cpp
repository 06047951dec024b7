#include "exec/planning/plan_ring.h"

#include "shared/error.h"

namespace polyphony::exec {
namespace {

std::string key(std::uint64_t step, Rank rank) {
  return "plan/" + std::to_string(step % kPlanSlots) + "/" + std::to_string(rank.value);
}
std::string read_key(std::uint64_t step, Rank rank) { return key(step, rank) + "/read"; }

}  // namespace

void PlanWriter::await_read(std::uint64_t step) {
  for (int r = 1; r < transport_.world_size(); ++r) {
    const std::string read = transport_.fetch(read_key(step, Rank(static_cast<std::size_t>(r))));
    POLYPHONY_CHECK(read == std::to_string(step),
                    "rank " << r << " read the plan of step " << read << ", not of " << step);
  }
}

void PlanWriter::post(std::uint64_t step, const std::vector<std::string>& letters) {
  if (!begun_) unread_ = next_ = step;
  begun_ = true;
  POLYPHONY_CHECK(step == next_, "step " << step << " is posted when " << next_ << " is next");
  for (; unread_ + kPlanSlots <= step; ++unread_) await_read(unread_);
  for (std::size_t r = 1; r < letters.size(); ++r) transport_.post(key(step, Rank(r)), letters[r]);
  ++next_;
}

void PlanWriter::drain() {
  for (; unread_ < next_; ++unread_) await_read(unread_);
}

StepLetter PlanReader::read(std::uint64_t step) {
  if (ended_) return {step, StepLetter::Kind::end, {}};
  POLYPHONY_CHECK(step == next_,
                  "the plan of step " << step << " is requested when " << next_ << " is next");
  const Rank own = transport_.rank();
  StepLetter letter = read_step_letter(transport_.fetch(key(step, own)));
  transport_.post(read_key(step, own), std::to_string(step));
  POLYPHONY_CHECK(letter.step == step,
                  "received the plan of step " << letter.step << " instead of step " << step);
  ++next_;
  ended_ = letter.kind == StepLetter::Kind::end;
  const bool mine = letter.kind != StepLetter::Kind::planned || letter.part.step.only == own;
  POLYPHONY_CHECK(
      mine, "received the plan of step " << step << " for rank " << letter.part.step.only.value);
  return letter;
}

void PlanReader::finish() {
  while (!ended_) read(next_);
}

}  // namespace polyphony::exec

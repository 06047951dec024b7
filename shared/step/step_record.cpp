#include "shared/step/step_record.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony {
namespace {

constexpr std::string_view kHead = "polyphony plans 1\n";
constexpr std::size_t kLength = 8;

std::uint64_t length_at(std::string_view bytes, std::size_t at) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLength; ++i)
    length |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return length;
}

template <class List>
bool inside(Range range, const List& list) {
  return range.begin <= range.end && range.end <= list.size();
}

// Checks that positions exist and that the works are those of the plan; empty: no error.
std::string wrong_works(const Plan& plan, const WorkTable& table, const Batch& batch) {
  if (table.part || table.first_work.size() != plan.branches.size())
    return "it has works of " + std::to_string(table.first_work.size()) +
           " branches, but the layout has " + std::to_string(plan.branches.size());
  std::size_t begin = 0;
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    const Branch& branch = plan.branches[b];
    const auto works = static_cast<std::size_t>(branch.count_works());
    if (table.first_work[b] != begin || table.works.size() - begin < works)
      return "branch " + std::to_string(b) + " does not have its " + std::to_string(works) +
             " works";
    for (std::size_t w = 0; w < works; ++w) {
      const Work& work = table.works[begin + w];
      const auto contexts = static_cast<std::size_t>(branch.grid.cp),
                 lanes = static_cast<std::size_t>(branch.grid.dp());
      if (work.branch != b || work.context != w % contexts || work.lane != w / contexts % lanes ||
          work.index != w / contexts / lanes || !inside(work.samples, table.work_samples) ||
          !inside(work.items, table.items_of_works) || !inside(work.rows, table.work_rows))
        return "work " + std::to_string(begin + w) + " has a wrong branch, lane or position";
    }
    begin += works;
  }
  if (begin != table.works.size()) return "it has more works than its branches";
  for (const std::uint32_t sample : table.work_samples)
    if (sample >= batch.samples.size())
      return "sample " + std::to_string(sample) + " does not exist";
  for (const ItemOfWork& item : table.items_of_works)
    if (item.sample >= batch.samples.size() || item.item >= batch.samples[item.sample].items.size())
      return "item " + std::to_string(item.item) + " of sample " + std::to_string(item.sample) +
             " does not exist";
  std::int64_t tokens = 0;  // an upper limit of the rows of a work
  for (const Sample& sample : batch.samples)
    for (const Item& item : sample.items) tokens += item.tokens;
  for (const Interval& rows : table.work_rows)
    if (rows.begin < 0 || rows.end < rows.begin || rows.end > tokens)
      return "rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end) +
             " do not exist";
  return "";
}

std::string wrong_orders(const Plan& plan, const StepPlan& step) {
  std::size_t ranks = 0;
  for (const Branch& branch : plan.branches)
    ranks = std::max(ranks, static_cast<std::size_t>(branch.grid.first_rank + branch.grid.ranks));
  if (step.only.valid() || step.order_of.size() != ranks)
    return "it has orders of " + std::to_string(step.order_of.size()) +
           " ranks, but the layout has " + std::to_string(ranks);
  for (const std::uint32_t order : step.order_of)
    if (order >= step.orders.size()) return "order " + std::to_string(order) + " does not exist";
  for (const Actions& actions : step.orders)
    for (const Action& action : actions)
      if (action.kind > ActionKind::backward_weight || action.recipe > last_of(Recipe{}) ||
          action.work < 0)
        return "it has an unknown kind of action";
  if (step.receive_slots < 1) return "receive_slots must be at least 1";
  return "";
}

}  // namespace

Layout without_planner(Layout layout) {
  if (layout.planner == Planning::dip) {  // sub-microbatches are its own
    layout.encoder_microbatches = 0;
    for (ModuleLayout& grid : layout.modules) grid.sub_microbatch = 1;
  }
  layout.planner = Planning::none;
  return layout;
}

std::string plans_head() { return std::string(kHead); }

std::string plans_entry(const StepRecord& record) {
  const std::string bytes = to_bytes(record);
  std::string entry;
  for (std::size_t i = 0; i < kLength; ++i)
    entry.push_back(static_cast<char>(std::uint64_t{bytes.size()} >> (8 * i) & 0xff));
  return entry + bytes;
}

std::vector<StepRecord> parse_plans(std::string_view bytes, const std::string& file) {
  if (bytes.substr(0, kHead.size()) != kHead)
    throw InputError(file, "", "is not a file of step plans of this version",
                     "`polyphony run --planning live --plans FILE` writes one");
  std::vector<StepRecord> records;
  for (std::size_t at = kHead.size(); at < bytes.size();) {
    if (bytes.size() - at < kLength) break;
    const std::uint64_t length = length_at(bytes, at);
    at += kLength;
    if (length > bytes.size() - at) break;
    try {
      records.push_back(read_step_record(bytes.substr(at, length)));
    } catch (const StepPlanError& error) {
      throw InputError(file, "/" + std::to_string(records.size()), error.what(),
                       "write the plans again: --planning live --plans FILE");
    }
    at += length;
  }
  return records;
}

std::vector<std::string> check_step(const Model& model, const Plan& plan, const StepPlan& step,
                                    const Batch& batch) {
  for (const std::string& wrong : {wrong_works(plan, step.works, batch), wrong_orders(plan, step)})
    if (!wrong.empty()) return {wrong};
  return check_actions(model, plan, step);
}

}  // namespace polyphony

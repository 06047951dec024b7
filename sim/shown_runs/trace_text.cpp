#include "sim/shown_runs/trace_text.h"

#include <algorithm>
#include <sstream>

#include "sim/console/console.h"
#include "traces/kineto/summary.h"

namespace polyphony::sim {
namespace {

using namespace traces;

constexpr std::size_t kRows = 12;     // of a table; JSON has all
constexpr std::size_t kColumns = 6;   // of classes, before steps are left to JSON
constexpr std::size_t kLetters = 88;  // of a kernel's name

std::string share_text(Nanoseconds part, Nanoseconds of) {
  return of.count() == 0 ? "" : percent_text(Seconds(part) / Seconds(of));
}
std::string rank_text(const DeviceTrace& trace) {
  return trace.rank ? std::to_string(*trace.rank) : "-";
}
std::string rate_text(const std::optional<BytesPerSecond>& rate) {
  return rate ? number_text(rate->value / 1e9, 1) : "";
}
// A column of a table of times: a rank's step, or all of its file.
struct Column {
  const DeviceTrace* trace;
  const DeviceTimes* times;
  const StepTimes* step = nullptr;
  std::string step_text() const {
    return step ? std::to_string(trace->steps[step->step].number) : "all";
  }
};
std::vector<Column> columns_of(const RankSet& ranks, bool steps) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < ranks.traces.size(); ++i) {
    columns.push_back({&ranks.traces[i], &ranks.times[i].whole});
    if (!steps) continue;
    for (const StepTimes& step : ranks.times[i].steps)
      columns.push_back({&ranks.traces[i], &step.times, &step});
  }
  return columns;
}

std::string kinds_text(const RankSet& ranks) {
  Table table({"rank", "step", "on host", "on device", "compute", "communication", "overlapped",
               "copies", "idle", "gap to next step"});
  for (const Column& column : columns_of(ranks, true)) {
    const DeviceTimes& times = *column.times;
    const Nanoseconds communication = times.of(DeviceWork::communication);
    table.add({rank_text(*column.trace), column.step_text(),
               column.step ? seconds_text(column.trace->steps[column.step->step].duration) : "",
               seconds_text(times.span), share_text(times.of(DeviceWork::compute), times.span),
               share_text(communication, times.span), share_text(times.overlapped, communication),
               share_text(times.of(DeviceWork::memory), times.span),
               share_text(times.idle, times.span),
               column.step && column.step->gap ? seconds_text(*column.step->gap) : ""});
  }
  return table.text();
}

std::string classes_text(const RankSet& ranks) {
  std::vector<Column> columns = columns_of(ranks, true);
  if (columns.size() > kColumns) columns = columns_of(ranks, false);
  columns.resize(std::min(columns.size(), kColumns));
  std::vector<std::string> header{"class", "events"}, idle{"idle", ""}, span{"span", ""};
  for (const Column& column : columns) {
    header.push_back(rank_text(*column.trace) + ": " + column.step_text());
    idle.push_back(seconds_text(column.times->idle));
    span.push_back(seconds_text(column.times->span));
  }
  Table table(header);
  for (std::size_t kind = 0; kind < columns[0].times->classes.size(); ++kind) {
    std::int64_t events = 0;
    std::vector<std::string> row{name(static_cast<KernelClass>(kind)), ""};
    for (const RankTimes& rank : ranks.times) events += rank.whole.classes[kind].count;
    for (const Column& column : columns)
      row.push_back(seconds_text(column.times->classes[kind].wall));
    row[1] = count_text(events);
    if (events > 0) table.add(row);
  }
  table.add(idle);
  table.add(span);
  return table.text();
}

std::string collectives_text(const std::vector<CollectiveRow>& rows) {
  Table table({"collective", "bytes", "ranks", "group", "count", "median", "shortest", "GB/s",
               "bus GB/s", "at best"});
  for (std::size_t i = 0; i < std::min(rows.size(), kRows); ++i) {
    const CollectiveRow& row = rows[i];
    table.add({name(row.shape.call), row.shape.bytes ? bytes_text(*row.shape.bytes) : "?",
               row.shape.ranks > 0 ? std::to_string(row.shape.ranks) : "?", row.shape.group,
               count_text(row.count), seconds_text(row.median), seconds_text(row.shortest),
               rate_text(row.algorithm), rate_text(row.bus), rate_text(row.best_bus)});
  }
  return table.text();
}

std::string products_text(const std::vector<ProductRow>& rows) {
  Table table({"GEMM", "m", "n", "k", "calls", "time", "TFLOP/s"});
  for (std::size_t i = 0; i < std::min(rows.size(), kRows); ++i) {
    const MatrixProduct& product = rows[i].product;
    table.add({product.batch > 1 ? count_text(product.batch) + " in a batch" : "single",
               std::to_string(product.m), std::to_string(product.n), std::to_string(product.k),
               count_text(rows[i].count), seconds_text(rows[i].total),
               number_text(rows[i].rate.value / 1e12, 1)});
  }
  return table.text();
}

std::string unknown_text(const std::vector<KernelRow>& rows) {
  Table table({"unknown kernel", "count", "time"});
  std::size_t shown = 0;
  for (const KernelRow& row : rows)
    if (row.kind == KernelClass::unknown && shown++ < kRows)
      table.add({short_kernel_name(row.name), count_text(row.count), seconds_text(row.total)});
  return shown == 0 ? "" : table.text();
}

std::string slow_text(const RankSet& ranks) {
  const auto slow = slow_rank(ranks);
  if (!slow) return "";
  std::ostringstream out;
  out << "Rank " << rank_text(ranks.traces[slow->rank])
      << " is the slowest: " << seconds_text(slow->busy)
      << " of computation and copies in its median step, against " << seconds_text(slow->median)
      << " of the median rank.";
  if (ranks.matched > 0)
    out << " Others waited for it in " << count_text(ranks.last_in[slow->rank]) << " of "
        << count_text(ranks.matched) << " collectives that all have.";
  return out.str() + "\n";
}

}  // namespace

std::string short_kernel_name(const std::string& name) {
  if (name.size() <= kLetters) return name;
  std::size_t end = kLetters;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  return name.substr(0, end) + "…";
}

std::string trace_text(const RankSet& ranks) {
  std::string text = kinds_text(ranks) + "\n" + classes_text(ranks);
  const auto add = [&](const std::string& part, bool any) {
    if (any) text += "\n" + part;
  };
  const std::vector<CollectiveRow> collectives = collective_rows(ranks);
  const std::vector<ProductRow> products = product_rows(ranks);
  const std::string unknown = unknown_text(kernel_rows(ranks)), slow = slow_text(ranks);
  add(collectives_text(collectives), !collectives.empty());
  add(products_text(products), !products.empty());
  add(unknown, !unknown.empty());
  add(slow, !slow.empty());
  return text;
}

std::string trace_csv(const RankSet& ranks) {
  std::ostringstream out;
  out.precision(12);
  out << "rank,step,class,wall_seconds,kernel_seconds,count\n";
  for (const Column& column : columns_of(ranks, true)) {
    const std::string of = rank_text(*column.trace) + "," + column.step_text() + ",";
    for (std::size_t kind = 0; kind < column.times->classes.size(); ++kind) {
      const ClassTime& time = column.times->classes[kind];
      if (time.count > 0)
        out << of << name(static_cast<KernelClass>(kind)) << "," << Seconds(time.wall).count()
            << "," << Seconds(time.kernels).count() << "," << time.count << "\n";
    }
    out << of << "idle," << Seconds(column.times->idle).count() << ",,\n";
  }
  return out.str();
}

}  // namespace polyphony::sim

#include "traces/nsys/nsys.h"

#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "shared/error.h"
#include "traces/kineto/kernel_class.h"
#include "traces/kineto/profile_event.h"
#include "traces/kineto/recorded.h"

namespace polyphony::traces {
namespace {

constexpr std::int64_t kLongest = 86'400'000'000'000;  // a day, in nanoseconds
constexpr const char* kHint = "export it again: nsys export --type sqlite REPORT.nsys-rep";

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct EndStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class Database {
 public:
  explicit Database(const std::string& path) : path_(path) {
    sqlite3* opened = nullptr;
    const int result = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    database_.reset(opened);
    if (result != SQLITE_OK) fail();
  }

  bool has(const std::string& table) { return !columns(table).empty(); }
  bool has(const std::string& table, const std::string& column) {
    const std::vector<std::string> all = columns(table);
    return std::find(all.begin(), all.end(), column) != all.end();
  }

  [[noreturn]] void fail() const {
    std::string why = sqlite3_errmsg(database_.get());  // may quote the file over several lines
    why.resize(std::min(why.size(), why.find_first_of("\r\n")));
    throw InputError(path_, "", "cannot be read: " + why, kHint);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(path_, "", what, kHint);
  }

  // Calls `take(row)` for each row.
  template <typename Take>
  void each(const std::string& query, Take take);

 private:
  const std::vector<std::string>& columns(const std::string& table);

  std::string path_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  std::map<std::string, std::vector<std::string>> columns_;
};

class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string_view text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes ? std::string_view(
                       bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
                 : std::string_view();
  }

 private:
  sqlite3_stmt* statement_;
};

template <typename Take>
void Database::each(const std::string& query, Take take) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &made, nullptr) != SQLITE_OK) fail();
  const std::unique_ptr<sqlite3_stmt, EndStatement> statement(made);
  for (;;) {
    const int result = sqlite3_step(statement.get());
    if (result == SQLITE_DONE) return;
    if (result != SQLITE_ROW) fail();
    take(Row(statement.get()));
  }
}

const std::vector<std::string>& Database::columns(const std::string& table) {
  const auto [found, added] = columns_.try_emplace(table);
  if (added)
    each("PRAGMA table_info(" + table + ")",
         [&](const Row& row) { found->second.emplace_back(row.text(1)); });
  return found->second;
}

// Identifiers of threads and processes count in steps of 2^24: the process, then the thread.
constexpr std::int64_t kThreads = std::int64_t{1} << 24;
std::int64_t process_of(std::int64_t thread) { return thread / kThreads * kThreads; }

// Returns whether an event may last from `start` to `end`.
bool is_span(std::int64_t start, std::int64_t end) {
  return start >= 0 && end >= start && end - start <= kLongest;
}

// "aten::mm, op_id = 7, sizes = [[64, 32], [32, 16]]": the operator, and the sizes of its operands.
std::string_view operator_of(std::string_view range) { return range.substr(0, range.find(", ")); }
std::string_view sizes_of(std::string_view range) {
  constexpr std::string_view kSizes = "sizes = ";
  const std::size_t at = range.find(kSizes);
  if (at == range.npos) return {};
  const std::string_view rest = range.substr(at + kSizes.size());
  const std::size_t end = rest.find("]]");
  return end == rest.npos ? std::string_view() : rest.substr(0, end + 2);
}

class Reader {
 public:
  Reader(const std::string& path, std::string step)
      : file_(path), database_(path), step_(step.empty() ? "ProfilerStep#" : std::move(step)) {}

  std::vector<DeviceTrace> read() {
    if (!database_.has("StringIds"))
      database_.refuse("is a database, but no report of Nsight Systems: it has no StringIds");
    read_kernels();
    if (traces_.empty()) database_.refuse("has no kernels");
    keep_one_device();
    read_copies();
    read_calls();
    read_ranges();
    read_about();
    std::vector<DeviceTrace> all;
    for (auto& [process_and_device, recorded] : traces_) {
      recorded.devices.assign(recorded.trace.events.size(), 0);
      all.push_back(finished(std::move(recorded), step_));
      note(all.back());
    }
    return all;
  }

 private:
  Recorded* trace_of(std::int64_t process, std::int64_t device) {
    const auto found = traces_.find({process, device});
    return found == traces_.end() ? nullptr : &found->second;
  }

  // The columns of events on a device that all tables have: begin, end, stream, correlation,
  // process, device. Old reports state no process.
  std::string device_columns(const std::string& table) {
    return "t.start, t.end, t.streamId, t.correlationId, " +
           std::string(database_.has(table, "globalPid") ? "t.globalPid" : "0") + ", t.deviceId";
  }

  DeviceEvent event_of(const Row& row) const {
    const std::int64_t start = row.integer(0), end = row.integer(1);
    if (!is_span(start, end))
      database_.refuse("has an event that ends before it begins, or lasts for more than a day");
    DeviceEvent event;
    event.start = event.launched = Nanoseconds(start);
    event.duration = Nanoseconds(end - start);
    const std::int64_t stream = row.integer(2);
    if (stream < -1 || stream > 0x7fffffff) database_.refuse("has a stream number out of range");
    event.stream = static_cast<std::int32_t>(stream);
    return event;
  }

  void add(Recorded& into, const Row& row, DeviceEvent event) {
    into.trace.events.push_back(event);
    into.correlations.push_back(row.integer(3));
  }

  void read_kernels() {
    const std::string table = "CUPTI_ACTIVITY_KIND_KERNEL";
    if (!database_.has(table)) return;
    const std::string name = database_.has(table, "demangledName") ? "demangledName" : "shortName";
    database_.each("SELECT " + device_columns(table) + ", s.value FROM " + table +
                       " t LEFT JOIN StringIds s ON s.id = t." + name,
                   [&](const Row& row) {
                     Recorded& into = traces_[{row.integer(4), row.integer(5)}];
                     DeviceEvent event = event_of(row);
                     event.name = into.names.of(row.null(6) ? "unnamed kernel" : row.text(6));
                     ++into.trace.read["kernel"];
                     add(into, row, event);
                   });
  }

  // Of a process that uses several GPUs, keeps the one with the most kernels.
  void keep_one_device() {
    for (auto at = traces_.begin(); at != traces_.end();) {
      auto best = at, end = at;
      for (; end != traces_.end() && end->first.first == at->first.first; ++end)
        if (end->second.trace.events.size() > best->second.trace.events.size()) best = end;
      while (at != end) {
        if (at == best) {
          ++at;
          continue;
        }
        best->second.trace.notes.push_back(std::to_string(at->second.trace.events.size()) +
                                           " kernels of another GPU of its process were omitted");
        at = traces_.erase(at);
      }
    }
  }

  void read_copies() {
    // Kinds of copies as in CUPTI (CUpti_ActivityMemcpyKind).
    const auto copied = [](std::int64_t kind) {
      return kind == 1 || kind == 3   ? KernelClass::to_device
             : kind == 2 || kind == 4 ? KernelClass::to_host
                                      : KernelClass::on_device;
    };
    for (const bool copies : {true, false}) {
      const std::string table =
          copies ? "CUPTI_ACTIVITY_KIND_MEMCPY" : "CUPTI_ACTIVITY_KIND_MEMSET";
      if (!database_.has(table)) continue;
      database_.each("SELECT " + device_columns(table) + ", t.bytes, " +
                         (copies ? "t.copyKind" : "0") + " FROM " + table + " t",
                     [&](const Row& row) {
                       Recorded* into = trace_of(row.integer(4), row.integer(5));
                       if (!into) return;
                       DeviceEvent event = event_of(row);
                       event.kind = copies ? copied(row.integer(7)) : KernelClass::fill;
                       event.bytes = Bytes(std::max<std::int64_t>(0, row.integer(6)));
                       event.name = into->names.of(copies ? "copy" : "fill");
                       ++into->trace.read[copies ? "gpu_memcpy" : "gpu_memset"];
                       add(*into, row, event);
                     });
    }
  }

  // Calls `use(trace)` for the traces of a thread's process. Old reports do not state processes.
  template <typename Use>
  void of_thread(std::int64_t thread, Use use) {
    const bool old = traces_.begin()->first.first == 0;
    for (auto& [process_and_device, recorded] : traces_)
      if (old || process_and_device.first == process_of(thread)) use(recorded);
  }
  std::uint32_t number_of(std::int64_t thread) {
    return threads_.try_emplace(thread, static_cast<std::uint32_t>(threads_.size())).first->second;
  }

  void read_calls() {
    if (!database_.has("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
    database_.each(
        "SELECT t.start, t.end, t.globalTid, t.correlationId, s.value FROM "
        "CUPTI_ACTIVITY_KIND_RUNTIME t LEFT JOIN StringIds s ON s.id = t.nameId",
        [&](const Row& row) {
          const std::int64_t start = row.integer(0), end = row.integer(1);
          if (!is_span(start, end)) return;
          const std::int64_t length = end - start;
          const auto what = waits_for(row.text(4));
          of_thread(row.integer(2), [&](Recorded& into) {
            into.launches.push_back({start, row.integer(3), number_of(row.integer(2))});
            if (what && (what != WaitsFor::queue || length >= kLongLaunch.count()))
              into.trace.waits.push_back({Nanoseconds(start), Nanoseconds(length), *what});
          });
        });
  }

  void read_ranges() {
    if (!database_.has("NVTX_EVENTS")) return;
    const std::string text = database_.has("NVTX_EVENTS", "textId")
                                 ? "COALESCE(t.text, s.value) FROM NVTX_EVENTS t LEFT JOIN "
                                   "StringIds s ON s.id = t.textId"
                                 : "t.text FROM NVTX_EVENTS t";
    // Ranges of a thread (59), and those that may end on another one (60).
    database_.each("SELECT t.start, t.end, t.globalTid, " + text +
                       " WHERE t.eventType IN (59, 60) AND t.end IS NOT NULL",
                   [&](const Row& row) {
                     const std::int64_t start = row.integer(0), end = row.integer(1);
                     if (is_span(start, end) && !row.null(3))
                       add_range(start, end, row.integer(2), row.text(3));
                   });
  }

  void add_range(std::int64_t start, std::int64_t end, std::int64_t thread, std::string_view text) {
    of_thread(thread, [&](Recorded& into) {
      ++into.trace.read["range"];
      if (text.starts_with(step_)) {
        StepRange step{std::string(text), -1, Nanoseconds(start), Nanoseconds(end - start)};
        const std::size_t digits = text.find_last_not_of("0123456789") + 1;
        std::from_chars(text.data() + digits, text.data() + text.size(), step.number);
        into.trace.steps.push_back(std::move(step));
        return;
      }
      const std::string_view name = operator_of(text);
      HostSpan span{start, end, into.names.of(name), number_of(thread)};
      MatrixProduct product;
      if (const std::string_view sizes = sizes_of(text);
          !sizes.empty() && product_of(name, sizes, product)) {
        span.product = static_cast<std::uint32_t>(into.trace.products.size());
        into.trace.products.push_back(product);
      }
      into.spans.push_back(span);
      ++ranges_[std::string(name)];
    });
  }

  void read_about() {
    std::string device;
    if (database_.has("TARGET_INFO_GPU", "name"))
      database_.each("SELECT name FROM TARGET_INFO_GPU LIMIT 1",
                     [&](const Row& row) { device = row.text(0); });
    std::optional<Nanoseconds> base;
    if (database_.has("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"))
      database_.each("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1",
                     [&](const Row& row) { base = Nanoseconds(row.integer(0)); });
    std::map<std::int64_t, int> ranks;
    if (database_.has("MPI_RANKS", "globalPid"))
      database_.each("SELECT globalPid, rank FROM MPI_RANKS", [&](const Row& row) {
        ranks[row.integer(0)] =
            static_cast<int>(std::clamp<std::int64_t>(row.integer(1), 0, 1 << 24));
      });
    for (auto& [process_and_device, recorded] : traces_) {
      recorded.trace.file = file_;
      recorded.trace.device = device;
      if (base && base->count() > 0) recorded.base = base;
      if (const auto rank = ranks.find(process_and_device.first); rank != ranks.end())
        recorded.trace.rank = rank->second;
    }
    graphs_ = database_.has("CUPTI_ACTIVITY_KIND_GRAPH_TRACE");
  }

  void note(DeviceTrace& trace) const {
    if (graphs_)
      trace.notes.emplace_back(
          "CUDA graphs were traced whole, and their kernels are missing: record with "
          "--cuda-graph-trace=node");
    if (!trace.steps.empty() || ranges_.empty()) return;
    std::vector<std::pair<std::int64_t, std::string>> most;
    for (const auto& [name, count] : ranges_) most.emplace_back(-count, name);
    std::sort(most.begin(), most.end());
    constexpr std::size_t kShown = 6;
    std::string names;
    for (std::size_t i = 0; i < std::min(kShown, most.size()); ++i)
      names += (i ? ", \"" : "\"") + most[i].second + "\" (" + std::to_string(-most[i].first) + ")";
    trace.notes.push_back("has these NVTX ranges: " + names + "; name those of a step with --step");
  }

  std::string file_;
  Database database_;
  std::string step_;
  std::map<std::pair<std::int64_t, std::int64_t>, Recorded> traces_;  // by process and device
  std::map<std::int64_t, std::uint32_t> threads_;
  std::map<std::string, std::int64_t> ranges_;  // number of ranges that mark no steps, by name
  bool graphs_ = false;
};

}  // namespace

bool is_sqlite(std::string_view head) {
  return head.starts_with(std::string_view("SQLite format 3\0", 16));
}

std::vector<DeviceTrace> read_nsys(const std::string& path, const std::string& step) {
  return Reader(path, step).read();
}

}  // namespace polyphony::traces

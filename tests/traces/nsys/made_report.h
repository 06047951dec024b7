// Makes small reports of Nsight Systems, as `nsys export --type sqlite` writes them.
#pragma once

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <vector>

namespace polyphony::traces::made {

inline constexpr std::int64_t kProcess = std::int64_t{77} << 24;

// The tables and columns of a report that are read, with some that are not.
inline constexpr const char* kTables = R"(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT,
  streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT,
  correlationId INT, globalPid INT, bytes INT, copyKind INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, streamId INT,
  correlationId INT, globalPid INT, value INT, bytes INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT,
  correlationId INT, nameId INT);
CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT, textId INT);
CREATE TABLE TARGET_INFO_GPU (name TEXT, id INT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT);
INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA H100 80GB HBM3', 0);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);
)";

class Report {
 public:
  explicit Report(const std::string& path) {
    REQUIRE(sqlite3_open(path.c_str(), &database_) == SQLITE_OK);
    run(kTables);
    run("BEGIN");
  }
  ~Report() {
    run("COMMIT");
    sqlite3_close(database_);
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void run(const std::string& text) {
    REQUIRE_MESSAGE(sqlite3_exec(database_, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK,
                    sqlite3_errmsg(database_));
  }
  int string(const std::string& text) {
    run("INSERT INTO StringIds VALUES (" + std::to_string(++strings_) + ", '" + text + "')");
    return strings_;
  }
  void row(const std::string& table, const std::vector<std::int64_t>& values) {
    std::string list;
    for (const std::int64_t value : values)
      list += (list.empty() ? "" : ", ") + std::to_string(value);
    run("INSERT INTO " + table + " VALUES (" + list + ")");
  }
  void kernel(const std::string& name, std::int64_t launched, std::int64_t start,
              std::int64_t length, std::int64_t process = kProcess, int device = 0) {
    ++correlation_;
    const int text = string(name);
    row("CUPTI_ACTIVITY_KIND_KERNEL",
        {start, start + length, device, 1, 7, correlation_, process, text, text});
    row("CUPTI_ACTIVITY_KIND_RUNTIME",
        {launched, launched + 500, 0, process + 5, correlation_, string("cudaLaunchKernel_v7000")});
  }
  void range(const std::string& text, std::int64_t start, std::int64_t length,
             std::int64_t process = kProcess) {
    run("INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + ", " +
        std::to_string(start + length) + ", 59, '" + text + "', " + std::to_string(process + 5) +
        ", NULL)");
  }

 private:
  sqlite3* database_ = nullptr;
  int strings_ = 0;
  std::int64_t correlation_ = 0;
};

// Two steps of a GEMM with its shape, an attention kernel and a copy.
inline void add_steps(Report& report, std::int64_t process = kProcess, int device = 0) {
  for (int s = 0; s < 2; ++s) {
    const std::int64_t at = 1'000'000 + 100'000 * s;
    report.range("iteration " + std::to_string(s), at, 99'000, process);
    report.range("aten::mm, op_id = 3, sizes = [[64, 32], [32, 16]]", at + 1'000, 3'000, process);
    report.kernel("nvjet_tst_128x64", at + 2'000, at + 10'000, 20'000, process, device);
    report.kernel("flash_bwd_kernel", at + 6'000, at + 40'000, 8'000, process, device);
    report.row("CUPTI_ACTIVITY_KIND_MEMCPY",
               {at + 60'000, at + 61'000, device, 7, 900 + s, process, 4096, 1});
    report.row("CUPTI_ACTIVITY_KIND_RUNTIME", {at + 50'000, at + 62'000, 0, process + 5, 900 + s,
                                               report.string("cudaMemcpy_v3020")});
  }
}

}  // namespace polyphony::traces::made

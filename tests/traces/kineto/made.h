// Builds small traces in the format of PyTorch's profiler, with results that can be computed by
// hand.
#pragma once

#include <string>
#include <vector>

#include "traces/kineto/kineto.h"

namespace polyphony::traces::made {

inline std::string number(double value) {
  std::string text = std::to_string(value);  // six decimals: finer than a nanosecond
  return text;
}

inline std::string event(const std::string& cat, const std::string& name, double ts, double dur,
                         const std::string& args, const std::string& where = "1") {
  return R"({"ph": "X", "cat": ")" + cat + R"(", "name": ")" + name + R"(", "pid": 9, "tid": )" +
         where + R"(, "ts": )" + number(ts) + R"(, "dur": )" + number(dur) + R"(, "args": {)" +
         args + "}}";
}
// A kernel, and its launch 1 us before `launched` ends; microseconds.
inline std::string kernel(const std::string& name, double launched, double ts, double dur,
                          int stream, int correlation, const std::string& more = "") {
  const std::string join = R"("correlation": )" + std::to_string(correlation);
  return event("cuda_runtime", "cudaLaunchKernel", launched, 1, join) + ",\n" +
         event("kernel", name, ts, dur,
               R"("device": 0, "stream": )" + std::to_string(stream) + ", " + join + more,
               std::to_string(stream));
}
inline std::string step(int number_of, double ts, double dur) {
  return event("user_annotation", "ProfilerStep#" + std::to_string(number_of), ts, dur, "");
}

inline std::string file(const std::vector<std::string>& events, const std::string& head) {
  std::string text = "{" + head + "\n\"traceEvents\": [\n";
  for (std::size_t i = 0; i < events.size(); ++i) text += (i ? ",\n" : "") + events[i];
  return text + "\n]}\n";
}
inline std::string head(int rank, int world, const std::string& base = "1700000000000000000") {
  return R"("schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": )" +
         std::to_string(rank) + R"(, "world_size": )" + std::to_string(world) +
         R"(}, "baseTimeNanoseconds": )" + base + ",";
}

inline DeviceTrace read(const std::string& text, const std::string& name = "t.json",
                        const KinetoOptions& options = {}) {
  return read_kineto(bytes_of(text), name, options);
}

}  // namespace polyphony::traces::made

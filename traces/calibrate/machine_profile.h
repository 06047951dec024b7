// Fits a hardware profile of this machine to microbenchmark records. A record file consists of JSON
// lines with one median time each ("seconds"); the first line is {"record": "machine", "format": 1,
// "software": "torch 2.11"}. Examples: traces/README.md.
//
//   gemm m n k:        2mnk/(peak·e)·(1 + half_size/∛(mnk)) + dispatch. With "format": "bf16", a
//                      third of the time of a layer's three GEMMs in bf16: these records set the
//                      bf16 peak, e is kept
//   attention flops:   flops/(peak·e) + dispatch; with "backward": true the backward pass
//   memcpy bytes:      2·bytes/(memory rate·e) + the cost of its own call
//   pass bytes:        bytes/(memory rate·e) + the cost of its own call. An element-wise pass as
//                      layers run it; bytes read and written. On a CPU, arithmetic can bound it.
//                      If there are no passes, copies are used
//   message bytes:     latency + bytes/(link rate·e)
//   all_reduce ranks bytes:  2(n−1)·hop + 2(n−1)/n·bytes/(link rate·e). "processor_seconds": CPU
//                      time of all threads of a rank during the call. The largest all-reduce tells
//                      how much of the computing core it takes
//
// Efficiencies are relative to the device of the prior (fp32 peak) and to the given node link. If
// an efficiency of the device would exceed 1, the reached rate becomes its peak; an efficiency of a
// link may reach kMostOfAssumedLink (shared/hardware/hardware_json.h). A parameter that no record
// informs keeps its prior.
//
// Does not model: cores or links shared by ranks, memory-bound GEMMs, caches.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/hardware/hardware.h"

namespace polyphony::traces {

struct GemmRecord {
  std::int64_t m = 0, n = 0, k = 0;
  Seconds time{};
  NumberFormat format = NumberFormat::fp32;
};
struct AttentionRecord {
  Flops flops{};
  Seconds time{};
  bool backward = false;
};
struct MemcpyRecord {
  Bytes bytes{};
  Seconds time{};
};
struct PassRecord {
  Bytes bytes{};
  Seconds time{};
};
struct MessageRecord {
  Bytes bytes{};
  Seconds time{};
};
struct AllReduceRecord {
  int ranks = 2;
  Bytes bytes{};
  Seconds time{};
  Seconds processor{};  // 0: not measured
};
using MachineRecord = std::variant<GemmRecord, AttentionRecord, MemcpyRecord, PassRecord,
                                   MessageRecord, AllReduceRecord>;

struct MachineRecords {
  std::string software;
  std::vector<MachineRecord> records;
};
// Parses the records. Throws InputError with "file:line" and the key if a line is malformed.
MachineRecords read_machine_records(const std::string& text, const std::string& file);

// Returns `prior`, a profile of the same kind of device, fitted to the records. `name` is the new
// profile's name; `source` describes where the records came from.
HardwareProfile fit_machine(const HardwareProfile& prior, const Link& node_link,
                            const MachineRecords& measured, const std::string& name,
                            const std::string& source);

// Returns an equivalent profile in which no efficiency of the device exceeds 1: reached rates
// become the peaks. Predicted times stay the same.
HardwareProfile reached_is_peak(HardwareProfile profile);

}  // namespace polyphony::traces

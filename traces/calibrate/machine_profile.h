// From microbenchmark records to the hardware profile of this machine. JSON lines, one median time
// each ("seconds"); the first line is {"record": "machine", "format": 1, "software": "torch 2.11"}.
//   gemm m n k:        2mnk/(peak·e)·(1 + half_size/∛(mnk)) + dispatch; with "format": "bf16" of the
//                      three products of a layer in bf16, each a third: they set the bf16 peak, e kept
//   attention flops:   flops/(peak·e) + dispatch; with "backward": true of the backward
//   memcpy bytes:      2·bytes/(memory rate·e) + its own call
//   pass bytes:        bytes/(memory rate·e) + its own call: element-wise passes as layers make them, of bytes
//                      read and written. On a processor arithmetic can bound them; without any, copies count
//   message bytes:     latency + bytes/(link rate·e)
//   all_reduce ranks bytes:  2(n−1)·hop + 2(n−1)/n·bytes/(link rate·e); "processor_seconds", of all threads of
//                      a rank meanwhile: what the largest takes of the core that would compute beside it
// Efficiencies are relative to the prior's device (fp32 peak) and to the node link given. Where a
// device's would exceed 1, what was reached becomes its peak; a link's may reach kMostOfAssumedLink
// (shared/hardware/hardware_json.h). What no record informs keeps its prior.
// Does not model: cores or links shared by ranks, memory-bound products, caches.
// Example lines: traces/README.md.
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
// Throws InputError naming "file:line" and the key.
MachineRecords read_machine_records(const std::string& text, const std::string& file);

// `prior`: a profile of the same kind of device; `source` says where the records came from.
HardwareProfile fit_machine(const HardwareProfile& prior, const Link& node_link,
                            const MachineRecords& measured, const std::string& name,
                            const std::string& source);

// The same times, with no efficiency of the device above 1: what was reached is the peak.
HardwareProfile reached_is_peak(HardwareProfile profile);

}  // namespace polyphony::traces

// Reads reports of NVIDIA Nsight Systems (nsys), as exported by `nsys export --type sqlite`, into
// the value that all analyses of profiles read (traces/kineto/device_trace.h).
//
//   kernels, copies, fills   CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET
//   launches and waits       CUPTI_ACTIVITY_KIND_RUNTIME, joined by correlation within a process
//   steps, operators         NVTX_EVENTS: ranges of a thread around a launch. A range "aten::mm,
//                            op_id = 7, sizes = [[…], …]", which torch.autograd.profiler.emit_nvtx
//                            makes, states the shape of a GEMM
//   ranks                    MPI_RANKS, if MPI was traced. Otherwise unknown
//   GPUs                     of a process that uses several, the one with the most kernels
//
// Tables that a report lacks are empty: nsys makes them when they are needed. Not read: graphs
// that were traced whole, as they hide their kernels (record with --cuda-graph-trace=node; a note
// says so); sizes of collectives.
//
// This reader opens its file, unlike others of this library, since a database is no stream. Throws
// InputError if the file is damaged, is no report, or has no kernels.
//
// Source: Nsight Systems, SQLite Export Schema Reference
// (docs.nvidia.com/nsight-systems/2021.5/nsys-exporter/exported_data.html).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

// Returns whether a file that begins with these bytes is a database of SQLite.
bool is_sqlite(std::string_view head);

// Returns a trace of each process in the report, by process. Ranges whose names
// begin with `step` mark the steps; empty: "ProfilerStep#". If there are none, a note names the
// most frequent ranges.
std::vector<DeviceTrace> read_nsys(const std::string& path, const std::string& step = {});

}  // namespace polyphony::traces

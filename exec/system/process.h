// Process-wide settings of a rank that shares its machine with other ranks: compute threads,
// scheduling policy, memory and logging; and clocks.
#pragma once

#include "shared/units.h"

namespace polyphony::exec {

// Sets the number of compute threads and the scheduling policy for `local_ranks` ranks on this
// machine. Call it first: threads started later inherit the settings.
//
// With at least one core per rank, a rank computes on its share of the cores, but on no more than
// the process may run on. With more ranks than cores it computes on one thread under SCHED_BATCH,
// so that a woken rank does not preempt a running one (a step of TP over 8 ranks on two cores: 458
// -> 193 ms, measured).
//
// `paced` (emulated compute) keeps the default policy: such a rank mostly sleeps, and must continue
// as soon as its sleep ends, not when the other ranks' time slices end.
void share_cores(int local_ranks, bool paced = false);
// Returns the time of the host's steady clock (CLOCK_MONOTONIC), which stops while the machine is
// suspended and continues while this process is stopped (SIGSTOP).
Seconds steady_now();
// Returns the processor time used so far: by the calling thread, or, where LibTorch computes on
// several threads, by the whole process.
Seconds processor_now();
Seconds process_processor_now();  // used by all threads of the process
// Restores the default scheduling policy for the calling thread, for example for the heartbeat
// thread, which must not be delayed by computing ranks.
void be_prompt();
// Makes the allocator keep freed memory instead of returning it to the system: activations are
// allocated and freed at the same sizes in every step.
void keep_freed_memory();
// Returns to the system what the allocator keeps of memory that was freed until now. Call it when a
// run has begun: what it read and arranged then is needed in no step.
void return_freed_memory();
// Silences LibTorch's log below errors: c10d logs a stack trace for every connection that a lost
// peer breaks. TORCH_CPP_LOG_LEVEL, if set, takes precedence.
void quieten_libtorch();
// Silences Kineto's log, which reports an error where LibTorch has CUDA and the machine has no GPU.
// KINETO_LOG_LEVEL, if set, takes precedence. Changes the environment: call it before any thread
// starts.
void quieten_kineto();
// Returns true if every local rank can have a core of its own, so that spinning before sleeping
// costs no other rank any time.
bool cores_suffice(int local_ranks);

}  // namespace polyphony::exec

// How a rank's process behaves on a machine that it shares with other ranks.
#pragma once

#include "shared/units.h"

namespace polyphony::exec {

// With more ranks than cores: one compute thread and, unless ranks are paced, SCHED_BATCH, under which a
// woken rank does not interrupt the one that runs (a step of TP over 8 ranks on two cores: 458 -> 193 ms,
// measured). A paced rank sleeps most of its time, and must go on when its time is over, not when the
// others' slices are. Else this rank's share of the cores as compute threads, never more than the process
// may run on. Call it first: threads started later inherit it.
void share_cores(int local_ranks, bool paced = false);
// Of the host's steady clock (CLOCK_MONOTONIC), which stands still while the machine is suspended
// and runs on while this process is stopped (SIGSTOP).
Seconds steady_now();
// Processor time so far: of the calling thread, or of the whole process where LibTorch computes on
// several threads.
Seconds processor_now();
Seconds process_processor_now();  // of all threads
// Undoes the scheduling part for the calling thread: a sign of life must not wait for its action.
void be_prompt();
// Activations come and go at the same sizes every step: freed memory is kept, not handed back to
// the system and taken again.
void keep_freed_memory();
// c10d logs a stack trace for every connection that a lost peer breaks; only its errors are let
// through. TORCH_CPP_LOG_LEVEL overrules.
void quieten_libtorch();
// Ranks have a core each, so that looking for a while before sleeping costs nobody anything.
bool cores_suffice(int local_ranks);

}  // namespace polyphony::exec

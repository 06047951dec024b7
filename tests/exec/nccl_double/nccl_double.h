// A double of NCCL 2.28 (libnccl), as strict as its documentation: what exec/device/nccl.cpp and
// nccl_backend.cpp call runs on the queued device, which registers as CUDA here
// (tests/exec/device_double/queued_device.h). Ranks are threads of one process.
//
// Data move, and calls fail as NCCL's do. Beyond that every mistake in the use of the API, which
// NCCL may answer with a hang or wrong numbers, is recorded with the call, the rank and the reason.
// A call that fails because a communicator was aborted, or because break_next_kernel() was asked
// for, is no mistake.
//
// Modeled: the life of a communicator, blocking or not; splits, collective over the parent, in one
// order, whose result is written after the parent's state says that they are done; groups of calls;
// host waits where NCCL connects members (all messages of a group of calls at once, collectives one
// communicator after another); kernels in the order of their streams, which move data or wait;
// agreement of calls, types, counts and roots; messages by their order; streams of the
// communicator's device; memory that tensors hold from the call until the kernel's end.
//
// Not modeled: numbers of multiprocessors, shared resources (splitShare), communication on
// non-blocking communicators, several streams for a communicator in one group of calls, creation in
// a group of calls, CUDA graphs, registered buffers, and device operations in which making a
// communicator may wait for kernels.
//
// Source: NCCL 2.28 user guide, "Creating a Communicator", "Error handling and communicator abort",
// "Group Calls", "Point-to-point communication", "In-place Operations", "Thread Safety"; nccl.h
// 2.28.9; where the guide is silent, src/init.cc and src/group.cc of that version.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony::exec::testing::nccl {

// Returns the mistakes recorded since the last call.
std::vector<std::string> take_mistakes();

// Returns the communicators that were made and neither aborted nor destroyed, and forgets them.
std::vector<std::string> take_left();

// Returns how many communicators were made since the last call, by size.
struct Made {
  int communicators = 0, splits = 0;
};
Made take_made();

// Sets how long hosts and kernels wait for other members before that is recorded as a mistake.
void be_patient(Seconds time);

// Lets the next kernel on the device, in a communicator of `size` members, wait until it is
// aborted, and sets that communicator's asynchronous error.
void break_next_kernel(int device, int size);

// Calls `fault` in the next ncclCommSplit on the device, before it joins the other members.
void before_next_split(int device, std::function<void()> fault);

}  // namespace polyphony::exec::testing::nccl

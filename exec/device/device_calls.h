// Makes the DeviceCalls of a DeviceTransport over Gloo (exec/device/device_transport.h): how groups
// are made, waited for and aborted, for any c10d backend.
//
// Lost peers: kernels and host calls that wait for a lost peer do not end by themselves; they end
// when the groups are aborted. While a call is in progress, the detection of lost peers aborts
// them; otherwise Transport::abort() does, which a caller that got LostPeer from await() calls
// after it has recorded what hangs.
//
// Errors inside a group (GroupBackend::own_error()), while its kernels wait for ever: they are
// polled where the host waits for its device, and several times a second by the thread that watches
// for lost peers, because the host may block inside CUDA, whose queue of kernels is limited. Such
// an error ends the ranks like a lost peer, with the group's name and the library's message, unless
// a rank is found to be lost, which then explains the error.
//
// A host that stays inside one op for longer than the time-out (Transport::watch()) is such an
// error, too: it waits inside the device's library, for a kernel that may wait for a peer.
//
// A failure of this rank's own device (c10::AcceleratorError) is rethrown unchanged: the rank stops
// with it, and the other ranks are told its reason.
#pragma once

#include "exec/device/device_transport.h"

namespace polyphony::exec {

// Begins to make a family; its members find each other through the store.
using BeginFamily = std::function<FamilyPointer(const c10::intrusive_ptr<c10d::Store>& store,
                                                const std::string& name, int index, int size)>;

// Returns the calls for a transport made by connect_gloo(). `together` becomes
// DeviceMaking::together.
DeviceCalls device_calls(Transport& gloo, torch::Device device, const BeginFamily& begin,
                         const std::function<void(const std::function<void()>&)>& together);

}  // namespace polyphony::exec

// What a DeviceTransport over Gloo asks of its rank's process (exec/device/device_transport.h), whichever backend of
// c10d its groups are.
//   A lost peer ends nothing by itself: kernels that wait for it, and calls of the host that wait for it inside the
//   backend, end when the groups are aborted: by the watch over lost peers where a call is under way, else by
//   Transport::abort(), which whoever is thrown LostPeer by await() calls when it has seen what hangs.
//   What goes wrong in a group by itself, while its kernels wait for ever (GroupBackend::own_error()), is asked for where
// the host waits for its device, and several times a second by the thread that watches over lost peers, for the host may
// wait inside CUDA, which takes only so many kernels; it ends the ranks as a lost peer does, with the group's name and the library's words,
// unless a rank is found lost, of which it is the effect.
//   A failure of this rank's own device (c10::AcceleratorError) is nobody's loss: it is thrown as it is, so that the
//   rank stops with it and the others hear its reason.
#pragma once

#include "exec/device/device_transport.h"

namespace polyphony::exec {

// Begins a family, whose members meet in the store.
using BeginFamily = std::function<FamilyPointer(const c10::intrusive_ptr<c10d::Store>& store,
                                                const std::string& name, int index, int size)>;

// `gloo`: made by connect_gloo. `together`: DeviceMaking's.
DeviceCalls device_calls(Transport& gloo, torch::Device device, const BeginFamily& begin,
                         const std::function<void(const std::function<void()>&)>& together);

}  // namespace polyphony::exec

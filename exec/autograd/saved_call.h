// Saves the state of one call of an autograd function from its forward pass to its only backward
// pass, as a capsule in the context. The type Call must derive from torch::CustomClassHolder or
// c10::intrusive_ptr_target.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

inline constexpr const char* kSavedCall = "call";

template <class Call>
void save_call(torch::autograd::AutogradContext* context, const c10::intrusive_ptr<Call>& call) {
  context->saved_data[kSavedCall] = c10::IValue::make_capsule(call);
}
// Removes the saved call from the context and returns it. The graph's nodes live until the end of
// the whole backward pass; removing the call lets its tensors be freed earlier.
template <class Call>
c10::intrusive_ptr<Call> saved_call(torch::autograd::AutogradContext* context) {
  auto call = c10::static_intrusive_pointer_cast<Call>(context->saved_data[kSavedCall].toCapsule());
  context->saved_data.erase(kSavedCall);
  return call;
}

}  // namespace polyphony::exec

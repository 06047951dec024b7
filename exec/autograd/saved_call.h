// What one call of an autograd function keeps from its forward to its backward, as a capsule in the
// context. Call: derived from torch::CustomClassHolder or c10::intrusive_ptr_target.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

inline constexpr const char* kSavedCall = "call";

template <class Call>
void save_call(torch::autograd::AutogradContext* context, const c10::intrusive_ptr<Call>& call) {
  context->saved_data[kSavedCall] = c10::IValue::make_capsule(call);
}
template <class Call>
c10::intrusive_ptr<Call> saved_call(torch::autograd::AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<Call>(context->saved_data[kSavedCall].toCapsule());
}

}  // namespace polyphony::exec

// What one call of an autograd function keeps from its forward to its only backward, as a capsule in
// the context. Call: derived from torch::CustomClassHolder or c10::intrusive_ptr_target.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

inline constexpr const char* kSavedCall = "call";

template <class Call>
void save_call(torch::autograd::AutogradContext* context, const c10::intrusive_ptr<Call>& call) {
  context->saved_data[kSavedCall] = c10::IValue::make_capsule(call);
}
// The caller's alone: nodes live as long as those before them, which is to the end of a backward.
template <class Call>
c10::intrusive_ptr<Call> saved_call(torch::autograd::AutogradContext* context) {
  auto call = c10::static_intrusive_pointer_cast<Call>(context->saved_data[kSavedCall].toCapsule());
  context->saved_data.erase(kSavedCall);
  return call;
}

}  // namespace polyphony::exec

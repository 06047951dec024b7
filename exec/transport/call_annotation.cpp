#include "exec/transport/call_annotation.h"

#include <unordered_map>

namespace polyphony::exec {

CallAnnotation::CallAnnotation(const std::string& backend, const char* call,
                               const std::string& group, int size, const torch::Tensor& in,
                               const torch::Tensor& out)
    : range_(at::RecordScope::USER_SCOPE) {
  if (!range_.isActive()) return;
  const std::unordered_map<std::string, c10::IValue> arguments{
      {"Collective name", std::string(call)},
      {"In msg nelems", in.numel()},
      {"Out msg nelems", out.numel()},
      {"dtype", std::string(c10::toString(in.scalar_type()))},
      {"Group size", std::int64_t{size}},
      {"Process Group Name", group}};
  range_.before(backend + ":" + call, c10::ArrayRef<const c10::IValue>(), &arguments);
}

}  // namespace polyphony::exec

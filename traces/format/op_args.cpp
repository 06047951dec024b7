#include "traces/format/op_args.h"

namespace polyphony::traces {
namespace {

constexpr std::int64_t kMostListed = 64;  // members of a group; PyTorch truncates long lists, too

// Returns the name that torch.distributed uses.
const char* call_name(CollectiveKind kind) {
  constexpr auto kCalls = names_of<CollectiveKind>("allreduce", "allreduce", "allgather",
                                                   "reduce_scatter", "all_to_all");
  return kCalls[kind];
}

// Returns the name of NCCL's kernel.
const char* kernel_name(CollectiveKind kind) {
  constexpr auto kKernels = names_of<CollectiveKind>(
      "ncclDevKernel_AllReduce ", "ncclDevKernel_AllReduce ", "ncclDevKernel_AllGather ",
      "ncclDevKernel_ReduceScatter ", "ncclDevKernel_SendRecv ");
  return kKernels[kind];
}

void write_layers(LayerRange layers, JsonText& text) {
  text << ", \"layers\": \"[" << layers.begin << "," << layers.end << ")\"";
}

Bytes bytes_of(const Program& program, const Exchange& exchange) {
  Bytes sum{};
  for (auto i = exchange.messages.begin; i < exchange.messages.end; ++i) {
    sum += program.messages[program.exchange_messages[i].value].bytes;
  }
  return sum;
}

// Writes the fields of "args" after the op id, each preceded by a comma.
struct ArgsOf {
  const Program& program;
  JsonText& text;
  void operator()(const Compute& op) const {
    text << ", \"module\": ";
    text.quoted(program.model.modules[op.module.value].name);
    write_layers(op.layers, text);
    text << ", \"phase\": \"" << polyphony::name(op.phase) << "\", \"work\": " << op.work.value;
  }
  void operator()(const Exchange& op) const {
    const Bytes bytes = bytes_of(program, op);
    text << ", \"phase\": \"" << (op.sends ? "send" : "receive")
         << "\", \"messages\": " << op.messages.size() << ", \"bytes\": " << bytes.value;
    write_moved(op.sends ? "send" : "recv", bytes, bytes);
  }
  void operator()(const Collective& op) const {
    text << ", \"phase\": \"" << polyphony::name(op.kind) << "\"";
    if (op.params.valid()) {
      const ParamGroup& params = program.params[op.params.value];
      text << ", \"module\": ";
      text.quoted(program.model.modules[params.module.value].name);
      write_layers(params.layers, text);
    }
    text << ", \"bytes\": " << op.bytes.value;
    const Group& group = program.groups[op.group.value];
    const auto ranks = static_cast<std::int64_t>(group.members.size());
    const Bytes part = op.bytes / ranks;
    write_moved(call_name(op.kind), op.kind == CollectiveKind::all_gather ? part : op.bytes,
                op.kind == CollectiveKind::reduce_scatter ? part : op.bytes);
    text << ", \"Group size\": " << ranks << ", \"Process Group Name\": \"" << op.group.value
         << "\", \"Process Group Description\": \"" << polyphony::name(group.kind) << "\"";
    if (ranks <= kMostListed) {
      const char* between = ", \"Process Group Ranks\": \"[";
      for (const Rank rank : group.members) {
        text << between << rank.value;
        between = ", ";
      }
      text << "]\"";
    }
  }
  void write_moved(const char* call, Bytes in, Bytes out) const {
    text << ", \"Collective name\": \"" << call << "\", \"In msg nelems\": " << in.value
         << ", \"Out msg nelems\": " << out.value << ", \"dtype\": \"Byte\"";
  }
  void operator()(const HostCopy& op) const {
    text << ", \"module\": ";
    text.quoted(program.model.modules[op.module.value].name);
    write_layers(op.layers, text);
    text << ", \"phase\": \"" << (op.to_host ? "offload" : "fetch")
         << "\", \"work\": " << op.work.value << ", \"bytes\": " << op.bytes.value;
  }
  void operator()(const Update& op) const {
    Bytes sum{};
    for (auto i = op.params.begin; i < op.params.end; ++i) sum += program.params[i].bytes;
    text << ", \"phase\": \"optimizer\", \"bytes\": " << sum.value;
  }
};

}  // namespace

std::string event_name(const Program& program, OpId op) {
  const auto& what = program.ops[op.value].what;
  std::string kernel;
  if (const auto* collective = std::get_if<Collective>(&what))
    kernel = kernel_name(collective->kind);
  if (std::holds_alternative<Exchange>(what)) kernel = "ncclDevKernel_SendRecv ";
  if (const auto* copy = std::get_if<HostCopy>(&what))
    kernel = copy->to_host ? "Memcpy DtoH (Device -> Pinned) " : "Memcpy HtoD (Pinned -> Device) ";
  return kernel + describe(program, op);
}

const char* event_category(const Op& op) {
  return std::holds_alternative<HostCopy>(op.what) ? "gpu_memcpy" : "kernel";
}

void write_args(const Program& program, const Op& op, JsonText& text) {
  std::visit(ArgsOf{program, text}, op.what);
}

}  // namespace polyphony::traces

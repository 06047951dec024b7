#include "shared/hardware/hardware_json.h"

#include <nlohmann/json.hpp>

#include "shared/hardware/certainty_json.h"
#include "shared/hardware/device_file_json.h"
#include "shared/hardware/device_json.h"
#include "shared/hardware/measured_layers_json.h"
#include "shared/hardware/parameter.h"
#include "shared/hardware/roofline.h"

namespace polyphony {
namespace {

// One table serves the reader, the writer and the checks.
struct NumberKey {
  const char* key;
  double HardwareProfile::* member;
  double low, high;
  const char* about;
};
struct TimeKey {
  const char* key;
  Seconds HardwareProfile::* member;
  Form (*form)(std::string example);
  const char* about;
};
constexpr double kLeastEfficiency = 1e-6;  // a smaller share of a peak is a typing error
constexpr double kLeastCorrection = 1e-3, kMostCorrection = 1e3;
constexpr double kMostTime =
    10;  // seconds, for latencies and overheads (shared/hardware/device_json.cpp)

constexpr NumberKey kNumbers[] = {
    {"gemm_efficiency", &HardwareProfile::gemm_efficiency, kLeastEfficiency, 1,
     "share of the peak that large GEMMs reach"},
    {"gemm_half_size", &HardwareProfile::gemm_half_size, 0, 1e6,
     "(m·n·k)^(1/3) of a GEMM that reaches half of gemm_efficiency; 0: all sizes reach the same"},
    {"grouped_efficiency", &HardwareProfile::grouped_efficiency, kLeastEfficiency, 1,
     "factor on gemm_efficiency for grouped GEMMs of experts"},
    {"attention_efficiency", &HardwareProfile::attention_efficiency, kLeastEfficiency, 1,
     "share of the peak that attention reaches forward, counting attending pairs only"},
    {"early_attention_efficiency", &HardwareProfile::early_attention_efficiency, kLeastEfficiency,
     1, "the same for attention kernels of the previous generation"},
    {"attention_backward", &HardwareProfile::attention_backward, kLeastEfficiency,
     kMostAttentionBackward, "factor on attention's forward efficiency in the backward pass"},
    {"attention_half_keys", &HardwareProfile::attention_half_keys, 0, 1e6,
     "keys per query at which attention reaches half of attention_efficiency; 0: all lengths reach "
     "the same"},
    {"memory_efficiency", &HardwareProfile::memory_efficiency, kLeastEfficiency, 1,
     "share of the memory rate that memory-bound kernels reach"},
    {"message_efficiency", &HardwareProfile::message_efficiency, kLeastEfficiency,
     kMostOfAssumedLink, "share of the node link's rate that messages reach"},
    {"collective_efficiency", &HardwareProfile::collective_efficiency, kLeastEfficiency,
     kMostOfAssumedLink, "share of the node link's rate that collectives reach"},
    {"in_switch_efficiency", &HardwareProfile::in_switch_efficiency, 0, 1,
     "share of the possible gain of all-reduces in the switch over a ring; 0: the switch does "
     "none"},
    {"fabric_efficiency", &HardwareProfile::fabric_efficiency, kLeastEfficiency, kMostOfAssumedLink,
     "share of the fabric link's rate that messages and collectives reach"},
    {"host_efficiency", &HardwareProfile::host_efficiency, kLeastEfficiency, 1,
     "share of the host link's rate that copies reach"},
    {"optimizer_bytes_efficiency", &HardwareProfile::optimizer_bytes_efficiency, kLeastEfficiency,
     1, "share of the memory rate that the optimizer reaches"},
    {"step_error", &HardwareProfile::step_error, 0, 10, "relative error of a predicted step time"},
};
constexpr TimeKey kTimes[] = {
    {"dispatch", &HardwareProfile::dispatch, overhead_form, "per kernel launch"},
    {"op_overhead", &HardwareProfile::op_overhead, overhead_form, "per compute op"},
    {"message_latency", &HardwareProfile::message_latency, latency_form, "per message"},
    {"collective_latency", &HardwareProfile::collective_latency, latency_form, "per ring hop"},
    {"host_latency", &HardwareProfile::host_latency, latency_form, "per copy to or from the host"},
    {"optimizer_overhead", &HardwareProfile::optimizer_overhead, overhead_form,
     "per optimizer step"},
};

struct StackKey {
  const char* key;
  double SoftwareStack::* member;
  double low, high;
  const char* about;
};
constexpr StackKey kStackNumbers[] = {
    {"traffic", &SoftwareStack::traffic, 0, 100, "factor on the bytes of memory-bound kernels"},
    {"launches", &SoftwareStack::launches, 0, 100,
     "factor on the launches of memory-bound kernels"},
    {"narrow_attention_backward", &SoftwareStack::narrow_attention_backward, 0, 1,
     "share of the peak that attention backward reaches with heads up to 64 wide; 0: as the "
     "profile states"},
    {"wide_attention_backward", &SoftwareStack::wide_attention_backward, 0, 1,
     "the same with wider heads"},
    {"gradient_bytes", &SoftwareStack::gradient_bytes, 0, 8,
     "bytes per element in a gradient reduction; 0: as this project's executor"},
    {"pipelined", &SoftwareStack::pipelined, 0, 1,
     "share of the other GEMMs that hides chunked tensor-parallel collectives"},
    {"tensor_overlap", &SoftwareStack::tensor_overlap, 0, 1,
     "share of column-parallel backward GEMMs that hides collectives"},
    {"overlap", &SoftwareStack::overlap, 0, 1,
     "share of a backward op that hides its gradient reduction"},
    {"taken_inside", &SoftwareStack::taken_inside, 0, 0.9,
     "share of the device that a collective inside a node takes from overlapped compute"},
    {"taken_between", &SoftwareStack::taken_between, 0, 0.9,
     "share of the device that a collective between nodes takes from overlapped compute"},
};

const std::string kStackPath = "stack.", kCorrectionsPath = "corrections.";

ObjectForm device_form() {
  return {"profile_device", "peak figures of the device", device_fields(), {}};
}

ObjectForm stack_form() {
  ObjectForm form{"software_stack", "what the software framework adds", {}, {}};
  form.fields.push_back({"name", text_form("fsdp"), "name of the stack", true});
  for (const StackKey& number : kStackNumbers)
    form.fields.push_back({number.key, number_form(number.low, number.high), number.about});
  form.fields.push_back({"host", overhead_form("8us"), "host time per kernel launch"});
  form.fields.push_back(
      {"routing", overhead_form("2ms"),
       "host wait per forward pass of an expert layer, for the number of tokens that arrive"});
  form.fields.push_back({"key_heads_a_launch", integer_form(0, 1 << 20),
                         "key heads per launch of attention forward; 0: all"});
  form.fields.push_back({"unfused", boolean_form(), "biases and dropout are separate kernels"});
  form.fields.push_back(
      {"eager_attention", boolean_form(), "attention scores are written to memory"});
  form.fields.push_back(
      {"masked_images", boolean_form(), "the images of a microbatch attend in one masked square"});
  form.fields.push_back(
      {"scattered_messages", boolean_form(),
       "tensor-parallel ranks send parts of the rows, and receivers gather them"});
  form.fields.push_back({"blocking_messages", boolean_form(),
                         "a stage continues only when the rows that it sent have arrived"});
  form.fields.push_back({"fused_experts", boolean_form(),
                         "the two GEMMs of the experts and what is between them are one kernel"});
  form.fields.push_back(
      {"one_copy", boolean_form(), "expert dispatch sends a token once per node and rank"});
  form.fields.push_back({"early_attention", boolean_form(),
                         "attention has flash kernels of the previous GPU generation"});
  form.fields.push_back({"matrix", choice_form(enum_names<NumberFormat>()),
                         "format of the blocks' GEMMs with weights"});
  return form;
}

SoftwareStack read_stack(const JsonValue& json) {
  SoftwareStack stack;
  json.read("name", stack.name);
  if (const SoftwareStack* shipped = find_stack(stack.name)) stack.memory = shipped->memory;
  for (const StackKey& number : kStackNumbers) json.read(number.key, stack.*number.member);
  json.read("host", stack.host);
  json.read("routing", stack.routing);
  json.read("key_heads_a_launch", stack.key_heads_a_launch);
  json.read("unfused", stack.unfused);
  json.read("eager_attention", stack.eager_attention);
  json.read("early_attention", stack.early_attention);
  json.read("masked_images", stack.masked_images);
  json.read("one_copy", stack.one_copy);
  json.read("fused_experts", stack.fused_experts);
  json.read("scattered_messages", stack.scattered_messages);
  json.read("blocking_messages", stack.blocking_messages);
  if (json.has("matrix")) stack.matrix = enum_named<NumberFormat>(json.at("matrix").text());
  return stack;
}

nlohmann::ordered_json write_stack(const SoftwareStack& stack) {
  nlohmann::ordered_json json = {{"name", stack.name}};
  for (const StackKey& number : kStackNumbers) json[number.key] = stack.*number.member;
  json["host"] = to_text(stack.host);
  json["routing"] = to_text(stack.routing);
  json["key_heads_a_launch"] = stack.key_heads_a_launch;
  json["unfused"] = stack.unfused;
  json["eager_attention"] = stack.eager_attention;
  json["early_attention"] = stack.early_attention;
  json["masked_images"] = stack.masked_images;
  json["one_copy"] = stack.one_copy;
  json["fused_experts"] = stack.fused_experts;
  json["scattered_messages"] = stack.scattered_messages;
  json["blocking_messages"] = stack.blocking_messages;
  if (stack.matrix) json["matrix"] = name(*stack.matrix);
  return json;
}

ObjectForm layer_corrections_form() {
  ObjectForm form{"layer_corrections", "measured ÷ modeled time by phase", {}, {}};
  for (const std::string& phase : enum_names<Phase>()) {
    form.fields.push_back(
        {phase, number_form(kLeastCorrection, kMostCorrection), "measured ÷ modeled time"});
  }
  return form;
}

ObjectForm corrections_form(const ObjectForm& by_phase) {
  ObjectForm form{"corrections", "measured ÷ modeled time by layer", {}, {}};
  for (const std::string& layer : enum_names<LayerKind>()) {
    form.fields.push_back({layer, object_form(by_phase), "corrections of this layer"});
  }
  return form;
}

const ObjectForm& layer_times_form() {
  static const ObjectForm form{
      "module_times", "measured times of layers by module", {}, {measured_layers_form()}};
  return form;
}

ObjectForm profile_form(const ObjectForm& device, const ObjectForm& stack,
                        const ObjectForm& corrections) {
  ObjectForm form{"profile", "a hardware profile", {}, {}};
  form.fields.push_back({"profile", integer_form(1, 1), "version of the format", true});
  form.fields.push_back({"name", text_form("my-node"), "name of the profile", true});
  form.fields.push_back({"software", text_form("torch 2.11"), "the software it is valid for"});
  form.fields.push_back(
      {"source", text_form("profiled 2026-11-21"), "where its numbers come from"});
  form.fields.push_back({"device", object_form(device), "the device it describes", true});
  for (const NumberKey& number : kNumbers) {
    form.fields.push_back({number.key, number_form(number.low, number.high), number.about});
  }
  for (const TimeKey& time : kTimes) {
    form.fields.push_back({time.key, time.form("3us"), time.about});
  }
  form.fields.push_back({"collectives", choice_form(enum_names<CollectiveLibrary>()),
                         "the library whose protocols collectives follow; gloo when absent"});
  form.fields.push_back(
      {"nccl", boolean_form(), "true: \"collectives\": \"nccl\"; of profiles of earlier versions"});
  form.fields.push_back(
      {"counts_on_device", boolean_form(), "expert dispatch does not make the host wait"});
  form.fields.push_back(
      {"products_wait", boolean_form(),
       "a GEMM loads its operands before its arithmetic instead of overlapping the two"});
  form.fields.push_back({"stack", object_form(stack), "what the software framework adds"});
  form.fields.push_back(
      {"corrections", object_form(corrections), "measured ÷ modeled times from calibration"});
  form.fields.push_back({"layer_times", object_form(layer_times_form()),
                         "measured times by module name, which replace those of the kernels"});
  form.fields.push_back({"certainty", object_form(certainty_form(parameter_keys())),
                         "how far the predictions can be trusted"});
  return form;
}

// Profiles of earlier versions have "nccl" instead of "collectives".
CollectiveLibrary read_library(const JsonValue& json) {
  if (json.has("collectives") && json.has("nccl"))
    json.refuse_at("nccl", "nccl must not be given together with collectives, which replaces it",
                   "keep \"collectives\" alone");
  if (json.has("collectives")) return enum_named<CollectiveLibrary>(json.at("collectives").text());
  bool nccl = false;
  json.read("nccl", nccl);
  return nccl ? CollectiveLibrary::nccl : CollectiveLibrary::gloo;
}

// Checks link efficiencies against the lower limit if the links are an accelerator's, whose rates
// come from data sheets.
void check_links(const JsonValue& json, CollectiveLibrary library) {
  if (library == CollectiveLibrary::gloo) return;
  for (const NumberKey& number : kNumbers) {
    if (number.high != kMostOfAssumedLink || !json.has(number.key)) continue;
    json.at(number.key).check(number_form(kLeastEfficiency, kMostOfLink));
  }
}

}  // namespace

bool set_number(HardwareProfile& profile, const std::string& key, double value) {
  for (const NumberKey& number : kNumbers)
    if (key == number.key) return profile.*number.member = value, true;
  for (const TimeKey& time : kTimes)
    if (key == time.key) return profile.*time.member = Seconds(value), true;
  return false;
}

bool set_number(SoftwareStack& stack, const std::string& key, double value) {
  for (const StackKey& number : kStackNumbers)
    if (key == number.key) return stack.*number.member = value, true;
  if (key == "host") return stack.host = Seconds(value), true;
  if (key == "routing") return stack.routing = Seconds(value), true;
  return false;
}

const std::vector<std::string>& parameter_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> list;
    for (const NumberKey& number : kNumbers)
      if (std::string(number.key) != "step_error") list.emplace_back(number.key);
    for (const TimeKey& time : kTimes) list.emplace_back(time.key);
    for (const StackKey& number : kStackNumbers) list.push_back(kStackPath + number.key);
    list.push_back(kStackPath + "host");
    for (const std::string& layer : enum_names<LayerKind>())
      for (const std::string& phase : enum_names<Phase>())
        list.push_back(kCorrectionsPath + layer + "." + phase);
    return list;
  }();
  return keys;
}

void scale_parameter(HardwareProfile& profile, const std::string& key, double factor) {
  for (const NumberKey& number : kNumbers)
    if (key == number.key) return void(profile.*number.member *= factor);
  for (const TimeKey& time : kTimes)
    if (key == time.key) return void(profile.*time.member *= factor);
  for (const StackKey& number : kStackNumbers)
    if (key == kStackPath + number.key) return void(profile.stack.*number.member *= factor);
  if (key == kStackPath + "host") return void(profile.stack.host *= factor);
  if (key == kStackPath + "routing") return void(profile.stack.routing *= factor);
  const std::size_t dot = key.rfind('.');
  POLYPHONY_CHECK(key.starts_with(kCorrectionsPath) && dot != std::string::npos, key);
  const std::string layer = key.substr(kCorrectionsPath.size(), dot - kCorrectionsPath.size());
  const auto where =
      std::pair(enum_named<LayerKind>(layer), enum_named<Phase>(key.substr(dot + 1)));
  profile.corrections.try_emplace(where, 1).first->second *= factor;
}

double parameter(const HardwareProfile& profile, const std::string& key) {
  for (const NumberKey& number : kNumbers)
    if (key == number.key) return profile.*number.member;
  for (const TimeKey& time : kTimes)
    if (key == time.key) return (profile.*time.member).count();
  for (const StackKey& number : kStackNumbers)
    if (key == kStackPath + number.key) return profile.stack.*number.member;
  if (key == kStackPath + "host") return profile.stack.host.count();
  HardwareProfile scaled = profile;  // a correction; scale_parameter() refuses an unknown key
  scale_parameter(scaled, key, 1);
  const std::size_t dot = key.rfind('.');
  const std::string layer = key.substr(kCorrectionsPath.size(), dot - kCorrectionsPath.size());
  return scaled.corrections.at(
      {enum_named<LayerKind>(layer), enum_named<Phase>(key.substr(dot + 1))});
}

ParameterRange parameter_range(const HardwareProfile& profile, const std::string& key) {
  for (const NumberKey& number : kNumbers)
    if (key == number.key)
      return {number.low,
              profile.collectives != CollectiveLibrary::gloo && number.high == kMostOfAssumedLink
                  ? kMostOfLink
                  : number.high};
  for (const StackKey& number : kStackNumbers)
    if (key == kStackPath + number.key) return {number.low, number.high};
  if (key.starts_with(kCorrectionsPath)) return {kLeastCorrection, kMostCorrection};
  return {0, kMostTime};
}

HardwareProfile parse_profile(const std::string& text, const std::string& file) {
  if (const auto device = own_device_in(text, file)) return roofline_profile(*device);
  const ObjectForm device = device_form(), by_phase = layer_corrections_form();
  const ObjectForm corrections = corrections_form(by_phase), stack = stack_form(),
                   form = profile_form(device, stack, corrections);
  const JsonValue json = JsonValue::parse(text, file);
  json.check(object_form(form));
  HardwareProfile profile;
  json.read("name", profile.name);
  json.read("software", profile.software);
  json.read("source", profile.source);
  profile.device = read_device(json.at("device"));
  for (const NumberKey& number : kNumbers) json.read(number.key, profile.*number.member);
  for (const TimeKey& time : kTimes) json.read(time.key, profile.*time.member);
  profile.collectives = read_library(json);
  json.read("counts_on_device", profile.counts_on_device);
  json.read("products_wait", profile.products_wait);
  check_links(json, profile.collectives);
  if (json.has("stack")) profile.stack = read_stack(json.at("stack"));
  if (json.has("corrections")) {
    const JsonValue layers_json = json.at("corrections");
    for (const std::string& layer : layers_json.keys()) {
      const JsonValue phases = layers_json.at(layer);
      for (const std::string& phase : phases.keys()) {
        profile.corrections[{enum_named<LayerKind>(layer), enum_named<Phase>(phase)}] =
            phases.at(phase).number();
      }
    }
  }
  if (json.has("layer_times"))
    for (const std::string& module : json.at("layer_times").keys())
      profile.layer_times[module] = read_measured_layers(json.at("layer_times").at(module));
  if (json.has("certainty")) profile.certainty = read_certainty(json.at("certainty"));
  return profile;
}

nlohmann::ordered_json json_value(const HardwareProfile& profile) {
  nlohmann::ordered_json json = {{"profile", 1},
                                 {"name", profile.name},
                                 {"software", profile.software},
                                 {"source", profile.source},
                                 {"device", json_value(profile.device)}};
  for (const NumberKey& number : kNumbers) json[number.key] = profile.*number.member;
  for (const TimeKey& time : kTimes) json[time.key] = to_text(profile.*time.member);
  json["collectives"] = name(profile.collectives);
  json["counts_on_device"] = profile.counts_on_device;
  json["products_wait"] = profile.products_wait;
  json["stack"] = write_stack(profile.stack);
  for (const auto& [where, factor] : profile.corrections) {
    json["corrections"][name(where.first)][name(where.second)] = factor;
  }
  for (const auto& [module, entries] : profile.layer_times)
    json["layer_times"][module] = json_value(entries);
  if (profile.certainty != Certainty{}) json["certainty"] = json_value(profile.certainty);
  return json;
}

std::string to_json(const HardwareProfile& profile) { return json_value(profile).dump(2) + "\n"; }

std::string readable_json(const HardwareProfile& profile, const std::string& file) {
  std::string text = to_json(profile);
  parse_profile(text, file);
  return text;
}

}  // namespace polyphony

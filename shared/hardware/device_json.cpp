#include "shared/hardware/device_json.h"

#include <nlohmann/json.hpp>

namespace polyphony {
namespace {

// Upper limits of one accelerator: the compute rate of a whole exaflop machine; five times the 21
// PB/s of a wafer's SRAM (Cerebras WSE-3 data sheet); ten times the memory of a large node.
Form compute_rate_form(std::string example) {
  return quantity_form(UnitKind::compute_rate, std::move(example), "1MFLOPS", "1000PFLOPS");
}
Form memory_rate_form() { return quantity_form(UnitKind::rate, "3350GBps", "1MBps", "100000TBps"); }
Form memory_form() { return quantity_form(UnitKind::bytes, "80GiB", "1kB", "1PB"); }

}  // namespace

// Light travels around the Earth in 0.13 s, so no link of a training cluster has a latency of 1 s.
Form latency_form(std::string example) {
  return quantity_form(UnitKind::time, std::move(example), "0s", "1s");
}
// Overheads of a launch, an op or an update: ten seconds is not a working host.
Form overhead_form(std::string example) {
  return quantity_form(UnitKind::time, std::move(example), "0s", "10s");
}
// From a modem's rate to a thousand times NVLink 5.
Form link_rate_form(std::string example) {
  return quantity_form(UnitKind::rate, std::move(example), "1kBps", "1000TBps");
}
// Upper limit: a rack of 72 accelerators draws 0.12 MW.
Form power_form(std::string example) {
  return quantity_form(UnitKind::power, std::move(example), "0W", "1MW");
}
// Upper limit: a whole cluster of ten thousand accelerators costs less.
Form price_form(std::string example) {
  return quantity_form(UnitKind::price, std::move(example), "0USD/GPUh", "100000USD/GPUh");
}

std::vector<Field> device_fields() {
  return {
      {"name", text_form("H100"), "name of the device", true},
      {"fp32", compute_rate_form("67TFLOPS"), "dense matrix peak in fp32", true},
      {"bf16", compute_rate_form("989TFLOPS"), "dense matrix peak in bf16; absent: not supported"},
      {"fp8", compute_rate_form("1979TFLOPS"), "dense matrix peak in fp8; absent: not supported"},
      {"nvfp4", compute_rate_form("9000TFLOPS"),
       "dense matrix peak in nvfp4; absent: not supported"},
      {"memory_rate", memory_rate_form(), "memory bandwidth", true},
      {"memory", memory_form(), "memory size", true},
      {"processors", integer_form(1, 1 << 20), "streaming multiprocessors; absent: unknown"}};
}

Device read_device(const JsonValue& json) {
  Device device;
  json.read("name", device.name);
  json.read("fp32", device.fp32);
  json.read("bf16", device.bf16);
  json.read("fp8", device.fp8);
  json.read("nvfp4", device.nvfp4);
  json.read("memory_rate", device.memory_rate);
  json.read("memory", device.memory);
  json.read("processors", device.processors);
  return device;
}

nlohmann::ordered_json json_value(const Device& device) {
  nlohmann::ordered_json json;
  json["name"] = device.name;
  json["fp32"] = to_text(device.fp32);
  if (device.bf16.value > 0) json["bf16"] = to_text(device.bf16);
  if (device.fp8.value > 0) json["fp8"] = to_text(device.fp8);
  if (device.nvfp4.value > 0) json["nvfp4"] = to_text(device.nvfp4);
  json["memory_rate"] = to_text(device.memory_rate);
  json["memory"] = to_text(device.memory);
  if (device.processors > 0) json["processors"] = device.processors;
  return json;
}

}  // namespace polyphony

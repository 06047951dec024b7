#include "shared/hardware/device_file_json.h"

#include "shared/hardware/device_json.h"
#include "shared/hardware/fit_json.h"

namespace polyphony {
namespace {

const ObjectForm& nodes_form() {
  static const ObjectForm form{"named_nodes",
                               "Number of accelerators of each product, by the name of its node",
                               {},
                               {integer_form(1, 1 << 16)}};
  return form;
}

JsonValue checked(JsonValue root) {
  if (root.is_object() && root.has("profile"))
    root.refuse("is a hardware profile, not a device",
                "name it at \"profile\" of the cluster, next to \"node\"");
  root.check(object_form(device_file_form()));
  return root;
}

// Joins the sentences of "source".
std::string read_source(const JsonValue& source) {
  if (source.is_text()) return source.text();
  std::string joined_text;
  const auto add = [&](const std::string& sentence) {
    joined_text += (joined_text.empty() ? "" : " ") + sentence;
  };
  for (const std::string& group : source.keys()) {
    const JsonValue sentences = source.at(group);
    if (sentences.is_text()) add(sentences.text());
    for (std::size_t i = 0; sentences.is_list() && i < sentences.size(); ++i)
      add(sentences.at(i).text());
  }
  return joined_text;
}

ShippedDevice read(const JsonValue& root) {
  ShippedDevice read;
  read.device = read_device(root);
  root.read("link", read.node_link.rate);
  root.read("link_latency", read.node_link.latency);
  root.read("peer_link", read.peer_link);
  root.read("nic", read.fabric_link.rate);
  root.read("nic_latency", read.fabric_link.latency);
  root.read("domain", read.domain);
  root.read("host_link", read.host_link.rate);
  root.read("host_latency", read.host_link.latency);
  root.read("host_memory_share", read.host_memory);
  if (root.has("busy_power")) read.busy_power = parse_power(root.at("busy_power").text());
  if (root.has("idle_power")) read.idle_power = parse_power(root.at("idle_power").text());
  if (root.has("source")) read.source = read_source(root.at("source"));
  if (root.has("nodes"))
    for (const std::string& name : root.at("nodes").keys())
      read.nodes.push_back({name, static_cast<int>(root.at("nodes").at(name).integer())});
  if (root.has("collectives"))
    read.collectives = enum_named<CollectiveLibrary>(root.at("collectives").text());
  if (!root.has("fit")) return read;
  const JsonValue fit = root.at("fit");
  if (fit.is_object()) {
    read.fit = read_fit(fit, read.device.name);
  } else if (const Fit* shipped = find_fit(fit.text())) {
    read.fit = *shipped;
  } else {
    fit.refuse("no fit \"" + fit.text() + "\" ships with the program",
               suggest(fit.text(), fit_names()) + ", or write its numbers: {\"rows\": …}");
  }
  return read;
}

ShippedDevice read_own(const JsonValue& root) {
  ShippedDevice own = read(root);
  if (find_device(own.device.name) != nullptr)
    root.refuse_at("name",
                   "the name of a device of your own must not be that of a shipped one (got \"" +
                       own.device.name + "\")",
                   "choose another, such as \"my-" + own.device.name + "\"");
  if (!own.nodes.empty())
    root.refuse_at("nodes", "nodes must not be given: only shipped devices have named nodes",
                   "write the number of accelerators at \"ranks\" of the scenario's node");
  if (own.fit && !own.fit->device.empty() && root.at("fit").is_object() &&
      find_device(own.fit->device) == nullptr)
    root.at("fit").refuse_at(
        "device", "no device \"" + own.fit->device + "\" ships with the program",
        suggest(own.fit->device, device_names()) + ", or remove the key for this device itself");
  own.file = root.file();
  return own;
}

}  // namespace

const ObjectForm& device_file_form() {
  static const ObjectForm groups =
      source_groups("device_source", {"figures", "fp32", "nvfp4", "memory", "links", "latencies",
                                      "host", "power", "nodes", "fit"});
  static const ObjectForm form = [] {
    ObjectForm made{"device_file", "An accelerator or CPU core, with its links", {}, {}};
    made.fields.push_back({"device", integer_form(1, 1), "version of the format", true});
    for (const Field& field : device_fields()) made.fields.push_back(field);
    const std::vector<Field> links = {
        {"link", link_rate_form("450GBps"),
         "rate of its link to the others of its node, in one direction"},
        {"link_latency", latency_form("0.94e-6s"),
         "latency of a transfer between accelerators of one node; 0 when absent"},
        {"peer_link", link_rate_form("64GBps"),
         "part of link that goes to each single other accelerator, where no switch joins them (a "
         "mesh); all of link when absent"},
        {"nic", link_rate_form("400Gbps"), "its share of its node's NICs, in one direction"},
        {"nic_latency", latency_form("5e-6s"),
         "latency of a transfer between nodes; 0 when absent"},
        {"domain", integer_form(1, 1 << 20),
         "number of accelerators that the link joins, if these are several nodes (NVL72: 72)"},
        {"host_link", link_rate_form("63GBps"),
         "rate of its link to the memory of its node, in one direction"},
        {"host_latency", latency_form("2us"),
         "latency of a transfer over host_link; 0 when absent"},
        {"host_memory_share", link_rate_form("76.8GBps"),
         "its share of the rate of its node's memory, reads and writes together; never the "
         "bottleneck when absent"},
        {"busy_power", power_form("700W"), "power while it computes; unknown when absent"},
        {"idle_power", power_form("210W"),
         "power while it waits or communicates; unknown when absent"},
        {"nodes", object_form(nodes_form()),
         "named nodes of it that scenarios may name; of shipped devices only"},
        {"collectives", choice_form({"nccl", "rccl"}),
         "the library that runs its collectives; nccl when absent"},
        {"fit", any_form({text_form("h100"), object_form(fit_form())}),
         "efficiencies of its kernels: the name of a shipped fit, or an object with its numbers; "
         "assumed, deliberately slow, when absent"},
        {"source", source_form(groups), "where the figures come from"}};
    made.fields.insert(made.fields.end(), links.begin(), links.end());
    return made;
  }();
  return form;
}

ShippedDevice read_device_file(const std::string& text, const std::string& file) {
  return read(checked(JsonValue::parse(text, file)));
}

ShippedDevice read_own_device(const std::string& text, const std::string& file) {
  return read_own(checked(JsonValue::parse(text, file)));
}

std::optional<ShippedDevice> own_device_in(const std::string& text, const std::string& file) {
  const JsonValue root = JsonValue::parse(text, file);
  if (!root.is_object() || !root.has("device") || !root.at("device").is_number())
    return std::nullopt;
  return read_own(checked(root));
}

}  // namespace polyphony

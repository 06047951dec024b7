#include <filesystem>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "shared/data/distribution_text.h"
#include "shared/form/module_fields.h"
#include "shared/form/search_fields.h"
#include "shared/goal/goal_json.h"
#include "shared/hardware/device_json.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/measured_layers_json.h"
#include "shared/scenario/learning_rate.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/text/quantity_text.h"

namespace polyphony {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson from_of(const Model& model, std::size_t m) {
  OrderedJson from = OrderedJson::array();
  for (const Edge& edge : model.edges) {
    if (edge.to != ModuleId(m)) continue;
    const Module& source = model.modules[edge.from.value];
    const bool whole = edge.from_layer < 0 || (model.modules[m].kind == ModuleKind::diffusion &&
                                               edge.from_layer == source.layers);
    if (edge.to_layer == 0 && whole) {
      from.push_back(source.name);
      continue;
    }
    OrderedJson entry = {{"module", source.name}};
    if (!whole) entry["from_layer"] = edge.from_layer;
    if (edge.to_layer > 0) entry["to_layer"] = edge.to_layer;
    from.push_back(entry);
  }
  return from.size() == 1 ? from.front() : from;
}

template <class T>
OrderedJson in_json(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return name(value);
  } else if constexpr (std::is_same_v<T, std::vector<Mixer>>) {
    OrderedJson names = OrderedJson::array();
    for (const Mixer mixer : value) names.push_back(name(mixer));
    return names;
  } else {
    return value;
  }
}

OrderedJson module_json(const Model& model, std::size_t m, NumberFormat precision) {
  const Module& module = model.modules[m];
  OrderedJson json;
  json["kind"] = name(module.kind);
  if (OrderedJson from = from_of(model, m); !from.empty()) json["from"] = from;
  json["train"] = name(module.trainable);
  if (module.kind == ModuleKind::projector) {
    if (module.source == ModuleKind::audio)
      json["merge"] = module.merge;
    else
      json["merge"] = std::to_string(module.merge) + "x" + std::to_string(module.merge);
    json["hidden"] = module.projector_hidden;
    return json;
  }
  if (module.abstract.is) {
    const std::int64_t element = size_of(precision).value;
    json["layers"] = module.layers;
    if (const int tokens = module.abstract.tokens + module.audio_tokens; tokens > 0)
      json["tokens"] = tokens;
    json["output"] = to_text(Bytes(element * module.hidden));
    json["kept"] = to_text(Bytes(module.abstract.kept));
    json["parameters"] = to_text(Bytes(element * module.abstract.parameters));
    return json;
  }
  for (const ModuleField& field : module_fields())
    if (field.is_of(module.kind) && (field.written == nullptr || field.written(module)))
      std::visit([&](auto member) { json[field.key] = in_json(module.*member); }, field.member);
  return json;
}

OrderedJson device_json(const Device& device) {
  const ShippedDevice* shipped = find_device(device.name);
  if (shipped != nullptr && shipped->device == device) return device.name;
  return json_value(device);
}

// Writes the keys of the topology that differ from those of a flat machine.
void put_topology(OrderedJson& json, const Cluster& cluster) {
  if (cluster.domain != default_domain(cluster.device.name, cluster.ranks_per_node))
    json["domain"] = cluster.domain_size();
  if (cluster.bus.rate.value > 0) json["bus"] = to_text(cluster.bus.rate);
  if (cluster.bus.latency.count() > 0) json["bus_latency"] = to_text(cluster.bus.latency);
  if (cluster.host_link.rate.value > 0 && cluster.bus.rate.value == 0)
    json["host_link"] = to_text(cluster.host_link.rate);
  if (cluster.host_link.latency.count() > 0)
    json["host_latency"] = to_text(cluster.host_link.latency);
  if (cluster.host_memory.value > 0) json["host_memory_rate"] = to_text(cluster.host_memory);
  if (cluster.nics > 0) json["nics"] = cluster.nics;
  if (cluster.connection.value > 0) json["connection"] = to_text(cluster.connection);
  if (cluster.leaf.nodes > 0)
    json["leaf"] = {{"nodes", cluster.leaf.nodes},
                    {"oversubscription", cluster.leaf.oversubscription},
                    {"rails", cluster.leaf.rails}};
  for (const Degraded& degraded : cluster.degraded) {
    OrderedJson entry = {{"rank", degraded.rank}};
    if (degraded.device != 1) entry["device"] = degraded.device;
    if (degraded.link != 1) entry["link"] = degraded.link;
    if (degraded.nic != 1) entry["nic"] = degraded.nic;
    if (degraded.nic_of) entry["nic_of"] = *degraded.nic_of;
    json["degraded"].push_back(entry);
  }
}

OrderedJson cluster_json(const Cluster& cluster) {
  OrderedJson json;
  json["node"]["device"] = device_json(cluster.device);
  json["node"]["ranks"] = cluster.ranks_per_node;
  json["node"]["link"] = to_text(cluster.node_link.rate);
  json["node"]["link_latency"] = to_text(cluster.node_link.latency);
  if (cluster.peer_link.value > 0) json["node"]["peer_link"] = to_text(cluster.peer_link);
  json["nodes"] = cluster.nodes;
  json["nic"] = to_text(cluster.fabric_link.rate);
  json["nic_latency"] = to_text(cluster.fabric_link.latency);
  if (cluster.free_links) json["free_links"] = true;
  put_topology(json, cluster);
  json["profile"] = cluster.profile;
  if (cluster.busy_power.value > 0) json["busy_power"] = to_text(cluster.busy_power);
  if (cluster.idle_power.value > 0) json["idle_power"] = to_text(cluster.idle_power);
  json["price"] = price_text(cluster.dollars_per_rank_hour);
  return json;
}

OrderedJson distribution_json(const Distribution& distribution) {
  if (distribution.kind == Distribution::Kind::constant)
    return static_cast<std::int64_t>(distribution.a);
  return to_text(distribution);
}

struct SourceJson {
  OrderedJson& data;
  void operator()(const SyntheticData& source) const {
    data["source"] = "synthetic";
    data["images"]["per_sample"] = distribution_json(source.images);
    if (source.image_sides != Distribution{})
      data["images"]["side"] = distribution_json(source.image_sides);
    data["text"]["tokens"] = distribution_json(source.text_tokens);
    const bool all = source.loss_tokens == constant(kAllTokens);
    data["text"]["loss_tokens"] = all ? OrderedJson("all") : distribution_json(source.loss_tokens);
    if (source.clip_tokens > 0) data["audio"]["per_sample"] = distribution_json(source.clips);
    if (source.latent_tokens > 0) data["latents"]["per_sample"] = distribution_json(source.latents);
  }
  void operator()(const RecordedData& source) const { data["source"]["recorded"] = source.path; }
  void operator()(const TextData& source) const {
    data["source"] = {{"text", source.path}, {"tokenizer", source.tokenizer}};
    if (!source.held_out.empty()) data["source"]["held_out"] = source.held_out;
  }
  void operator()(const TokenData& source) const {
    data["source"]["tokens"] = source.path;
    if (!source.held_out.empty()) data["source"]["held_out"] = source.held_out;
  }
  void operator()(const MixtureData& source) const {
    for (const MixturePart& part : source.parts) {
      OrderedJson one;
      std::visit(SourceJson{one}, part.source);
      one["source"]["weight"] = part.weight;
      data["source"]["mixture"].push_back(one["source"]);
    }
  }
  void operator()(const ConversationData& source) const {
    OrderedJson& json = data["source"];
    json = {{"dataset", source.path},
            {"tokenizer", source.tokenizer},
            {"template", name(source.chat)},
            {"too_long", name(source.too_long)},
            {"most_left_out", source.most_left_out}};
    if (!source.held_out.empty()) json["held_out"] = source.held_out;
    if (!source.images.empty()) json["images"] = source.images;
    if (!source.system.empty()) json["system"] = source.system;
  }
  void operator()(const EasyVqaData& source) const {
    if (source.path.empty()) {
      data["source"] = "easy-vqa";
    } else {
      data["source"]["easy-vqa"] = source.path;
    }
  }
};

OrderedJson data_json(const Data& data) {
  OrderedJson json;
  std::visit(SourceJson{json}, data.source);
  if (data.sequence > 0) json["sequence"] = data.sequence;
  json["global_batch"] = data.global_batch;
  json["seed"] = data.seed;
  if (!data.shuffle) json["shuffle"] = false;
  return json;
}

template <class Enum>
void put(OrderedJson& json, const char* key, const std::vector<Enum>& choices) {
  if (choices.empty()) {
    json[key] = "auto";
    return;
  }
  for (const Enum choice : choices) json[key].push_back(name(choice));
}
template <class Value>
  requires std::is_arithmetic_v<Value>
void put(OrderedJson& json, const char* key, const std::vector<Value>& choices) {
  json[key] = choices.empty() ? OrderedJson("auto") : OrderedJson(choices);
}

OrderedJson search_json(const Search& search, const Model& model) {
  OrderedJson json;
  visit_choices(search,
                [&](const char* key, const auto& list, const char*) { put(json, key, list); });
  if (search.memory_margin != kMemoryMargin) json["memory_margin"] = search.memory_margin;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (model.modules[m].kind == ModuleKind::projector) continue;
    OrderedJson& module = json[model.modules[m].name];
    visit_module_choices(search.modules[m], [&](const char* key, const auto& list, const char*) {
      put(module, key, list);
    });
  }
  return json;
}

OrderedJson training_json(const Training& training, const Model& model) {
  OrderedJson json;
  json["precision"] = name(training.precision);
  if (training.fp8 != Fp8Scaling::off) json["fp8"] = name(training.fp8);
  json["learning_rate"] = training.learning_rate;
  json["weight_decay"] = training.weight_decay;
  json["beta1"] = training.beta1;
  json["beta2"] = training.beta2;
  json["epsilon"] = training.epsilon;
  json["clip_norm"] = training.clip_norm;
  json["warmup_steps"] = training.warmup_steps;
  if (training.decay != RateDecay::constant) {
    json["decay"] = name(training.decay);
    json["min_learning_rate"] = training.min_learning_rate;
    json["decay_steps"] = decay_end(training);
    if (training.decay == RateDecay::wsd) json["wsd_decay_steps"] = wsd_decay(training);
  }
  for (std::size_t m = 0; m < training.rate_factors.size(); ++m)
    if (training.rate_factors[m] != 1)
      json["learning_rate_factors"][model.modules[m].name] = training.rate_factors[m];
  if (!training.software.empty()) json["software"] = training.software;
  json["steps"] = training.steps;
  json["seed"] = training.seed;
  return json;
}

// Calls `use` with every path of a data source, also with those that are empty.
template <class Use>
void visit_paths(decltype(Data::source)& source, const Use& use) {
  const auto of_part = [&]<class Source>(Source& data) {
    use(data.path);
    if constexpr (!std::is_same_v<Source, TokenData>) use(data.tokenizer);
    use(data.held_out);
    if constexpr (std::is_same_v<Source, ConversationData>) use(data.images);
  };
  if (auto* mixture = std::get_if<MixtureData>(&source))
    for (MixturePart& part : mixture->parts) std::visit(of_part, part.source);
  if (auto* recorded = std::get_if<RecordedData>(&source)) use(recorded->path);
  if (auto* easy_vqa = std::get_if<EasyVqaData>(&source)) use(easy_vqa->path);
  if (auto* text = std::get_if<TextData>(&source)) of_part(*text);
  if (auto* tokens = std::get_if<TokenData>(&source)) of_part(*tokens);
  if (auto* files = std::get_if<ConversationData>(&source)) of_part(*files);
}

}  // namespace

std::string resolved_text(const Device& device) { return json_value(device).dump(); }

OrderedJson json_value(const Scenario& scenario) {
  OrderedJson json;
  json["polyphony"] = 1;
  if (!scenario.about.empty()) json["about"] = scenario.about;
  if (!scenario.notes.empty()) json["notes"] = scenario.notes;
  for (std::size_t m = 0; m < scenario.model.modules.size(); ++m)
    json["model"][scenario.model.modules[m].name] =
        module_json(scenario.model, m, scenario.training.precision);
  for (std::size_t m = 0; m < scenario.weights.size(); ++m)
    if (const ModuleWeights& weights = scenario.weights[m]; !weights.type.empty()) {
      OrderedJson& own = json["model"][scenario.model.modules[m].name]["weights"];
      if (!weights.folder.empty()) own["folder"] = weights.folder;
      if (!weights.config.empty()) own["config"] = weights.config;
      own["model_type"] = weights.type;
    }
  for (const auto& [module, entries] : scenario.layer_times)
    json["model"][module]["layer_times"] = json_value(entries);
  json["cluster"] = cluster_json(scenario.cluster);
  json["data"] = data_json(scenario.data);
  if (scenario.layout)
    json["layout"] = json_value(*scenario.layout, scenario.model, scenario.planner_costs);
  if (scenario.search) json["search"] = search_json(*scenario.search, scenario.model);
  if (scenario.goal != Goal{}) json["goal"] = json_value(scenario.goal);
  json["training"] = training_json(scenario.training, scenario.model);
  return json;
}

std::string resolved_text(const Scenario& scenario) { return json_value(scenario).dump(2) + "\n"; }

std::string movable_text(Scenario scenario, const std::string& here) {
  const auto from_anywhere = [&](std::string& path) {
    if (!path.empty()) path = (std::filesystem::path(here) / path).lexically_normal().string();
  };
  visit_paths(scenario.data.source, from_anywhere);
  for (ModuleWeights& weights : scenario.weights) {
    from_anywhere(weights.folder);
    from_anywhere(weights.config);
  }
  if (is_profile_file(scenario.cluster.profile)) from_anywhere(scenario.cluster.profile);
  return resolved_text(scenario);
}

}  // namespace polyphony

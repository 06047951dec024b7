#include "shared/validate/validate.h"
#include "shared/scenario/image_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shared/data/distribution_text.h"
#include "shared/form/scenario_form.h"
#include "shared/hardware/devices.h"
#include "shared/model/data_modules.h"
#include "shared/validate/refusal.h"

namespace polyphony {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

void check_degraded(const Refusal& refuse, const Cluster& cluster) {
  const std::string at = "/cluster/degraded";  // in rising order here, perhaps not in the file
  for (const Degraded& degraded : cluster.degraded) {
    if (degraded.rank >= cluster.ranks())
      refuse(at, "the cluster has no rank " + number(degraded.rank),
             "its ranks are 0 to " + number(cluster.ranks() - 1));
    if (!degraded.nic_of) continue;
    const Rank own(static_cast<std::size_t>(degraded.rank)),
        other(static_cast<std::size_t>(*degraded.nic_of));
    if (*degraded.nic_of >= cluster.ranks() || cluster.node_of(own) != cluster.node_of(other))
      refuse(at,
             "rank " + number(*degraded.nic_of) + " is not in the node of rank " +
                 number(degraded.rank),
             "name a rank of the same node");
    const Degraded* neighbour = cluster.degraded_at(other);
    if (neighbour != nullptr && (neighbour->nic == 0 || neighbour->nic_of))
      refuse(at, "the NIC of rank " + number(*degraded.nic_of) + " has failed or is not used by it",
             "name a rank whose NIC is sound");
  }
}

void check_topology(const Refusal& refuse, const Cluster& cluster) {
  const int node = cluster.ranks_per_node, domain = cluster.domain_size();
  if (domain < 1 || (node % domain != 0 && domain % node != 0))
    refuse("/cluster/domain",
           "a domain of " + number(domain) + " does not fit nodes of " + number(node) + " ranks",
           "a divisor or a multiple of " + number(node));
  if (domain < node && cluster.bus.rate.value <= 0)
    refuse("/cluster/bus", "the node has several domains and nothing between them",
           "write the rate of its bus, such as \"31.5GBps\"");
  if (cluster.nics > 0 && node % cluster.nics != 0)
    refuse("/cluster/nics",
           number(cluster.nics) + " NICs are not shared evenly by " + number(node) + " ranks",
           "a divisor of " + number(node) + "; several per rank: one with their rates together");
  const int nics = cluster.nics > 0 ? cluster.nics : node;
  if (cluster.leaf.nodes > 0 && (cluster.leaf.rails < 1 || nics % cluster.leaf.rails != 0))
    refuse("/cluster/leaf/rails",
           number(cluster.leaf.rails) + " rails do not divide " + number(nics) + " NICs evenly",
           "a divisor of " + number(nics));
  check_degraded(refuse, cluster);
}

void check_cluster(const Refusal& refuse, const Cluster& cluster) {
  if (cluster.nodes < 1 || cluster.ranks_per_node < 1 ||
      std::int64_t{cluster.nodes} * cluster.ranks_per_node > kMostRanks)
    refuse("/cluster",
           number(cluster.nodes) + " nodes of " + number(cluster.ranks_per_node) +
               " ranks are out of range",
           "1 to " + number(kMostRanks) + " ranks altogether");
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  if (!positive(cluster.device.fp32.value))
    refuse("/cluster/node/device/fp32", "a rate of zero", "write its peak");
  if (!positive(cluster.device.memory_rate.value))
    refuse("/cluster/node/device/memory_rate", "a rate of zero", "write its peak");
  if (cluster.device.memory.value < 1)
    refuse("/cluster/node/device/memory", "a memory of zero", "write its size");
  if (cluster.ranks_per_node > 1 && !positive(cluster.node_link.rate.value))
    refuse("/cluster/node/link", "a rate of zero", "write the rate between accelerators of a node");
  if (cluster.nodes > 1 && !positive(cluster.fabric_link.rate.value))
    refuse("/cluster/nic", "a rate of zero", "write the rate per NIC between nodes");
  check_topology(refuse, cluster);
}

void check_image_sides(const Refusal& refuse, const Distribution& sides, const Model& model) {
  if (sides == Distribution{}) return;
  const char* const where = "/data/images/side";
  const Module* vision = vision_module(model);
  if (!vision)
    refuse(where, "the model has no vision module", "remove the key, or add a vision module");
  if (vision->abstract.is)
    refuse(where, vision->name + " is known by its times alone: its images have no pixels",
           "remove the key; recorded data may have images of other tokens");
  if (largest(sides) > vision->image_size)
    refuse(where,
           "up to " + number(largest(sides)) + " pixels, images of " + vision->name +
               " have at most " + number(vision->image_size),
           "smaller ones, or a larger model." + vision->name + ".image_size");
}

void check_synthetic(const Refusal& refuse, const SyntheticData& data, const Model& model,
                     int sequence) {
  constexpr std::int64_t kMostImages = 4096;
  const std::int64_t images = largest(data.images), text = largest(data.text_tokens);
  const bool sees_images = patches_per_image(model) > 0;
  if (images > 0 && !sees_images)
    refuse("/data/images", "the model has no vision module",
           "remove the key, or add a vision module");
  if (images > kMostImages)
    refuse("/data/images/per_sample", "up to " + number(images) + " images in a sample",
           "at most " + number(kMostImages));
  check_image_sides(refuse, data.image_sides, model);
  if (text < 1)
    refuse("/data/text/tokens", "a sample without text has nothing to predict", "at least 1 token");
  if (text > kMostTokens)
    refuse("/data/text/tokens", "up to " + number(text) + " tokens",
           "at most " + number(kMostTokens));
  if (largest(data.loss_tokens) < 1)
    refuse("/data/text/loss_tokens", "no token would carry a label: there is no loss",
           "at least 1, or \"all\"");
  if (largest(data.latents) > 0 && data.latent_tokens == 0)
    refuse("/data/latents", "the model has no diffusion module",
           "remove the key, or add a diffusion module");
  if (largest(data.latents) > 1)
    refuse("/data/latents/per_sample",
           "up to " + number(largest(data.latents)) + " latents in a sample",
           "0, 1, or \"uniform(0,1)\"");
  const std::int64_t clips = largest(data.clips);
  if (clips > 0 && data.clip_tokens == 0)
    refuse("/data/audio", "the model has no audio module",
           "remove the key, or add an audio module");
  if (clips > kMostImages)
    refuse("/data/audio/per_sample", "up to " + number(clips) + " clips in a sample",
           "at most " + number(kMostImages));
  const std::int64_t heard = clips * tokens_per_clip(model);
  const std::int64_t image_tokens = tokens_per_image(model, data);
  const std::int64_t longest = images * image_tokens + heard + text;
  if (sequence > 0 && longest > sequence)
    refuse("/data/sequence",
           number(images) + " images of " + number(image_tokens) + " tokens" +
               (heard > 0 ? ", " + number(heard) + " tokens of audio" : std::string()) + " and " +
               number(text) + " of text make " + number(longest) + ", more than " +
               number(sequence),
           "a sequence of " + number(longest) + ", fewer images, or less text");
}

void check_data(const Refusal& refuse, const Data& data, const Model& model) {
  if (data.global_batch < 1 || data.global_batch > kMostSamples)
    refuse("/data/global_batch", number(data.global_batch) + " samples a step",
           "1 to " + number(kMostSamples));
  if (data.sequence < 0) refuse("/data/sequence", "negative", "0: no limit");
  if (const auto* synthetic = std::get_if<SyntheticData>(&data.source))
    check_synthetic(refuse, *synthetic, model, data.sequence);
  if (!std::holds_alternative<EasyVqaData>(data.source)) return;
  // Without a vision module its questions are asked alone. Source: the package's README, 64×64
  // colour PNGs.
  for (const Module& module : model.modules) {
    const std::string where = "/model/" + module.name;
    if (module.kind == ModuleKind::audio || module.kind == ModuleKind::diffusion)
      refuse(where, std::string("easy-vqa has nothing for ") + name(module.kind) + " modules",
             "use synthetic or recorded data, or remove the module");
    if (module.kind != ModuleKind::vision) continue;
    if (module.image_size != 64)
      refuse(where + "/image_size", "easy-vqa has images of 64×64 pixels", "use 64");
    if (module.channels != 3)
      refuse(where + "/channels", "easy-vqa has three colour channels", "use 3");
  }
}

void check_training(const Refusal& refuse, const Training& t, const Device& device) {
  if (t.precision != NumberFormat::fp64 && t.precision != NumberFormat::fp32 &&
      t.precision != NumberFormat::bf16)
    refuse("/training/precision", std::string(name(t.precision)) + " is not supported yet",
           "use fp32, fp64 or bf16");
  if (!(peak(device, t.precision).value > 0))
    refuse("/training/precision", device.name + " has no peak in " + name(t.precision), "use fp32");
  const auto in = [](double value, double low, double high) {
    return value >= low && value < high;
  };  // refuses NaN as well
  constexpr double kHuge = std::numeric_limits<double>::infinity();
  if (!in(t.learning_rate, 0, kHuge))
    refuse("/training/learning_rate", "out of range", "0 or more, such as 3e-4");
  if (!in(t.weight_decay, 0, kHuge))
    refuse("/training/weight_decay", "out of range", "0 or more, such as 0.1");
  if (!in(t.beta1, 0, 1))
    refuse("/training/beta1", "out of range", "at least 0 and below 1, such as 0.9");
  if (!in(t.beta2, 0, 1))
    refuse("/training/beta2", "out of range", "at least 0 and below 1, such as 0.95");
  if (!(t.epsilon > 0)) refuse("/training/epsilon", "it must be above 0", "such as 1e-8");
  if (!in(t.clip_norm, 0, kHuge))
    refuse("/training/clip_norm", "out of range", "0 (no clipping) or more, such as 1");
  if (t.warmup_steps < 0) refuse("/training/warmup_steps", "negative", "0 or more");
  if (t.steps < 1)
    refuse("/training/steps", "nothing to do in " + number(t.steps) + " steps", "at least 1");
}

void check_goal(const Refusal& refuse, const Scenario& scenario) {
  const Goal& goal = scenario.goal;
  if (!goal.nodes.empty() && goal.nodes.back() > scenario.cluster.nodes)
    refuse("/goal/nodes",
           number(goal.nodes.back()) + " nodes, the cluster has " + number(scenario.cluster.nodes),
           "at most those");
  for (const Objective objective : goal.objectives) {
    if (objective == Objective::dollars && !(scenario.cluster.dollars_per_rank_hour > 0))
      refuse("/cluster", "key \"price\" is missing: the goal is dollars",
             "\"price\": \"2.5USD/GPUh\"");
    if (objective == Objective::p95 && constant_sizes(scenario.data))
      refuse("/goal/objective", "all samples have one size: every step takes as long",
             "\"step\", or data that vary");
  }
}

}  // namespace

void validate(const Scenario& scenario) {
  const Refusal refuse(scenario);
  validate_model(refuse, scenario.model);
  check_cluster(refuse, scenario.cluster);
  check_data(refuse, scenario.data, scenario.model);
  check_training(refuse, scenario.training, scenario.cluster.device);
  check_goal(refuse, scenario);
}

}  // namespace polyphony

#include "shared/validate/validate.h"
#include "shared/scenario/image_tokens.h"
#include "shared/text/number_text.h"

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

void check_degraded(const Refusal& refuse, const Cluster& cluster) {
  const std::string at = "/cluster/degraded";  // in rising order here, perhaps not in the file
  for (const Degraded& degraded : cluster.degraded) {
    if (degraded.rank >= cluster.ranks())
      refuse(at,
             "rank must be from 0 to " + number(cluster.ranks() - 1) + ", got " +
                 number(degraded.rank),
             "name a rank of the cluster");
    if (!degraded.nic_of) continue;
    const Rank own(static_cast<std::size_t>(degraded.rank)),
        other(static_cast<std::size_t>(*degraded.nic_of));
    if (*degraded.nic_of >= cluster.ranks() || cluster.node_of(own) != cluster.node_of(other))
      refuse(at,
             "nic_of must be a rank in the node of rank " + number(degraded.rank) + ", got " +
                 number(*degraded.nic_of),
             "name a rank of the same node");
    const Degraded* neighbor = cluster.degraded_at(other);
    if (neighbor != nullptr && (neighbor->nic == 0 || neighbor->nic_of))
      refuse(at,
             "nic_of names rank " + number(*degraded.nic_of) +
                 ", whose own NIC has failed or which uses another NIC",
             "name a rank whose NIC works");
  }
}

void check_topology(const Refusal& refuse, const Cluster& cluster) {
  const int node = cluster.ranks_per_node, domain = cluster.domain_size();
  if (domain < 1 || (node % domain != 0 && domain % node != 0))
    refuse("/cluster/domain",
           "domain must be a divisor or a multiple of the " + number(node) +
               " ranks of a node, got " + number(domain),
           "remove the key for one domain per node");
  if (domain < node && cluster.bus.rate.value <= 0)
    refuse("/cluster/bus", "key \"bus\" is missing: a node has several domains",
           "write the rate of the bus between them, such as \"31.5GBps\"");
  if (cluster.nics > 0 && node % cluster.nics != 0)
    refuse("/cluster/nics",
           "nics must be a divisor of the " + number(node) + " ranks of a node, got " +
               number(cluster.nics),
           "if a rank has several NICs, write one with the sum of their rates");
  const int nics = cluster.nics > 0 ? cluster.nics : node;
  if (cluster.leaf.nodes > 0 && (cluster.leaf.rails < 1 || nics % cluster.leaf.rails != 0))
    refuse("/cluster/leaf/rails",
           "rails must be a divisor of the " + number(nics) + " NICs of a node, got " +
               number(cluster.leaf.rails),
           "NIC i of a node is on leaf switch i mod rails");
  check_degraded(refuse, cluster);
}

void check_cluster(const Refusal& refuse, const Cluster& cluster) {
  if (cluster.nodes < 1 || cluster.ranks_per_node < 1 ||
      std::int64_t{cluster.nodes} * cluster.ranks_per_node > kMostRanks)
    refuse("/cluster",
           "the cluster must have 1 to " + number(kMostRanks) + " ranks, got " +
               number(cluster.nodes) + " nodes of " + number(cluster.ranks_per_node),
           "change \"nodes\", or the ranks of a node");
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  if (!positive(cluster.device.fp32.value))
    refuse("/cluster/node/device/fp32", "fp32 must be above 0",
           "write the peak rate of the device, such as \"67TFLOPS\"");
  if (!positive(cluster.device.memory_rate.value))
    refuse("/cluster/node/device/memory_rate", "memory_rate must be above 0",
           "write the peak rate of its memory, such as \"3.35TBps\"");
  if (cluster.device.memory.value < 1)
    refuse("/cluster/node/device/memory", "memory must be above 0",
           "write the size of its memory, such as \"80GiB\"");
  if (cluster.ranks_per_node > 1 && !positive(cluster.node_link.rate.value))
    refuse("/cluster/node/link", "link must be above 0",
           "write the rate between accelerators of a node, such as \"450GBps\"");
  if (cluster.peer_link.value > cluster.node_link.rate.value)
    refuse("/cluster/node/peer_link", "peer_link must be at most link, of which it is a part",
           "write the rate to a single other accelerator, such as \"64GBps\"");
  if (cluster.nodes > 1 && !positive(cluster.fabric_link.rate.value))
    refuse("/cluster/nic", "nic must be above 0",
           "write the rate of a NIC between nodes, such as \"400Gbps\"");
  check_topology(refuse, cluster);
}

void check_image_sides(const Refusal& refuse, const Distribution& sides, const Model& model) {
  if (sides == Distribution{}) return;
  const char* const where = "/data/images/side";
  const Module* vision = vision_module(model);
  if (!vision)
    refuse(where, "the model has no vision module", "remove the key, or add a vision module");
  if (vision->abstract.is)
    refuse(where,
           "side must not be given: " + vision->name + " is abstract, so its images have no pixels",
           "remove the key; recorded data can have images of various numbers of tokens");
  if (largest(sides) > vision->image_size)
    refuse(where,
           "side must be at most " + number(vision->image_size) + " pixels, the image_size of " +
               vision->name + ", got up to " + number(largest(sides)),
           "use smaller images, or a larger model." + vision->name + ".image_size");
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
    refuse("/data/images/per_sample",
           "per_sample must be at most " + number(kMostImages) + ", got up to " + number(images),
           "use fewer images per sample");
  check_image_sides(refuse, data.image_sides, model);
  if (text < 1)
    refuse("/data/text/tokens", "tokens must be at least 1, got " + number(text),
           "every sample needs text to predict");
  if (text > kMostTokens)
    refuse("/data/text/tokens",
           "tokens must be at most " + number(kMostTokens) + ", got up to " + number(text),
           "use fewer tokens per sample");
  if (largest(data.loss_tokens) < 1)
    refuse("/data/text/loss_tokens",
           "loss_tokens must be at least 1: without labels there is no loss",
           "write a number, or \"all\"");
  if (largest(data.latents) > 0 && data.latent_tokens == 0)
    refuse("/data/latents", "the model has no diffusion module",
           "remove the key, or add a diffusion module");
  if (largest(data.latents) > 1)
    refuse("/data/latents/per_sample",
           "per_sample must be at most 1, got up to " + number(largest(data.latents)),
           "write 0, 1, or \"uniform(0,1)\"");
  const std::int64_t clips = largest(data.clips);
  if (clips > 0 && data.clip_tokens == 0)
    refuse("/data/audio", "the model has no audio module",
           "remove the key, or add an audio module");
  if (clips > kMostImages)
    refuse("/data/audio/per_sample",
           "per_sample must be at most " + number(kMostImages) + ", got up to " + number(clips),
           "use fewer clips per sample");
  const std::int64_t audio = clips * tokens_per_clip(model);
  const std::int64_t image_tokens = tokens_per_image(model, data);
  const std::int64_t longest = images * image_tokens + audio + text;
  if (sequence > 0 && longest > sequence)
    refuse("/data/sequence",
           "sequence must be at least " + number(longest) + " tokens, got " + number(sequence) +
               ": a sample has up to " + number(images) + " images of " + number(image_tokens) +
               " tokens" + (audio > 0 ? ", " + number(audio) + " tokens of audio" : std::string()) +
               " and " + number(text) + " of text",
           "use a longer sequence, fewer images, or less text");
}

void check_data(const Refusal& refuse, const Data& data, const Model& model) {
  if (data.global_batch < 1 || data.global_batch > kMostSamples)
    refuse("/data/global_batch",
           "global_batch must be from 1 to " + number(kMostSamples) + ", got " +
               number(data.global_batch),
           "it is the number of samples per step");
  if (data.sequence < 0)
    refuse("/data/sequence", "sequence must be at least 0, got " + number(data.sequence),
           "0: no limit");
  if (const auto* synthetic = std::get_if<SyntheticData>(&data.source))
    check_synthetic(refuse, *synthetic, model, data.sequence);
  if (!std::holds_alternative<EasyVqaData>(data.source)) return;
  // Without a vision module, samples have the question alone. Source: the package's README, 64×64
  // color PNGs.
  for (const Module& module : model.modules) {
    const std::string where = "/model/" + module.name;
    if (module.kind == ModuleKind::audio || module.kind == ModuleKind::diffusion)
      refuse(where, std::string("easy-vqa has no data for ") + name(module.kind) + " modules",
             "use synthetic or recorded data, or remove the module");
    if (module.kind != ModuleKind::vision) continue;
    if (module.image_size != 64)
      refuse(where + "/image_size",
             "image_size must be 64, got " + number(module.image_size) +
                 ": images of easy-vqa have 64×64 pixels",
             "use 64");
    if (module.channels != 3)
      refuse(where + "/channels",
             "channels must be 3, got " + number(module.channels) +
                 ": images of easy-vqa have three color channels",
             "use 3");
  }
}

void check_training(const Refusal& refuse, const Training& t, const Device& device) {
  if (t.precision != NumberFormat::fp64 && t.precision != NumberFormat::fp32 &&
      t.precision != NumberFormat::bf16)
    refuse("/training/precision", std::string(name(t.precision)) + " is not supported yet",
           t.precision == NumberFormat::fp8
               ? "use \"precision\": \"bf16\" with \"fp8\": \"tensorwise\" or \"rowwise\""
               : "use bf16, fp32 or fp64");
  if (!(peak(device, t.precision).value > 0))
    refuse("/training/precision", device.name + " has no peak rate in " + name(t.precision),
           "use fp32, or give the device's peak rate");
  if (t.fp8 != Fp8Scaling::off && t.precision != NumberFormat::bf16)
    refuse("/training/fp8",
           std::string("fp8 must be used with precision bf16 (got ") + name(t.precision) + ")",
           "add \"precision\": \"bf16\", or remove fp8");
  const auto in = [](double value, double low, double high) {
    return value >= low && value < high;
  };  // refuses NaN as well
  constexpr double kHuge = std::numeric_limits<double>::infinity();
  if (!in(t.learning_rate, 0, kHuge))
    refuse("/training/learning_rate", "learning_rate must be at least 0", "such as 3e-4");
  if (!in(t.weight_decay, 0, kHuge))
    refuse("/training/weight_decay", "weight_decay must be at least 0", "such as 0.1");
  if (!in(t.beta1, 0, 1))
    refuse("/training/beta1", "beta1 must be at least 0 and below 1", "such as 0.9");
  if (!in(t.beta2, 0, 1))
    refuse("/training/beta2", "beta2 must be at least 0 and below 1", "such as 0.95");
  if (!(t.epsilon > 0)) refuse("/training/epsilon", "epsilon must be above 0", "such as 1e-8");
  if (!in(t.clip_norm, 0, kHuge))
    refuse("/training/clip_norm", "clip_norm must be at least 0", "0: no clipping; such as 1");
  if (t.warmup_steps < 0)
    refuse("/training/warmup_steps",
           "warmup_steps must be at least 0, got " + number(t.warmup_steps), "0: no warm-up");
  if (!in(t.min_learning_rate, 0, kHuge) || t.min_learning_rate > t.learning_rate)
    refuse("/training/min_learning_rate",
           "min_learning_rate must be at least 0 and at most learning_rate", "such as 3e-5");
  if (t.decay_steps != 0 && t.decay_steps <= t.warmup_steps)
    refuse("/training/decay_steps",
           "decay_steps must be more than warmup_steps, " + number(t.warmup_steps) + ", got " +
               number(t.decay_steps),
           "it counts the warm-up, too");
  if (t.wsd_decay_steps < 0)
    refuse("/training/wsd_decay_steps", "wsd_decay_steps must be at least 1",
           "it is the number of steps of the decay");
  for (const double factor : t.rate_factors)
    if (!in(factor, 0, kHuge))
      refuse("/training/learning_rate_factors", "factors must be at least 0", "such as 0.1");
  if (t.steps < 1)
    refuse("/training/steps", "steps must be at least 1, got " + number(t.steps),
           "it is the number of training steps");
}

void check_goal(const Refusal& refuse, const Scenario& scenario) {
  const Goal& goal = scenario.goal;
  if (!goal.nodes.empty() && goal.nodes.back() > scenario.cluster.nodes)
    refuse("/goal/nodes",
           "nodes must be at most " + number(scenario.cluster.nodes) +
               ", the nodes of the cluster, got " + number(goal.nodes.back()),
           "use fewer nodes, or a larger cluster");
  for (const Objective objective : goal.objectives) {
    if (objective == Objective::dollars && !(scenario.cluster.dollars_per_rank_hour > 0))
      refuse("/cluster", "key \"price\" is missing: the goal is dollars",
             "write \"price\": \"2.5USD/GPUh\"");
    if (objective == Objective::p95 && constant_sizes(scenario.data))
      refuse("/goal/objective", "p95 needs data that vary: all samples have the same size",
             "use the objective \"step\", or a distribution in \"data\"");
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

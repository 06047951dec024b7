// polyphony-worker: one rank of a training run, of a run with emulated compute, or of the machine's
// microbenchmarks. Started by `polyphony run`, torchrun --no-python, srun or mpirun.
#include <csignal>
#include <cstdio>
#include <cxxopts.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "exec/attention_calls/kernel_choice.h"
#include "exec/autograd/in_order.h"
#include "exec/data/dataset.h"
#include "exec/device/device.h"
#include "exec/system/launch_env.h"
#include "exec/system/process.h"
#include "exec/system/stop_signals.h"
#include "exec/transport/limited.h"
#include "exec/wire/liveness.h"
#include "exec/worker/device_support.h"
#include "exec/worker/microbench.h"
#include "exec/worker/prepare.h"
#include "exec/worker/train_options.h"
#include "shared/checkpoint/phase_end_json.h"
#include "shared/files/whole.h"
#include "shared/scenario_io/easy_vqa.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/text/figure_text.h"

namespace polyphony::exec {
namespace {

constexpr const char* kExample = R"(
Runs one rank of the layout in SCENARIO: the same Program that `polyphony simulate` simulates. Start
every rank with the same arguments. A rank reads its number from --rank and --world-size, or from
the variables of torchrun, Slurm, Open MPI or PMI.

Examples
  polyphony run scenarios/easy_vqa.json            starts local ranks
  polyphony-worker one_rank.json --steps 5         a layout of one rank needs no launcher
  torchrun --no-python --standalone --nproc-per-node 2 \
    polyphony-worker scenarios/easy_vqa.json --out runs/a
  srun -n 16 polyphony-worker scenario.json --out runs/b --resume

On Ctrl-C or SIGTERM the ranks save a checkpoint and stop; before the first step, or on a second
signal, a rank ends at once.
Exit codes: 0 done, 1 failed (a lost rank is named) or stopped, 2 bad input, 3 the layout cannot run
here.
)";

cxxopts::Options make_options() {
  cxxopts::Options options("polyphony-worker", "One rank of a training run.");
  options.positional_help("SCENARIO").custom_help("[OPTION...]");
  options.add_options()("h,help", "print this text")("version",
                                                     "print which devices this build supports")(
      "scenario", "scenario file with a layout", cxxopts::value<std::string>())(
      "out", "folder for metrics, traces and checkpoints; without it nothing is written",
      cxxopts::value<std::string>()->default_value(""))(
      "steps", "train until this step; default: training.steps of the scenario",
      cxxopts::value<std::int64_t>())("resume", "continue from the newest checkpoint in --out")(
      "auto-resume",
      "continue the run in --out if there is one, else begin it: for scripts that restart")(
      "fresh", "remove an earlier run in --out first")(
      "phase", "phase of a SCENARIO with phases", cxxopts::value<std::string>()->default_value(""))(
      "weights-from",
      "folder of a run: begin with the parameters of its newest checkpoint, unless this run "
      "resumes",
      cxxopts::value<std::string>()->default_value(""))(
      "checkpoint-every", "seconds between checkpoints; 0: only at the end",
      cxxopts::value<double>()->default_value("60"))(
      "keep-checkpoints", "number of newest checkpoints that stay; 0: none is written",
      cxxopts::value<int>()->default_value("2"))(
      "keep-best", "keep also the checkpoint with the least held-out loss")(
      "wait-for-checkpoints", "training waits while a checkpoint is written; no copies are made")(
      "evaluate-every", "steps between evaluations on held-out samples; 0: never",
      cxxopts::value<std::int64_t>()->default_value("0"))(
      "evaluate-samples", "held-out samples per evaluation; 0: all",
      cxxopts::value<int>()->default_value("0"))(
      "save-answers", "write what the last evaluation predicts to answers.jsonl in --out")(
      "stop-accuracy", "stop when an evaluation reaches this share of correct answers; 0: never",
      cxxopts::value<double>()->default_value("0"))(
      "stop-patience",
      "stop after so many evaluations in a row without a lower held-out loss; 0: never",
      cxxopts::value<int>()->default_value("0"))(
      "spikes",
      "what follows when a step's loss or gradient norm jumps: ignore; skip: leave the update out; "
      "rewind: back to a checkpoint, and on with the samples after that step; stop",
      cxxopts::value<std::string>()->default_value("ignore"))(
      "spike-loss", "factor on the median loss above which a step is a spike; 0: not judged",
      cxxopts::value<double>()->default_value("2"))(
      "spike-norm", "the same for the gradient norm before clipping",
      cxxopts::value<double>()->default_value("4"))("spike-window",
                                                    "number of the steps whose median it is",
                                                    cxxopts::value<int>()->default_value("64"))(
      "non-finite", "what follows when a step has non-finite values: skip, rewind or stop",
      cxxopts::value<std::string>()->default_value("skip"))(
      "max-skips", "stop after so many skipped steps in a row; 0: never",
      cxxopts::value<int>()->default_value("100"))("max-rewinds",
                                                   "stop at a bad step after so many rewinds",
                                                   cxxopts::value<int>()->default_value("3"))(
      "rewind-every", "steps between the checkpoints to which the run rewinds",
      cxxopts::value<std::int64_t>()->default_value("100"))(
      "trace-steps", "steps to record, FIRST:LAST (LAST excluded)",
      cxxopts::value<std::string>()->default_value(""))(
      "kineto",
      "steps to record with Kineto, PyTorch's profiler: STEP or FIRST:LAST, several by commas; in "
      "OUT/kineto",
      cxxopts::value<std::string>()->default_value(""))(
      "planning",
      "for a layout with a planner: inline: every rank plans before each step; live: rank 0 plans "
      "while earlier steps train; replay: use the plans of --plans",
      cxxopts::value<std::string>()->default_value("inline"))(
      "planning-seconds", "with --planning live: time to make a plan, in seconds",
      cxxopts::value<double>()->default_value("1"))(
      "plans", "file of plans: --planning live writes it, replay reads it",
      cxxopts::value<std::string>()->default_value(""))(
      "pace",
      "emulated compute: compute ops take as long as this hardware profile (name or file) predicts",
      cxxopts::value<std::string>()->default_value(""))(
      "pace-scale", "factor on the times of --pace", cxxopts::value<double>()->default_value("1"))(
      "send-rate", "limit of this rank's send rate, e.g. 100MBps, to try the effect of a slow link",
      cxxopts::value<std::string>()->default_value(""))(
      "data", "folder of downloaded data sets; default: the set-up cache",
      cxxopts::value<std::string>()->default_value(""))(
      "device", "cuda or cpu; default: cuda if this build and this machine support it",
      cxxopts::value<std::string>()->default_value(""))(
      "deterministic",
      "on GPUs: sum over ranks, and gradients of attention, embeddings and positions, in a fixed "
      "order, for bitwise reproducible results; slower")(
      "attention",
      "on GPUs: auto: cuDNN's attention kernel for equal lengths, where it is faster, else "
      "FlashAttention-2; flash: always that",
      cxxopts::value<std::string>()->default_value("auto"))(
      "nvtx", "on GPUs: mark ops as NVTX ranges for Nsight Systems")(
      "check", "check the collectives inside every op against the predicted ones")(
      "microbench", "measure this machine instead of training; no SCENARIO")(
      "rank", "number of this rank", cxxopts::value<int>())("world-size", "number of ranks",
                                                            cxxopts::value<int>())(
      "master", "HOST:PORT of the rendezvous", cxxopts::value<std::string>());
  options.parse_positional({"scenario"});
  return options;
}

LaunchFlags launch_flags(const cxxopts::ParseResult& args) {
  LaunchFlags flags;
  if (args.count("rank")) flags.rank = args["rank"].as<int>();
  if (args.count("world-size")) flags.world_size = args["world-size"].as<int>();
  if (args.count("master")) {
    const std::string master = args["master"].as<std::string>();
    const std::size_t colon = master.rfind(':');
    if (colon == std::string::npos)
      throw InputError("--master", "", "\"" + master + "\" has no port", "write HOST:PORT");
    flags.master_address = master.substr(0, colon);
    try {
      flags.master_port = std::stoi(master.substr(colon + 1));
    } catch (const std::exception&) {
      throw InputError("--master", "", "\"" + master.substr(colon + 1) + "\" is not a port",
                       "write HOST:PORT");
    }
  }
  return flags;
}

// Exits at once. LibTorch's threads may still run, and destructors would wait for them.
[[noreturn]] void leave(const std::exception& error, ExitCode code) {
  give_way_to_signal();
  std::cerr << error.what() << std::endl;
  std::_Exit(static_cast<int>(code));
}

// Exits with the message and code of the exception that is being handled.
[[noreturn]] void leave_with_rank(Rank rank) {
  try {
    throw;
  } catch (const LostPeer& loss) {
    give_way_to_signal();
    leave_after(loss, rank);
  } catch (const InputError& error) {
    leave(std::runtime_error(error.command_line()), ExitCode::bad_input);
  } catch (const std::exception& error) {
    leave(error, ExitCode::failed);
  }
}

std::unique_ptr<Transport> connect_or_leave(const LaunchEnv& launch, torch::Device device,
                                            bool in_order = false) {
  try {
    return connect(launch, device, in_order);
  } catch (...) {
    leave_with_rank(launch.rank);
  }
}

// During its lifetime, a signal that ends this rank also informs the other ranks.
class AbortOnSignal {
 public:
  explicit AbortOnSignal(Transport& transport) {
    tell_peers_by([&transport](const std::string& reason) { transport.abort(reason); });
  }
  ~AbortOnSignal() {
    tell_peers_by({});
    give_way_to_signal();
  }
  AbortOnSignal(const AbortOnSignal&) = delete;
  AbortOnSignal& operator=(const AbortOnSignal&) = delete;
};

// Prints the memory in use compared with the prediction. What is reserved beyond that is kept by
// the allocator, fragmented or not.
void print_memory(const DeviceMemory& memory, Bytes foreseen, const LaunchEnv& launch) {
  std::cerr << "polyphony-worker: rank " << launch.rank.value << ": peak GPU memory "
            << bytes_text(memory.used)
            << " in use (predicted for the first step: " << bytes_text(foreseen) << "), "
            << bytes_text(memory.held) << " reserved in " << memory.segments << " segments"
            << std::endl;
}

// Prints on rank 0 which GPU is used, or how one could be used.
void print_device(const DeviceFound& found) {
  const DeviceSupport support = support_of_build();
  const auto print = [](const std::string& text) {
    if (!text.empty()) std::cerr << "polyphony-worker: " + text + "\n" << std::flush;
  };
  if (!found.gpu.empty())
    print("rank 0 on " + found.gpu + "; " + in_words(support) + "; " + found.attention);
  print(advice(found, support));
}

// Sets which kernels this process may use.
void choose_kernels(const cxxopts::ParseResult& args) {
  keep_order(args.count("deterministic") > 0);
  const std::string attention = args["attention"].as<std::string>();
  if (attention != "auto" && attention != "flash")
    throw InputError("--attention", "", "\"" + attention + "\" is no choice of kernels",
                     "write auto or flash");
  allow_cudnn(attention == "auto");
}

int train_scenario(const cxxopts::ParseResult& args, const LaunchEnv& launch) {
  choose_kernels(args);
  const std::string wish = args["device"].as<std::string>();
  const torch::Device device = choose_device(wish, launch);
  const DeviceFound computes_on = found(device, wish);
  if (launch.rank == Rank(0)) print_device(computes_on);
  const std::string data_path = args["data"].as<std::string>();
  const auto outcome =
      prepare(args["scenario"].as<std::string>(), read_file, launch,
              data_path.empty() ? download_folder(process_environment()) : data_path,
              memory_per_rank(device, launch) - (device.is_cpu() ? Bytes(0) : kRunAhead),
              resumes(args) ? RunPaths{args["out"].as<std::string>()}.checkpoints() : "",
              args["phase"].as<std::string>());
  if (const auto* no = std::get_if<Infeasible>(&outcome)) {
    std::cerr << no->reason << std::endl;
    return static_cast<int>(ExitCode::infeasible);
  }
  const Prepared& prepared = std::get<Prepared>(outcome);
  require_fp8(computes_on, support_of_build(), prepared.scenario);
  if (const std::string remarks = prepared.dataset->remarks();
      launch.rank == Rank(0) && !remarks.empty())
    std::cerr << remarks << std::endl;
  const Scenario& scenario = prepared.scenario;
  const Layout& layout = *scenario.layout;
  TrainOptions options = train_options(args, scenario, launch.rank);
  options.device = device;
  options.ranks_of_host = launch.local_world_size;
  if (options.ranges && device.is_cpu())
    throw InputError("--nvtx", "", "needs a GPU, but this rank runs on a CPU",
                     "omit it; --trace-steps records ops on CPUs, too");
  if (options.planner == Planner::live) {
    if (const auto no = check_late_plan(prepared, args["scenario"].as<std::string>())) {
      std::cerr << no->reason << std::endl;
      return static_cast<int>(ExitCode::infeasible);
    }
    options.live.too_large = [&prepared](const Program& program) {
      return prepared.room.too_small_for(program);
    };
  }
  if (!options.kineto.empty() && device.is_cpu()) quieten_kineto();
  std::unique_ptr<Transport> transport =
      connect_or_leave(launch, device, args.count("deterministic") > 0);
  if (options.send_rate)
    transport = std::make_unique<LimitedTransport>(std::move(transport), *options.send_rate);
  const AbortOnSignal abort_on_signal(*transport);
  try {
    const TrainResult result =
        train(*transport, scenario, layout, prepared.plan, *prepared.dataset, options);
    all_saved();
    if (result.memory) print_memory(*result.memory, prepared.need[launch.rank.value].peak, launch);
    if (launch.rank.value == 0) {
      if (!result.bad_steps.empty())
        std::cerr << "polyphony-worker: " << result.bad_steps << std::endl;
      if (!result.stopped.empty())
        std::cerr << "polyphony-worker: stopped at " << result.stopped << std::endl;
      if (!args["phase"].as<std::string>().empty() && !options.out.empty() && !result.interrupted &&
          result.stopped.empty() && args.count("steps") == 0)
        record_end(options.out, scenario.training.steps, result.steps);
      nlohmann::json summary{{"steps", result.steps},
                             {"median_step_seconds", result.median_step.count()},
                             {"interrupted", result.interrupted},
                             {"device", in_words(computes_on, support_of_build())}};
      if (result.median_step.count() > 0)
        summary["loss"] = result.loss;  // else the run was at its last step already
      if (result.live > 0) summary["plans"] = {{"steps", result.live}, {"late", result.late}};
      if (result.accuracy) summary["accuracy"] = *result.accuracy;
      if (result.held_out_loss) summary["held_out_loss"] = *result.held_out_loss;
      if (!result.bad_steps.empty()) summary["bad_steps"] = result.bad_steps;
      if (!result.stopped.empty()) summary["stopped"] = result.stopped;
      std::cout << summary.dump() << std::endl;
    }
    return static_cast<int>(result.stopped.empty() ? ExitCode::ok : ExitCode::failed);
  } catch (const LostPeer&) {
    leave_with_rank(launch.rank);
  } catch (const std::exception& error) {
    give_way_to_signal();
    transport->abort(error.what());
    leave_with_rank(launch.rank);
  }
}

int run(int argc, char** argv) {
  cxxopts::Options options = make_options();
  cxxopts::ParseResult args;
  try {
    args = options.parse(argc, argv);
  } catch (const cxxopts::exceptions::exception& error) {
    throw InputError("polyphony-worker", "", error.what(),
                     "polyphony-worker --help explains the options");
  }
  if (args.count("help")) {
    std::cout << options.help() << kExample;
    return static_cast<int>(ExitCode::ok);
  }
  if (args.count("version")) {
    std::cout << "polyphony-worker: " << in_words(support_of_build()) << "\n";
    return static_cast<int>(ExitCode::ok);
  }
  const LaunchEnv launch = read_launch_env(launch_flags(args), process_environment());
  share_cores(launch.local_world_size, args.count("pace") > 0);
  keep_freed_memory();
  if (args.count("microbench")) {
    const std::unique_ptr<Transport> transport = connect_or_leave(launch, torch::kCPU);
    const AbortOnSignal abort_on_signal(*transport);
    std::cout << run_microbench(*transport, {}) << std::flush;
    return static_cast<int>(ExitCode::ok);
  }
  if (!args.count("scenario"))
    throw InputError("polyphony-worker", "", "no SCENARIO given",
                     "polyphony-worker --help explains the usage");
  return train_scenario(args, launch);
}

}  // namespace
}  // namespace polyphony::exec

int main(int argc, char** argv) {
  using namespace polyphony;
  std::signal(SIGXFSZ,
              SIG_IGN);  // a write over the file size limit then fails and is reported
  exec::hear_stop_signals();
  try {
    const int code = exec::run(argc, argv);
    return finish_stdout() ? code : static_cast<int>(ExitCode::failed);
  } catch (const InputError& error) {
    std::cerr << error.command_line() << std::endl;
    return static_cast<int>(ExitCode::bad_input);
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
  }
  return static_cast<int>(ExitCode::failed);
}

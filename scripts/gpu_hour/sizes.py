"""What scripts/first_gpu_hour runs: models and numbers for GPUs, and small ones for the rehearsal."""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "scenarios/published"
HERE = pathlib.Path(__file__).resolve().parent

# Blocks of scripts/gpu_kernels: sequences, tokens per sequence, and our scenario with a microbatch of them.
DECODER = {"data": {"source": "synthetic", "text": {"tokens": 8192}, "sequence": 8192, "global_batch": 4}, "layout": {"placement": "homogeneous", "microbatches": 4, "language": {}}}
BLOCKS = {
    "llama_1b": ("language", 1, 8192, {"model": {"language": {"preset": "llama-3.2-1b"}}, **DECODER}),
    "llama_8b": ("language", 1, 8192, {"model": {"language": {"preset": "llama-3.1-8b"}}, **DECODER}),
    "vit_1b_no_dropout": ("vision", 8, 1024, {  # 448 / 14 = 32 patches a side, merged to 16
        "model": {"vision": {"hidden": 1408, "heads": 16, "ffn": 4 * 1408, "patch": 14, "image_size": 448}, "projector": {"from": "vision", "merge": "2x2"},
                  "language": {"from": "projector", "layers": 1, "hidden": 256, "heads": 4, "ffn": 512, "vocab": 1024}},
        "data": {"source": "synthetic", "images": {"per_sample": 1}, "text": {"tokens": 8, "loss_tokens": 4}, "sequence": 264, "global_batch": 32},
        "layout": {"placement": "homogeneous", "microbatches": 4, "all": {}}}),
}
# 4 pictures of 24 * 24 patches, merged to 144 tokens each, and 1,472 tokens of text.
VISION_LANGUAGE = {
    "model": {"vision": {"layers": 24, "hidden": 1024, "heads": 16, "ffn": 4096, "patch": 14, "image_size": 336}, "projector": {"from": "vision", "merge": "2x2"},
              "language": {"from": "projector", "preset": "llama-3.2-1b"}},
    "data": {"source": "synthetic", "images": {"per_sample": 4}, "text": {"tokens": 1472}, "sequence": 2048}}


def small_language(layers, ffn="ffn", **more):
    return {"layers": layers, "hidden": 64, "heads": 8, "kv_heads": 4, ffn: 128, "vocab": 256, "tied": False, **more}


def small(model, tokens=32):
    return {"polyphony": 1, "about": "Of the rehearsal of scripts/first_gpu_hour.", "model": model, "cluster": {"node": {"device": "H100", "ranks": 1}},
            "data": {"source": "synthetic", "text": {"tokens": tokens}, "sequence": tokens, "global_batch": 4},
            "layout": {"placement": "homogeneous", "microbatches": 4, "language": {}}, "training": {"precision": "fp32"}}


class Full:
    rehearsal = False
    variables = {"NCCL_DEBUG": "WARN"}
    nccl = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ALLOC"}  # of the logs of runs on several GPUs
    trained = {"llama-1b": PUBLISHED / "own_llama_1b.json", "llama-8b-4-layers": PUBLISHED / "own_llama_8b_4_layers.json"}
    experts = PUBLISHED / "own_qwen3_30b_2_layers.json"
    vision_language = VISION_LANGUAGE
    blocks = BLOCKS
    few, many = 2, 6  # layers
    steps, traced, measured = 24, "8:24", 8
    warm, half = 8, 24  # steps of the part `recording`: before it measures, and in each half
    stages = (2, 4, 8)
    layout_ranks = 8  # at most, of the layouts that do with fewer
    long_tokens = 8192  # a sequence of context parallelism
    profiled = 7  # step of part train's runs that PyTorch's profiler records, before those that are traced
    also_flash = ("llama_8b",)  # blocks of part own_blocks that run once more with flash attention
    transport = ("--test-suite=transport",)
    first_layouts = 20  # of part parity_first
    every_layout = 1
    over = "NCCL"
    largest_bytes = 1 << 30
    kernels = ()  # options of scripts/gpu_kernels
    torch_check = "import torch; assert torch.cuda.is_available()"

    def __init__(self, out):
        pass


class Rehearsal(Full):
    """The double of a GPU in place of GPUs, Gloo between CPU ranks in place of NCCL, models of seconds. It needs two cores."""
    rehearsal = True
    gpus = 4
    # No GPU even where there is one: the point is what runs without.
    # Threads that spin for each other take seconds for milliseconds on cores that are shared.
    variables = {"CUDA_VISIBLE_DEVICES": "", "POLYPHONY_REHEARSE": str(gpus), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    blocks = {"tiny": ("language", 1, 32, {"model": {"language": small_language(1)},
                                           "data": {"source": "synthetic", "text": {"tokens": 32}, "sequence": 32, "global_batch": 4}, "layout": DECODER["layout"],
                                           "training": {"precision": "fp32"}})}
    vision_language = {
        "model": {"vision": {"layers": 4, "hidden": 32, "heads": 4, "ffn": 64, "patch": 4, "image_size": 16}, "projector": {"from": "vision", "merge": "2x2"},
                  "language": {"from": "projector", **small_language(4)}},
        "data": {"source": "synthetic", "images": {"per_sample": 1}, "text": {"tokens": 8, "loss_tokens": 4}, "sequence": 16}}
    steps, traced, measured = 4, "2:4", 2
    profiled = 1
    also_flash = ("tiny",)
    warm, half = 1, 4
    stages = (2, 4)
    layout_ranks = 2
    long_tokens = 64
    transport = ("--test-suite=transport", "--test-case=*machine's device*")
    first_layouts = 4
    every_layout = 16
    over = "Gloo on CPUs"
    largest_bytes = 1 << 20
    kernels = ("--device", "cpu")
    torch_check = "import torch"

    def __init__(self, out):
        folder = out / "rehearsal"
        folder.mkdir(parents=True, exist_ok=True)
        models = {"llama-1b": small({"language": small_language(8)}), "llama-8b-4-layers": small({"language": small_language(4)}),
                  "experts": small({"language": small_language(2, "expert_ffn", experts=8, experts_per_token=2)})}
        for name, scenario in models.items():
            (folder / f"{name}.json").write_text(json.dumps(scenario))
        self.trained = {name: folder / f"{name}.json" for name in Full.trained}
        self.experts = folder / "experts.json"

#!/usr/bin/env python3
"""The training loop with which scripts/bench_executor compares polyphony-worker: the model of a
scenario in plain eager PyTorch on CPU.

  scripts/pytorch_loop.py SCENARIO --threads N --steps N [--count]

Written as one would write it by hand for a single process: nn.Modules over batches without padding
(all samples of the scenario have the same length), scaled_dot_product_attention, fused
query-key-value and gate-up matrices, the head over the loss rows only, gradient accumulation over
the microbatches, clip_grad_norm_ and fused AdamW. Batches are prepared in memory, so that this loop
spends no time on loading.
Prints one JSON object: seconds of every step, processor seconds of the process meanwhile,
parameters, tokens, and with --count the FLOPs of the GEMMs of a step as counted by PyTorch.
"""
import argparse
import json
import time
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

BATCHES = 4  # different batches, used in rotation


class VisionBlock(nn.Module):
    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.fc1, self.fc2 = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)

    def forward(self, x):
        images, patches, hidden = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(images, patches, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(images, patches, hidden)
        x = x + self.out(attended)
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Vision(nn.Module):
    def __init__(self, layers, hidden, heads, ffn, patch, image_size):
        super().__init__()
        self.embedding = nn.Linear(3 * patch * patch, hidden)
        self.position = nn.Parameter(0.02 * torch.randn((image_size // patch) ** 2, hidden))
        self.blocks = nn.Sequential(*(VisionBlock(hidden, heads, ffn) for _ in range(layers)))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, patches):
        return self.norm(self.blocks(self.embedding(patches) + self.position))


class Projector(nn.Module):
    def __init__(self, merge, inside, hidden, outside):
        super().__init__()
        self.merge = merge
        self.fc1, self.fc2 = nn.Linear(merge * merge * inside, hidden), nn.Linear(hidden, outside)

    def forward(self, x):
        images, patches, hidden = x.shape
        m, cells = self.merge, int(patches**0.5) // self.merge
        merged = x.view(images, cells, m, cells, m, hidden).transpose(2, 3).reshape(images, cells * cells, m * m * hidden)
        return self.fc2(F.gelu(self.fc1(merged)))


def rotate(x, cosine, sine):
    low, high = x.chunk(2, -1)
    return x * cosine + torch.cat((-high, low), -1) * sine


class DecoderBlock(nn.Module):
    def __init__(self, hidden, heads, kv_heads, ffn):
        super().__init__()
        self.heads, self.kv_heads, self.width = heads, kv_heads, hidden // heads
        self.norm1, self.norm2 = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * self.width, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.gate_up, self.down = nn.Linear(hidden, 2 * ffn, bias=False), nn.Linear(ffn, hidden, bias=False)

    def forward(self, x, cosine, sine):
        samples, tokens, hidden = x.shape
        qkv = self.qkv(self.norm1(x)).view(samples, tokens, -1, self.width).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), 1)
        q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(attended.transpose(1, 2).reshape(samples, tokens, hidden))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Language(nn.Module):
    def __init__(self, layers, hidden, heads, kv_heads, ffn, vocab, tokens, theta=10000.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.blocks = nn.ModuleList(DecoderBlock(hidden, heads, kv_heads, ffn) for _ in range(layers))
        self.norm, self.output = nn.RMSNorm(hidden, eps=1e-5), nn.Linear(hidden, vocab, bias=False)
        width = hidden // heads
        angle = torch.outer(torch.arange(tokens), theta ** (-torch.arange(0, width, 2) / width)).repeat(1, 2)
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def forward(self, image, ids, labels):
        x = torch.cat((image, self.embedding(ids)), 1)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        logits = self.output(self.norm(x[:, -labels.shape[1]:]))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")


class VisionLanguage(nn.Module):
    def __init__(self, scenario):
        super().__init__()
        vision, projector, language = (dict(scenario["model"][name]) for name in ("vision", "projector", "language"))
        merge = int(projector["merge"].split("x")[0])
        del language["from"]
        self.patches, self.patch_values = (vision["image_size"] // vision["patch"]) ** 2, 3 * vision["patch"] ** 2
        self.vocab = language["vocab"]
        text = scenario["data"]["text"]
        self.text, self.labels = text["tokens"], text["loss_tokens"]
        self.tokens = self.patches // merge**2 + self.text  # tokens of a sample in the language module
        self.vision = Vision(**vision)
        self.projector = Projector(merge, vision["hidden"], projector["hidden"], language["hidden"])
        self.language = Language(**language, tokens=self.tokens)

    def draw(self, samples):
        return (2 * torch.rand(samples, self.patches, self.patch_values) - 1, torch.randint(self.vocab, (samples, self.text)),
                torch.randint(self.vocab, (samples, self.labels)))

    def forward(self, patches, ids, labels):
        return self.language(self.projector(self.vision(patches)), ids, labels)


class Loop:
    def __init__(self, scenario):
        training, self.samples = scenario["training"], scenario["data"]["global_batch"]
        self.microbatches, self.clip = scenario["layout"]["microbatches"], training["clip_norm"]
        torch.manual_seed(1)
        self.model = VisionLanguage(scenario)
        parameters = list(self.model.parameters())
        groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": training["weight_decay"]},
                  {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=training["learning_rate"], betas=(0.9, 0.95), fused=True)
        self.batches = [[self.model.draw(self.samples // self.microbatches) for _ in range(self.microbatches)] for _ in range(BATCHES)]

    def step(self, number):
        loss = 0.0
        for patches, ids, labels in self.batches[number % BATCHES]:
            part = self.model(patches, ids, labels) / (self.samples * self.model.labels)
            part.backward()
            loss += part.item()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--count", action="store_true", help="count the FLOPs of one step before the timed ones")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with open(options.scenario) as file:
        loop = Loop(json.load(file))
    result = {"torch": torch.__version__, "parameters": sum(p.numel() for p in loop.model.parameters()),
              "tokens": loop.samples * loop.model.tokens}
    if options.count:
        from torch.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as counter:
            loop.step(0)
        result["gemm_flops"] = sum(count for name, count in counter.get_flop_counts()["Global"].items() if "mm" in str(name))
    clocks = {"seconds": time.perf_counter, "core_seconds": time.process_time}
    result.update({name: [] for name in clocks})
    for number in range(options.steps):
        start = {name: clock() for name, clock in clocks.items()}
        loop.step(number)
        for name, clock in clocks.items():
            result[name].append(clock() - start[name])
    print(json.dumps(result))


if __name__ == "__main__":
    main()

"""The layouts of scripts/first_gpu_hour's part `layouts`: each kind of parallelism, on two, four or eight GPUs."""


def kinds(gpus, sizes):
    """(name, ranks, changes of a scenario, that scenario). All of them are predicted to fit (tests/system/first_gpu_hour.py)."""
    ranks = min(gpus, sizes.layout_ranks)
    one, untied = sizes.trained["llama-1b"], sizes.trained["llama-8b-4-layers"]
    alone, whole = 2, 2 * ranks  # microbatches of a sample each

    def language(base=one, schedule="1f1b", microbatches=alone, samples=2 * ranks, data=None, **grid):
        return {"layout": {"language": grid, "schedule": schedule, "microbatches": microbatches}, "data": {"global_batch": samples, **(data or {})}}, base

    def context(**grid):
        return language(data={"text": {"tokens": sizes.long_tokens}, "sequence": sizes.long_tokens}, samples=2, cp=ranks, tokens="zigzag", **grid)

    stages = min(ranks, 4)
    found = {"data_parallel": language(),
             "zero1": language(shard="optimizer"),
             "zero2": language(base=untied, shard="gradients"),  # embeddings that are not tied
             "zero3": language(base=untied, shard="full"),
             "tensor_parallel": language(microbatches=whole, tp=ranks, sp=True),
             "tensor_parallel_pieces": language(microbatches=whole, tp=ranks, sp=True, tp_pieces=2),
             "interleaved_v2": language(microbatches=2 * stages, schedule="interleaved", pp=stages, vpp=2),
             "interleaved_v4": language(microbatches=2 * stages, schedule="interleaved", pp=stages, vpp=4),
             "expert_parallel": language(base=sizes.experts, ep=ranks),
             "context_all_gather": context(),
             "context_ring": context(cp_attention="ring"),
             "context_ulysses": context(cp_attention="ulysses")}
    half = ranks // 2
    text = {"pp": min(half, 2)} | ({"tp": half // 2, "sp": True} if half > 2 else {})
    found["vision_language_apart"] = ({"model": sizes.vision_language["model"], "data": {**sizes.vision_language["data"], "global_batch": 2 * ranks},
                                       "layout": {"placement": "non-colocated", "microbatches": max(4, ranks), "vision": {"ranks": half}, "language": text}}, one)
    listed = [(name, ranks, changes, base) for name, (changes, base) in found.items()]
    if gpus >= 4:
        listed.append(("tensor_and_pipeline", gpus, *language(microbatches=2 * gpus, samples=2 * gpus, tp=2, sp=True, pp=gpus // 2)))
    return listed

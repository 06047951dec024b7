#!/usr/bin/env python3
"""The data loader with which scripts/bench_data compares ours: torch.utils.data.DataLoader over
WebDataset shards, as one would write it by hand.

  scripts/pytorch_loader.py SHARD... --tokenizer FILE --workers N --batch N --size PIXELS

Each worker reads its shards front to back (tarfile), decodes and resizes images (PIL, bicubic), normalizes them (NumPy, in
place), renders conversations as ChatML, encodes them once (Hugging Face's tokenizers) and finds labels by the offsets
of the tokens. Images and ids of a batch are packed in the worker, and come to the main process in shared memory.
One pass over all samples. Prints one JSON object: samples, tokens, seconds, and processor seconds of all processes,
without the imports.
"""
import argparse
import io
import json
import os
import resource
import tarfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

ROLES = {"human": "user", "gpt": "assistant"}


class Samples(torch.utils.data.IterableDataset):
    def __init__(self, shards, tokenizer, size):
        self.shards, self.file, self.size = shards, tokenizer, size

    def image(self, data):
        picture = Image.open(io.BytesIO(data)).convert("RGB").resize((self.size, self.size), Image.Resampling.BICUBIC)
        pixels = np.array(picture, dtype=np.float32)
        pixels *= 1 / 127.5  # mean 0.5, deviation 0.5
        pixels -= 1
        return torch.from_numpy(pixels).permute(2, 0, 1)

    def text(self, tokenizer, data):
        text, trained = "", []
        for turn in json.loads(data)["conversations"]:
            role = ROLES[turn["from"]]
            text += f"<|im_start|>{role}\n"
            begin = len(text)
            text += turn["value"].replace("<image>", "") + "<|im_end|>"
            if role == "assistant":
                trained.append((begin, len(text)))
            text += "\n"
        encoded = tokenizer.encode(text, add_special_tokens=False)
        ids = torch.tensor(encoded.ids)
        labels = torch.full_like(ids, -100)
        span = 0
        for i, (begin, end) in enumerate(encoded.offsets):
            while span < len(trained) and begin >= trained[span][1]:
                span += 1
            if span < len(trained) and begin >= trained[span][0]:
                labels[i] = ids[i]
        return ids, labels

    def __iter__(self):
        tokenizer = Tokenizer.from_file(self.file)
        worker = torch.utils.data.get_worker_info()
        for shard in self.shards[worker.id::worker.num_workers]:
            with tarfile.open(shard, "r|") as members:
                sample = {}
                for member in members:
                    key, kind = member.name.split(".", 1)
                    if sample and sample["key"] != key:
                        yield self.image(sample["jpg"]), *self.text(tokenizer, sample["json"])
                        sample = {}
                    sample["key"] = key
                    sample[kind] = members.extractfile(member).read()
                if sample:
                    yield self.image(sample["jpg"]), *self.text(tokenizer, sample["json"])


def packed(samples):
    """One sequence without padding, and where its samples end."""
    images, ids, labels = zip(*samples)
    return torch.stack(images), torch.cat(ids), torch.cat(labels), torch.tensor([len(one) for one in ids]).cumsum(0)


def processor_seconds():
    return sum(usage.ru_utime + usage.ru_stime for usage in (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards", nargs="+")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    begin, spent = time.perf_counter(), processor_seconds()
    loader = torch.utils.data.DataLoader(Samples(args.shards, args.tokenizer, args.size), batch_size=args.batch, num_workers=args.workers, collate_fn=packed)
    samples = tokens = 0
    for images, ids, _, _ in loader:
        samples += len(images)
        tokens += len(ids)
    del loader
    print(json.dumps({"samples": samples, "tokens": tokens, "seconds": time.perf_counter() - begin, "processor_seconds": processor_seconds() - spent}))


if __name__ == "__main__":
    main()

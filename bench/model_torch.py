"""PyTorch's side of bench/model and of `make bench-gpu`: the same model and step with its fused
attention; on a GPU compiled (torch.compile), on a CPU in eager mode.

Prints tokens per second of wall time and of CPU time.
"""
import sys
import time

import torch
import torch.nn.functional as F

(vocab, dim, layers, heads, kv_heads, ffn, context, tied, batch, sequence, threads,
 seconds) = map(int, sys.argv[1:13])
dtype = getattr(torch, sys.argv[13])
device = sys.argv[14] if len(sys.argv) > 14 else "cpu"
microbatches = int(sys.argv[15]) if len(sys.argv) > 15 else 1
torch.set_num_threads(threads)
torch.manual_seed(1)
torch.set_default_device(device)
head = dim // heads
angles = torch.outer(torch.arange(sequence).float(),
                     10000.0 ** (-torch.arange(0, head, 2).float() / head))
cosines, sines = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()


def rotate(x):
    a, b = x.chunk(2, -1)
    return x * cosines.to(x.dtype) + torch.cat([-b, a], -1) * sines.to(x.dtype)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = (torch.nn.RMSNorm(dim, 1e-5) for _ in range(2))
        self.qkv = torch.nn.Linear(dim, (heads + 2 * kv_heads) * head, bias=False)
        self.o = torch.nn.Linear(dim, dim, bias=False)
        self.gate_up = torch.nn.Linear(dim, 2 * ffn, bias=False)
        self.down = torch.nn.Linear(ffn, dim, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, -1, head).transpose(1, 2).split(
            [heads, kv_heads, kv_heads], 1)
        a = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True,
                                           enable_gqa=heads != kv_heads)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, dim))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, dim)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(layers))
        self.norm = torch.nn.RMSNorm(dim, 1e-5)
        self.head = torch.nn.Linear(dim, vocab, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


model = Model()
forward = torch.compile(model) if device == "cuda" else model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def step():
    for _ in range(microbatches):
        tokens = torch.randint(vocab, (batch, sequence))
        targets = torch.randint(vocab, (batch, sequence))
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            loss = F.cross_entropy(forward(tokens).flatten(0, 1).float(), targets.flatten())
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def wait():
    if device == "cuda":
        torch.cuda.synchronize()


for _ in range(3 if device == "cuda" else 1):
    step()
wait()
steps, wall, cpu = 0, time.monotonic(), time.process_time()
while time.monotonic() - wall < seconds:
    step()
    steps += 1
    wait()
tokens = steps * microbatches * batch * sequence
print(tokens / (time.monotonic() - wall), tokens / (time.process_time() - cpu))

"""BERT and GPT-2, in their real sizes and in tiny ones."""

import torch
from torch import nn

from network import Network, Picked


def bert(tiny, length, symbolic=False):
    """transformers' BertModel: [batch, seq] token numbers and mask -> [batch, seq, width]."""
    import transformers

    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=200,
                 max_position_embeddings=64) if tiny else {}
    config = transformers.BertConfig(**sizes)
    config._attn_implementation = "eager"
    module = transformers.BertModel(config, add_pooling_layer=False).eval()
    batch = 2 if symbolic else 1
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length * 3 // 4:] = 0
    arguments = (torch.randint(0, config.vocab_size, (batch, length)), mask)
    names = ["input_ids", "attention_mask"]
    symbols = {name: {0: "batch", 1: "seq"} for name in names} if symbolic else {}
    picked = Picked(module, lambda m, ids, mask: m(input_ids=ids, attention_mask=mask).last_hidden_state)
    return Network(picked, arguments, names, ["last_hidden_state"], symbols)


def gpt2(tiny):
    """transformers' GPT-2 over a whole text: [1, tokens] -> [1, tokens, vocabulary]."""
    import transformers

    sizes = dict(n_embd=32, n_layer=2, n_head=2, vocab_size=200, n_positions=64, bos_token_id=None,
                 eos_token_id=None) if tiny else {}
    config = transformers.GPT2Config(**sizes, use_cache=False)
    config._attn_implementation = "eager"
    module = transformers.GPT2LMHeadModel(config).eval()
    ids = torch.randint(0, config.vocab_size, (1, 16 if tiny else 128))
    picked = Picked(module, lambda m, ids: m(input_ids=ids, use_cache=False).logits)
    return Network(picked, (ids,), ["input_ids"], ["logits"])


class Gpt2Decode(nn.Module):
    """One more token with a cache of keys and values, GPT-2's layers. The caches, [layers, batch, heads, past, width of
    a head], come out one longer."""

    def __init__(self, layers, width, heads, vocabulary, positions):
        super().__init__()
        self.heads = heads
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(dict(
                ln1=nn.LayerNorm(width), qkv=nn.Linear(width, 3 * width), out=nn.Linear(width, width),
                ln2=nn.LayerNorm(width), up=nn.Linear(width, 4 * width), down=nn.Linear(4 * width, width),
            ))
            for _ in range(layers)
        )
        self.last = nn.LayerNorm(width)

    def forward(self, ids, position, pastK, pastV):
        x = self.token(ids) + self.position(position)
        batch, length, width = x.shape
        keys, values = [], []
        for index, layer in enumerate(self.layers):
            q, k, v = (
                part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                for part in layer["qkv"](layer["ln1"](x)).split(width, 2)
            )
            keys.append(torch.cat([pastK[index], k], 2))
            values.append(torch.cat([pastV[index], v], 2))
            weights = torch.softmax(q @ keys[-1].transpose(2, 3) * (width // self.heads) ** -0.5, -1)
            x = x + layer["out"]((weights @ values[-1]).transpose(1, 2).reshape(batch, length, width))
            x = x + layer["down"](nn.functional.gelu(layer["up"](layer["ln2"](x)), approximate="tanh"))
        return self.last(x) @ self.token.weight.T, torch.stack(keys), torch.stack(values)


def gpt2Decode(tiny):
    layers, width, heads, vocabulary, past = (2, 32, 2, 200, 24) if tiny else (12, 768, 12, 50257, 512)
    module = Gpt2Decode(layers, width, heads, vocabulary, 2 * past)
    cache = [torch.randn(layers, 1, heads, past, width // heads) for _ in range(2)]
    arguments = (torch.randint(0, vocabulary, (1, 1)), torch.tensor([[past]]), *cache)
    return Network(module.eval(), arguments, ["ids", "position", "past_k", "past_v"],
                   ["logits", "present_k", "present_v"])

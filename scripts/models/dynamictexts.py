"""Networks for texts and sounds with every size symbolic, transformers', narrow; BERT-base and GPT-2 in real widths."""

from dataclasses import dataclass, replace
from functools import partial

import torch

from dynamic import Dynamic, lively
from symbols import mask, normal, symbol, tokens

WIDTH, HEADS, VOCABULARY = 32, 4, 128
BATCH = {"batch": symbol("batch", 1, 8)}
ENDS = dict(bos_token_id=0, eos_token_id=1, pad_token_id=1)


@dataclass(frozen=True)
class Scale:
    layers: int
    longest: int  # positions that a network knows
    most: int  # the longest text that is legal
    side: int  # height and width of the largest image

    def length(self, name="length"):
        return {name: symbol("length", 1, self.most)}

    def base(self):
        return dict(hidden_size=WIDTH, num_hidden_layers=self.layers, num_attention_heads=HEADS, vocab_size=VOCABULARY)

    def usual(self):
        return dict(**self.base(), intermediate_size=2 * WIDTH, max_position_embeddings=self.longest)

    def twoParts(self):
        """Of networks with an encoder and a decoder."""
        return {f"{part}_{name}": size for part in ("encoder", "decoder")
                for name, size in (("layers", self.layers), ("ffn_dim", 2 * WIDTH), ("attention_heads", HEADS))}


NARROW = Scale(2, 512, 400, 352)
TINY = Scale(1, 64, 48, 96)

# decoders: the configuration's class, its sizes, heads of keys in the cache, width of a head
DECODERS = {
    "llama": ("LlamaConfig", lambda scale: dict(**scale.usual(), num_key_value_heads=2), 2, 8),
    "qwen3": ("Qwen3Config", lambda scale: dict(**scale.usual(), num_key_value_heads=2, head_dim=16), 2, 16),
    "gemma2": ("Gemma2Config", lambda scale: dict(**scale.usual(), num_key_value_heads=2, head_dim=8,
                                                  query_pre_attn_scalar=8, sliding_window=16), 2, 8),
    "phi": ("PhiConfig", Scale.usual, HEADS, 8),
    "gpt_neox": ("GPTNeoXConfig", Scale.usual, HEADS, 8),
    "bloom": ("BloomConfig", lambda scale: dict(hidden_size=WIDTH, n_layer=scale.layers, n_head=HEADS,
                                                vocab_size=VOCABULARY), HEADS, 8),
    "opt": ("OPTConfig", lambda scale: dict(**scale.base(), ffn_dim=2 * WIDTH, word_embed_proj_dim=WIDTH,
                                            max_position_embeddings=scale.longest), HEADS, 8),
}


def made(configuration, model="AutoModel", gain=1.5, **sizes):
    """A network of transformers with random weights."""
    import transformers

    config = getattr(transformers, configuration)(**{**ENDS, **sizes})
    kind = getattr(transformers, model)
    module = kind.from_config(config) if model.startswith("Auto") else kind(config)
    return lively(module, gain)


def cacheOf(arguments):
    """Keys and values of each layer in turn, as transformers' cache."""
    from transformers import DynamicCache

    return DynamicCache(list(zip(arguments[::2], arguments[1::2])))


def ofCache(cache):
    return tuple(value for layer in cache.layers for value in (layer.keys, layer.values))


def caches(prefix, layers, *shape):
    return {f"{prefix}_{which}_{layer}": list(shape) for layer in range(layers) for which in ("key", "value")}


def decoder(kind, scale):
    """[batch, length] tokens and mask -> [batch, length, width], the whole text at once."""
    configuration, sizes, _, _ = DECODERS[kind]

    def function(module, ids, seen):
        return module(input_ids=ids, attention_mask=seen, use_cache=False).last_hidden_state

    return Dynamic(made(configuration, **sizes(scale)), function, BATCH | scale.length(),
                   {"input_ids": tokens("batch", "length"), "attention_mask": mask("batch", "length")},
                   {"last_hidden_state": ["batch", "length", WIDTH]})


def stepWith(output):
    def function(module, ids, seen, *cache):
        result = module(input_ids=ids, attention_mask=seen, past_key_values=cacheOf(cache), use_cache=True)
        return getattr(result, output), *ofCache(result.past_key_values)

    return function


def withCache(module, output, width, heads, head, scale, below=VOCABULARY):
    """Further tokens behind those whose keys and values are in the cache, which comes out longer by them."""
    past = caches("past", scale.layers, "batch", heads, "past", head)
    present = caches("present", scale.layers, "batch", heads, "past + length", head)
    inputs = {"input_ids": tokens("batch", "length", below=below), "attention_mask": mask("batch", "past + length"),
              **{name: normal(*shape) for name, shape in past.items()}}
    lengths = {"length": symbol("length", 1, scale.most // 4), "past": symbol("past", 0, scale.most)}
    return Dynamic(module, stepWith(output), BATCH | lengths, inputs,
                   {output: ["batch", "length", width], **present})


def cachedDecoder(kind, scale):
    configuration, sizes, heads, head = DECODERS[kind]
    return withCache(made(configuration, **sizes(scale)), "last_hidden_state", WIDTH, heads, head, scale)


def scanned(hidden, dt, A, B, C, D=None, z=None, delta_bias=None, return_last_state=False, **_):
    """Mamba's recurrence as torch's scan: the exporter would unroll transformers' loop over the tokens."""
    from torch._higher_order_ops.scan import scan

    dt = torch.nn.functional.softplus(dt + delta_bias[..., None])
    decay = torch.exp(A[None, :, None, :] * dt[:, :, :, None])
    added = dt[:, :, :, None] * B.transpose(1, 2)[:, None, :, :] * hidden[:, :, :, None]

    def step(state, now):
        decay, added, read = now
        state = decay * state + added
        return state, (state @ read.unsqueeze(-1)).squeeze(-1)

    state = torch.zeros_like(added[:, :, 0])
    state, steps = scan(step, state, (decay.permute(2, 0, 1, 3), added.permute(2, 0, 1, 3), C.permute(2, 0, 1)))
    result = (steps.permute(1, 2, 0) + hidden * D[None, :, None]) * torch.nn.functional.silu(z)
    return (result, state) if return_last_state else result


def madeMamba(scale):
    return made("MambaConfig", hidden_size=WIDTH, num_hidden_layers=scale.layers, vocab_size=VOCABULARY, state_size=8,
                time_step_rank=4)


def mamba(scale):
    """[batch, length] tokens -> [batch, length, width]."""
    from transformers.models.mamba import modeling_mamba

    def function(module, ids):
        kept, modeling_mamba.mamba_selective_scan = modeling_mamba.mamba_selective_scan, scanned
        try:
            return module(input_ids=ids, use_cache=False).last_hidden_state
        finally:
            modeling_mamba.mamba_selective_scan = kept

    return Dynamic(madeMamba(scale), function, BATCH | scale.length(),
                   {"input_ids": tokens("batch", "length")}, {"last_hidden_state": ["batch", "length", WIDTH]},
                   {"torchscript": "tracing unrolls the loop over the tokens, so that the length is constant"})


def cachedMamba(scale):
    """One more token: states of the convolution and of the recurrence, each layer's, go in and come out."""
    from transformers import DynamicCache

    def function(module, ids, *states):
        cache = DynamicCache(config=module.config)
        for layer, convolution, recurrence in zip(cache.layers, states[::2], states[1::2]):
            layer.conv_states[0], layer.recurrent_states[0] = convolution.clone(), recurrence.clone()
            layer.conv_kernel_size[0] = convolution.shape[-1]
            for known in (layer.is_conv_states_initialized, layer.is_recurrent_states_initialized,
                          layer.has_previous_state):
                known[0] = True
        result = module(input_ids=ids, cache_params=cache, use_cache=True)
        return result.last_hidden_state, *(state for layer in cache.layers
                                           for state in (layer.conv_states[0], layer.recurrent_states[0]))

    parts = {"conv": ["batch", 2 * WIDTH, 4], "recurrent": ["batch", 2 * WIDTH, 8]}
    states = {f"{part}_{layer}": shape for layer in range(scale.layers) for part, shape in parts.items()}
    return Dynamic(madeMamba(scale), function, BATCH,
                   {"input_ids": tokens("batch", 1), **{f"past_{name}": normal(*s) for name, s in states.items()}},
                   {"last_hidden_state": ["batch", 1, WIDTH], **{f"present_{name}": s for name, s in states.items()}})


def encoder(scale, configuration, width=WIDTH, below=VOCABULARY, masked=torch.int64, **sizes):
    """[batch, length] tokens and mask -> [batch, length, width]. `masked`: the type that the network takes it in."""
    module = made(configuration, **sizes)
    return Dynamic(module, lambda m, ids, seen: m(input_ids=ids, attention_mask=seen.to(masked)).last_hidden_state,
                   BATCH | scale.length(),
                   {"input_ids": tokens("batch", "length", below=below), "attention_mask": mask("batch", "length")},
                   {"last_hidden_state": ["batch", "length", width]})


def translator(scale, configuration, **sizes):
    """A text that is read, [batch, length], and one that is written, [batch, target] -> [batch, target, width]."""
    def function(module, ids, seen, written):
        return module(input_ids=ids, attention_mask=seen, decoder_input_ids=written, use_cache=False).last_hidden_state

    return Dynamic(made(configuration, **sizes), function, BATCH | scale.length() | scale.length("target"),
                   {"input_ids": tokens("batch", "length"), "attention_mask": mask("batch", "length"),
                    "decoder_input_ids": tokens("batch", "target")},
                   {"last_hidden_state": ["batch", "target", WIDTH]})


def bart(scale):
    return translator(scale, "BartConfig", d_model=WIDTH, vocab_size=VOCABULARY, decoder_start_token_id=1,
                      max_position_embeddings=scale.longest, **scale.twoParts())


def t5(scale):
    return translator(scale, "T5Config", gain=0.7, d_model=WIDTH, d_kv=8, d_ff=2 * WIDTH, num_layers=scale.layers,
                      num_heads=HEADS, vocab_size=VOCABULARY, decoder_start_token_id=0)


def whisper(scale):
    """Features of sound, whose number Whisper fixes, and the text so far, [batch, target] -> [batch, target, width]."""
    frames, bins = 64, 16
    module = made("WhisperConfig", d_model=WIDTH, vocab_size=VOCABULARY, num_mel_bins=bins, decoder_start_token_id=1,
                  max_source_positions=frames // 2, max_target_positions=scale.longest, **scale.twoParts())

    def function(module, features, written):
        # Without a mask the network looks for texts packed together, by an operation that TorchScript's exporter lacks.
        return module(input_features=features, decoder_input_ids=written, use_cache=False,
                      decoder_attention_mask=torch.ones_like(written)).last_hidden_state

    return Dynamic(module, function, BATCH | scale.length("target"),
                   {"input_features": normal("batch", bins, frames), "decoder_input_ids": tokens("batch", "target")},
                   {"last_hidden_state": ["batch", "target", WIDTH]})


def listener(scale, configuration, **sizes):
    """[batch, samples] of sound -> [batch, frames, width], a frame for each 80 samples."""
    module = made(configuration, **scale.base(), intermediate_size=2 * WIDTH, conv_dim=[WIDTH] * 3,
                  conv_kernel=[10, 8, 4], conv_stride=[5, 4, 4], num_conv_pos_embeddings=16,
                  num_conv_pos_embedding_groups=4, **sizes)
    return Dynamic(module, lambda m, sound: m(sound).last_hidden_state,
                   BATCH | {"samples": symbol("length", 200, 40 * scale.most, unit=80)},
                   {"input_values": normal("batch", "samples")}, {"last_hidden_state": None})


def gpt2():
    """GPT-2 in its real size: tokens behind a cache -> numbers of the vocabulary, and the longer cache."""
    module = made("GPT2Config", "GPT2LMHeadModel", gain=0.7, bos_token_id=50256, eos_token_id=50256, pad_token_id=None)
    return withCache(module, "logits", 50257, 12, 64, replace(NARROW, layers=12), below=50257)


NETWORKS = {  # name -> function of the scale
    **{kind: partial(decoder, kind) for kind in DECODERS},
    **{f"{kind}-cache": partial(cachedDecoder, kind) for kind in DECODERS},
    "mamba": mamba,
    "mamba-cache": cachedMamba,
    "distilbert": lambda scale: encoder(
        scale, "DistilBertConfig", dim=WIDTH, n_layers=scale.layers, n_heads=HEADS, hidden_dim=2 * WIDTH,
        vocab_size=VOCABULARY, max_position_embeddings=scale.longest),
    "mpnet": lambda scale: encoder(scale, "MPNetConfig", **scale.usual()),
    "xlnet": lambda scale: encoder(
        scale, "XLNetConfig", masked=torch.float32, d_model=WIDTH, n_layer=scale.layers, n_head=HEADS,
        d_inner=2 * WIDTH, vocab_size=VOCABULARY),
    "modernbert": lambda scale: encoder(
        scale, "ModernBertConfig", **scale.usual(), local_attention=16, cls_token_id=0, sep_token_id=1),
    "t5": t5,
    "bart": bart,
    "whisper": whisper,
    "wav2vec2": lambda scale: listener(scale, "Wav2Vec2Config", feat_extract_norm="group"),
    "hubert": lambda scale: listener(scale, "HubertConfig", feat_extract_norm="layer", do_stable_layer_norm=True),
    "bert-base": lambda _: encoder(NARROW, "BertConfig", width=768, below=30522, gain=1.0),
    "gpt2-cache": lambda _: gpt2(),
}

"""How many parameters an encoder-decoder has, by a closed formula and by counting."""

from __future__ import annotations

from heedful.layers.blocks import StackConfig
from heedful.layers.kv_cache import padded_length
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig

# The paper's Table 3; ours at a shared vocabulary of 37,000 come to 63.1 and 214.2 million.
PAPER_MILLIONS = {"translation_base": "65", "translation_big": "213"}


def formula(config: EncoderDecoderConfig) -> int:
    """The number of parameters, from the settings alone."""
    assert config.vocabulary_size is not None
    tables = 1 + (not config.shared_embeddings) + (not config.tied_output)
    positions = 0
    if config.positions == "learned":
        positions = 2 * padded_length(config.max_length + 1) * config.width
    return (
        tables * config.vocabulary_size * config.width
        + positions
        + _stack(config.width, config.encoder, attentions=1)
        + _stack(config.width, config.decoder, attentions=2)
    )


def _stack(width: int, config: StackConfig, attentions: int) -> int:
    heads = config.attention.num_heads
    key = config.attention.key_width or width // heads
    value = config.attention.value_width or key
    inner = config.feed_forward.inner_width or 4 * width
    attention = (width + 1) * heads * (2 * key + value) + (heads * value + 1) * width
    feed_forward = (width + 1) * inner + (inner + 1) * width
    norm = 2 * width
    block = attentions * (attention + norm) + feed_forward + norm
    return config.num_layers * block + (norm if config.norm == "pre" else 0)


def parameter_table(model: EncoderDecoder) -> dict[str, str]:
    """The count by part, to be shown."""
    groups = {"embeddings": 0, "encoder": 0, "decoder": 0}
    for name, parameter in model.named_parameters():
        part = name.split(".")[0].removesuffix("_norm")
        groups[part if part in groups else "embeddings"] += parameter.numel()
    total = sum(groups.values())
    return {"parameters": f"{total:,}", **{f"  {part}": f"{count:,}" for part, count in groups.items()}}

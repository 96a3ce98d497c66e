"""How much memory and work it takes to compute an input in one go, estimated before it is computed."""

from __future__ import annotations

from typing import Any

from heedful.errors import UserError
from heedful.settings.positions import traits_of
from heedful.tasks.encoding.pipeline import DEFAULT_BATCH_SIZE

# The most patches of an image at another resolution, and attention weights of one answer: others wait meanwhile.
MOST_PATCHES = 2**12
MOST_WEIGHTS = 2**23
FLOAT_BYTES = 4


def size_of_text(pipeline: Any, text: Any, options: dict[str, Any]) -> int:
    """Bytes of what one block makes of a text, with as many tokens as bytes, but no more than the model reads."""
    return min(_most_tokens(text), int(pipeline.model.max_length)) * _token_bytes(pipeline)


def size_of_whole_text(pipeline: Any, text: Any, options: dict[str, Any]) -> int:
    """Bytes of what one block makes of a text that is computed to its end, in batches of windows."""
    return min(_most_tokens(text), DEFAULT_BATCH_SIZE * int(pipeline.model.max_length)) * _token_bytes(pipeline)


def size_of_image(pipeline: Any, image: str, options: dict[str, Any]) -> int:
    """Bytes of what one block makes of an image."""
    return num_patches(pipeline, options) * _token_bytes(pipeline)


def size_of_alternatives(pipeline: Any, text: str, options: dict[str, Any]) -> int:
    """Bytes of the decoding state for a text, with one hypothesis per alternative."""
    model = pipeline.model
    length = min(max(_most_tokens(text), _most_tokens(options["prefix"])), model.max_length)
    return int(model.decoding_bytes(options["count"], length)) if hasattr(model, "decoding_bytes") else 0


def size_of_attention(pipeline: Any, text: str, options: dict[str, Any]) -> int:
    """Bytes of the attention weights; more of them than the server gives are refused before they are computed."""
    longest = pipeline.model.max_length
    source, target = (_length(pipeline, each) for each in (text, options.get("target") or ""))
    settings = pipeline.config.model
    if hasattr(settings, "encoder") and hasattr(settings.encoder, "attention"):
        weights = _heads(settings.encoder) * source**2 + _heads(settings.decoder) * (target**2 + target * source)
    elif hasattr(settings, "stack"):
        read = source + target
        extends = hasattr(settings, "positions") and traits_of(settings.positions).extends
        weights = _heads(settings.stack) * (read if extends else min(read, longest)) ** 2
    else:  # of a recurrent model
        weights = target * source
    return FLOAT_BYTES * check_weights(weights)


def size_of_explanation(pipeline: Any, text: str, options: dict[str, Any]) -> int:
    """Bytes of all tensors of a computation, including its attention weights, which must not be too many."""
    read = _length(pipeline, text) + _length(pipeline, options.get("target") or "")
    return size_of_attention(pipeline, text, options) + read * int(pipeline.config.model.activation_bytes())


def size_of_image_explanation(pipeline: Any, image: str, options: dict[str, Any]) -> int:
    """The same for an image."""
    patches = num_patches(pipeline, options) * int(pipeline.config.model.activation_bytes())
    return size_of_image_attention(pipeline, image, options) + patches


def size_of_image_attention(pipeline: Any, image: str, options: dict[str, Any]) -> int:
    """Bytes of the weights between the patches of an image, which must not be too many."""
    return FLOAT_BYTES * check_weights(_heads(pipeline.config.model.stack) * num_patches(pipeline, options) ** 2)


def check_weights(weights: int) -> int:
    """This number of attention weights, if it is not too large."""
    if weights > MOST_WEIGHTS:
        raise UserError(
            f"there are {weights:,} attention weights, and the server gives at most {MOST_WEIGHTS:,}: send something "
            "shorter, or look into it with `heedful inspect`"
        )
    return weights


def num_patches(pipeline: Any, options: dict[str, Any]) -> int:
    """How many patches an image has at the requested resolution, if they are not too many."""
    given = options["resolution"]
    patches = int(pipeline.num_patches(pipeline.size(tuple(given) if isinstance(given, list) else given)))
    if given is not None and patches > MOST_PATCHES:
        raise UserError(
            f"at this resolution an image has {patches:,} patches, and the server takes at most {MOST_PATCHES:,}"
        )
    return patches


def _length(pipeline: Any, text: str) -> int:
    return len(pipeline.tokenizer.encode(text))


def _heads(stack: Any) -> int:
    return int(stack.num_layers * stack.attention.num_heads)


def _token_bytes(pipeline: Any) -> int:
    """Bytes of a token in one block; training keeps those of all blocks."""
    settings = pipeline.config.model
    return max(1, int(2 * settings.activation_bytes() / settings.stack.num_layers))


# The most tokens that are computed in one turn, unless a single input has more.
MOST_WORK = 2**13
# Bytes of text that are tokenized in the time it takes to compute one token, at a guess.
BYTES_PER_TOKEN = 32


def work_of_text(pipeline: Any, text: Any, options: dict[str, Any]) -> int:
    """The work on a text that is computed only as far as the model takes it, though all of it is tokenized."""
    length = _most_tokens(text)
    return min(length, int(pipeline.model.max_length)) + length // BYTES_PER_TOKEN


def work_of_whole_text(pipeline: Any, text: Any, options: dict[str, Any]) -> int:
    """The work on a text that is computed to its end, however long it is."""
    return _most_tokens(text)


def work_of_image(pipeline: Any, image: str, options: dict[str, Any]) -> int:
    """The work on an image, all of which is read."""
    return num_patches(pipeline, options) + len(image) // BYTES_PER_TOKEN


def work_of_a_turn(pipeline: Any, given: Any, options: dict[str, Any]) -> int:
    """The work on an input that is computed by itself anyway."""
    return MOST_WORK


def _most_tokens(text: Any) -> int:
    """The tokens of a text or a pair, if each is a single byte."""
    texts = [text] if isinstance(text, str) else text
    return sum(len(each.encode("utf-8", "surrogatepass")) for each in texts)

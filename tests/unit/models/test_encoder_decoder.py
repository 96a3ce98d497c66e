import pytest
import torch

from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig


def model(norm: str = "post", **settings) -> EncoderDecoder:
    torch.manual_seed(1)
    stack = StackConfig(num_layers=3, norm=norm, attention=AttentionConfig(num_heads=2))
    return EncoderDecoder(EncoderDecoderConfig(53, 32, 41, encoder=stack, decoder=stack, **settings)).eval()


def test_embeddings_and_output_share_one_matrix_unless_told_otherwise() -> None:
    shared = model()
    assert shared.output.weight is shared.source_embedding.table.weight
    assert shared.source_embedding.table is shared.target_embedding.table
    separate = model(shared_embeddings=False, tied_output=False)
    assert separate.output.weight is not separate.target_embedding.table.weight
    assert separate.source_embedding.table is not separate.target_embedding.table


def test_embeddings_are_scaled_by_the_root_of_the_width() -> None:
    embedding = model(positions="none").source_embedding
    ids = torch.tensor([[5, 7]])
    torch.testing.assert_close(embedding(ids, torch.arange(2)), embedding.table(ids) * 32**0.5)


def test_a_pre_norm_stack_begins_quietly() -> None:
    def spread(network: EncoderDecoder) -> float:
        return network.decoder[0].feed_forward.output_projection.weight.std().item()

    assert spread(model("pre")) == pytest.approx(spread(model("post")) / (3 * 3) ** 0.5, rel=1e-5)


def test_encoder_and_decoder_may_differ_in_depth_and_heads() -> None:
    encoder = StackConfig(num_layers=1, attention=AttentionConfig(num_heads=4))
    decoder = StackConfig(num_layers=2, attention=AttentionConfig(num_heads=2, key_width=6, value_width=10))
    network = EncoderDecoder(EncoderDecoderConfig(53, 32, 41, "rotary", encoder=encoder, decoder=decoder))
    logits = network(torch.randint(3, 53, (2, 7)), torch.randint(3, 53, (2, 11)), torch.tensor([7, 5]))
    assert logits.shape == (2, 11, 53)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "relative_buckets", "none"])
def test_a_resized_model_takes_longer_sequences(positions: str) -> None:
    network = model(positions=positions)
    long = torch.randint(3, 53, (2, 97)), torch.randint(3, 53, (2, 89)), torch.tensor([97, 71])
    network.resize_positions(97)
    assert torch.isfinite(network(*long)).all()
    assert network.longest_target(5) == (97 if positions in ("learned", "rotary") else None)

"""An XLNet must learn, in any order, that tokens come again after a fixed distance."""

from pathlib import Path

import numpy as np
import torch

from heedful.models.xlnet import XLNet
from heedful.prepared.folder import PreparedFolder
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.xlnet import OrderConfig, XLNetConfig
from heedful.tasks.language_modeling.data import PreparedText
from heedful.tasks.language_modeling.permutation import PermutationTask
from heedful.tasks.language_modeling.task import LanguageTask, text_loss
from heedful.tasks.task import LearningSettings
from heedful.text.tokenizer import Tokenizer

VOCABULARY, PERIOD, REPEATS = 19, 5, 20


def repetitive(blocks: int, seed: int) -> np.ndarray:
    """Blocks of a few random tokens that are repeated."""
    words = np.random.default_rng(seed).integers(3, VOCABULARY, (blocks, PERIOD)).astype(np.uint16)
    return np.tile(words, REPEATS).ravel()


def test_what_repeats_is_predicted_from_the_left_and_from_memory() -> None:
    torch.manual_seed(1)
    stack = StackConfig(2, "post", 0.0, AttentionConfig(2, bias=False), FeedForwardConfig(64, "gelu"))
    model = XLNet(XLNetConfig(VOCABULARY, 32, 40, 20, orders=OrderConfig(1.0, 0.5), stack=stack)).train()
    valid = repetitive(30, seed=2)
    settings = LearningSettings(480, 0.0, seed=1)
    tokenizer = Tokenizer.of_characters(["abcdefghijklmnopqrstuvwxyz"])
    folder = PreparedFolder(Path(), "", {"valid_bytes": len(valid)}, Path("report"))
    data = PreparedText(repetitive(3000, seed=1), valid, tokenizer, folder)
    task = PermutationTask(model, LanguageTask(model, data, 32, settings))
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-3, betas=(0.9, 0.98))
    for step, indices in enumerate(task.epoch_batches(0)[:200]):
        batch = task.collate(indices)
        optimizer.param_groups[0]["lr"] = 8e-3 * min(1.0, (step + 1) / 20) * (1 - step / 200)
        optimizer.zero_grad()
        (task.loss(task.model, batch)[0] / batch.num_targets).backward()
        optimizer.step()
    model.eval()
    total, tokens = text_loss(model, valid, 4096)
    # Guessing costs 2.8; the best possible is about 0.5, for the tokens that are the first of their block or window.
    assert total / tokens < 1.0 < np.log(VOCABULARY - 3) / 2
    with torch.inference_mode():
        ids = torch.from_numpy(repetitive(8, seed=3).astype(np.int64)).view(8, -1)[:, :35]
        # From the memory alone: the tokens of the segment are not shown.
        memories = model.remember(ids[:, :20])
        nothing = torch.zeros(8, 15, 15, dtype=torch.bool)
        mapping = torch.eye(15)[:PERIOD].expand(8, -1, -1)
        predicted = model(ids[:, 20:], nothing, mapping, memories).argmax(-1)
        assert (predicted == ids[:, 20 : 20 + PERIOD]).float().mean() >= 0.9

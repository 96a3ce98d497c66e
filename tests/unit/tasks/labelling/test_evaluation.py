"""What an evaluation remarks on the texts that it reads."""

from dataclasses import replace
from pathlib import Path

from heedful.model_folder import LoadedModel
from heedful.tasks.labelling.classifier import Classifier
from heedful.tasks.labelling.evaluation import evaluate_labels
from tests.small_folders import small_models


def test_each_kind_of_remark_counts_its_texts(tmp_path: Path) -> None:
    model, tokenizer, config = small_models()["classification"]
    classifier = Classifier(LoadedModel(model.eval(), replace(config, pairs_only=True), tokenizer))
    texts = ["red dog", "red " * 31, "dog", "dog " * 37, "dog red"]
    (tmp_path / "test.tsv").write_text("".join(f"yes\t{text}\n" for text in texts))
    said: list[str] = []
    evaluate_labels(classifier, [str(tmp_path / "test.tsv")], 3, said.append)
    assert [each.partition(" texts: the first ")[::2] for each in said] == [
        ("2 of 5", "is longer than the 29 tokens that the model takes: its middle was not read"),
        ("5 of 5", "is a single text, but this model learned from pairs: its label means little"),
    ]

"""What classifiers and taggers of texts compute for clients."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from heedful.tasks.classification import label_document
from heedful.tasks.declaration import Options
from heedful.tasks.direct_cost import size_of_text, size_of_whole_text, work_of_text, work_of_whole_text
from heedful.tasks.direct_verb import DirectVerb


def _classify(pipeline: Any, texts: list[Any], options: Options) -> list[Any]:
    return [label_document(each) for each in pipeline.classify(texts)]


def _tag(pipeline: Any, texts: list[str], options: Options) -> list[Any]:
    return [{"words": [asdict(word) for word in words]} for words in pipeline.tag(texts)]


CLASSIFY = DirectVerb(_classify, True, size_of_text, work_of_text)
TAG = DirectVerb(_tag, True, size_of_whole_text, work_of_whole_text)

"""Model sizes and their training recipes, one function each; a preset's name is its function's name."""

from __future__ import annotations

from heedful.presets import encoder, language, recurrent, translation, vision, xlnet

PRESETS = {
    preset.__name__: preset
    for preset in (
        translation.translation_tiny,
        translation.translation_small,
        translation.translation_base,
        translation.translation_big,
        translation.translation_100b,
        encoder.encoder_tiny,
        encoder.encoder_small,
        encoder.masked_tiny,
        encoder.masked_small,
        encoder.bert_base,
        encoder.bert_large,
        recurrent.recurrent_tiny,
        language.language_tiny,
        language.language_small,
        language.gpt2_small,
        language.gpt2_medium,
        language.gpt2_large,
        language.gpt2_xl,
        language.gpt3_small,
        language.gpt3_medium,
        language.gpt3_large,
        language.gpt3_xl,
        language.gpt3_2_7b,
        language.gpt3_6_7b,
        language.gpt3_13b,
        language.gpt3_175b,
        xlnet.xlnet_tiny,
        xlnet.xlnet_base,
        xlnet.xlnet_large,
        vision.vision_tiny,
        vision.vit_tiny_16,
        vision.vit_tiny_32,
        vision.vit_small_16,
        vision.vit_small_32,
        vision.vit_base_16,
        vision.vit_base_32,
        vision.vit_large_16,
        vision.vit_large_32,
    )
}

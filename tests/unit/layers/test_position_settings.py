"""From settings to a position scheme: a name, or a table."""

import pytest

from heedful.config import from_dict, to_dict
from heedful.errors import UserError
from heedful.layers.positions import SCHEMES, PositionScheme, make_positions
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.position_scheme import PositionConfig, PositionSizes, SchemeTraits
from heedful.settings.positions import POSITION_SCHEMES, config_of, traits_of
from heedful.settings.rotary import RotaryConfig, RotaryScaling


def read(positions: object) -> DecoderOnlyConfig:
    return from_dict(DecoderOnlyConfig, {"vocabulary_size": 11, "positions": positions}, "model")


@pytest.mark.parametrize("name", SCHEMES)
def test_a_name_is_read_and_written_as_a_name(name: str) -> None:
    settings = read(name)
    assert settings.positions == name and to_dict(settings)["positions"] == name
    assert f"{name} positions" in settings.summary()
    made = make_positions(name, PositionSizes(12, 4, 7, 3))
    assert type(made) is SCHEMES[name] and config_of(name).scheme == name


def test_a_table_is_read_and_written_as_a_table() -> None:
    scaling = {"kind": "llama3", "factor": 8, "original_length": 4096}
    settings = read({"scheme": "rotary", "base": 500000, "scaling": scaling})
    assert settings.positions == RotaryConfig(base=500000.0, scaling=RotaryScaling("llama3", 8.0, original_length=4096))
    assert read(to_dict(settings)["positions"]) == settings
    assert "rotary positions" in settings.summary()


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ("rotory", r"setting 'model.positions' is 'rotory': did you mean 'rotary'\?"),
        (7, "setting 'model.positions' is 7: choose one of sinusoidal, "),
        ({"base": 7.0}, "setting 'model.positions.scheme' is missing: choose one of"),
        ({"scheme": ["rotary"]}, "setting 'model.positions.scheme' is "),
        ({"scheme": "alibi", "base": 7.0}, "unknown setting 'model.positions.base'"),
        ({"scheme": "rotary", "bas": 7.0}, "did you mean 'base'"),
        ({"scheme": "rotary", "scaling": {"kind": "yarn", "factor": 2.0}}, "'model.positions.scaling.kind' is 'yarn'"),
    ],
)
def test_mistakes_are_named(positions: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(positions)


def test_mistakes_in_python_are_named_too() -> None:
    with pytest.raises(UserError, match="did you mean 'alibi'"):
        DecoderOnly(DecoderOnlyConfig(11, 12, 7, "alibbi"))
    with pytest.raises(UserError, match="take their settings from a RotaryConfig"):
        DecoderOnly(DecoderOnlyConfig(11, 12, 7, PositionConfig("rotary")))


def test_what_is_known_of_schemes_is_what_they_do() -> None:
    assert list(POSITION_SCHEMES) == list(SCHEMES)
    for name, scheme in SCHEMES.items():
        traits, sizes = traits_of(name), PositionSizes(12, 4, 7, 3)
        made = make_positions(name, sizes)
        assert traits.extends == made.extends and traits.adds_bias == scheme.uses("bias")
        assert traits.num_parameters(sizes, config_of(name)) == sum(each.numel() for each in made.parameters())
        tables = [each for each in made.buffers() if len(each) == sizes.length]
        assert traits.computes_table == bool(tables)


def test_a_new_scheme_is_a_class_and_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(PositionScheme):
        def add(self, x_BTD, positions):
            return x_BTD + positions[..., None]

    monkeypatch.setitem(POSITION_SCHEMES, "mine", SchemeTraits())
    monkeypatch.setitem(SCHEMES, "mine", Mine)
    assert isinstance(DecoderOnly(read("mine")).positions, Mine)
    assert Mine.uses("add") and not Mine.uses("rotate") and not Mine.uses("bias")

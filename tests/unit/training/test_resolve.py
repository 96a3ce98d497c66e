import pytest

from heedful.errors import UserError
from heedful.tasks.translation.job import TranslationData
from heedful.training.resolve import check_layout, check_settings, fill_in
from heedful.training.run_config import RunConfig


def request(family: str | None = None, preset: str | None = None) -> RunConfig:
    return RunConfig("out", TranslationData(("a.en",), ("a.de",)), preset, family=family)


@pytest.mark.parametrize(
    ("family", "preset"), [("recurrent", None), (None, "recurrent_tiny"), ("recurrent", "recurrent_tiny")]
)
def test_a_family_is_asked_for_by_its_name_or_by_a_preset(family: str | None, preset: str | None) -> None:
    check_settings(request(family, preset))


def test_a_family_and_a_preset_of_another_one_are_refused() -> None:
    with pytest.raises(UserError, match="'translation_tiny' is of the family 'encoder_decoder', not 'recurrent'"):
        check_settings(request("recurrent", "translation_tiny"))
    with pytest.raises(UserError, match="unknown family 'recurent' for this job: did you mean 'recurrent'"):
        check_settings(request("recurent"))


def test_a_budget_leaves_the_recipe_of_recurrent_models_as_it_is() -> None:
    budget = {"training": {"limit": {"budget": "20m"}}}
    with_budget, without = fill_in("recurrent_tiny", budget).training, fill_in("recurrent_tiny", {}).training
    assert with_budget.schedule == without.schedule
    assert with_budget.ema_decay == without.ema_decay


def test_a_layout_that_cannot_be_is_refused_before_there_is_data() -> None:
    def asking(preset: str | None = None, **axes: int) -> RunConfig:
        return RunConfig("out", TranslationData(("a.en",), ("a.de",)), preset, {"training": {"parallel": axes}})

    check_layout(asking("translation_tiny", tensor=2), 6)
    check_layout(asking(tensor=3), 6)  # how many heads there are is for the data to say
    with pytest.raises(UserError, match="asks for shard 2 = 2 processes, but there are 3"):
        check_layout(asking(shard=2), 3)
    with pytest.raises(UserError, match=r"tensor is 3, but encoder.* has 4 heads"):
        check_layout(asking("translation_tiny", tensor=3), 6)
    with pytest.raises(UserError, match=r"tensor is 2, but a Recurrent.* cannot be split over processes"):
        check_layout(asking("recurrent_tiny", tensor=2), 2)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("width", 10**9, "the settings do not make a model: "),
        ("vocabulary_size", 10**11, "model.vocabulary_size is 100000000000, but must be at most 4,194,304"),
        ("encoder.num_layers", 10**9, "model.encoder.num_layers is 1000000000, but must be at most 10,000"),
        ("encoder.feed_forward.inner_width", 10**11, "the model has at least .* billion numbers, which take .* GB"),
        ("max_length", 10**12, "the model has at least .* choose smaller settings"),
    ],
)
def test_absurd_sizes_are_refused_before_there_is_data(name: str, value: int, message: str) -> None:
    settings: dict = {}
    *tables, last = ["model", *name.split(".")]
    place = settings
    for table in tables:
        place = place.setdefault(table, {})
    place[last] = value
    run = RunConfig("out", TranslationData(("a.en",), ("a.de",)), "translation_tiny", settings)
    check = check_layout if message.startswith("the model has") else check_settings
    with pytest.raises(UserError, match=message):
        check(run, *[1] * (check is check_layout))

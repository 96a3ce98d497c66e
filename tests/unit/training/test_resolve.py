import pytest

from heedful.errors import UserError
from heedful.tasks.translation.job import TranslationData
from heedful.training.resolve import check_settings, fill_in
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

from heedful.tasks.task import Validation


def test_wrong_answers_count_first_where_they_are_counted_and_the_loss_among_equals() -> None:
    assert Validation(0.9, wrong=0.1).rank < Validation(0.2, wrong=0.2).rank
    assert Validation(0.2, wrong=0.1).rank < Validation(0.9, wrong=0.1).rank
    assert Validation(0.2).rank < Validation(0.3).rank

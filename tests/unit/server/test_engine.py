"""What becomes of requests whose sentences fail, with schedulers that only pretend."""

from types import SimpleNamespace

from heedful.server.worker.engine import Engine, _Place


class Requester:
    def __init__(self, engine, indices, fails=False):
        self.engine, self.indices, self.fails, self.told = engine, indices, fails, []

    def done(self, index, hypotheses):
        if self.fails:
            raise KeyError(index)
        self.told.append((index, hypotheses))

    def failed(self, error):
        for index in self.indices:
            self.engine.cancel(index)
        self.told.append(repr(error))


def test_a_request_that_cannot_be_answered_leaves_the_others_alone():
    cancelled = []
    results = [SimpleNamespace(index=index, hypotheses=[index]) for index in (3, 5, 7)]
    scheduler = SimpleNamespace(step=lambda: results, num_running=1, idle=False, cancel=cancelled.append)
    engine = Engine({})
    engine.schedulers["key"] = scheduler
    broken, whole = Requester(engine, [3, 5, 11], fails=True), Requester(engine, [7])
    engine.places = {index: _Place("key", each) for each in (broken, whole) for index in each.indices}
    engine.step()
    assert broken.told == ["KeyError(3)"] and whole.told == [(7, [7])]
    assert cancelled == [5, 11] and not engine.busy

"""The interface between machines, and calls that do not return."""

import os
import sys
import threading

import pytest

from heedful.training.parallel import network
from heedful.training.parallel.patience import within

linux = pytest.mark.skipif(sys.platform != "linux", reason="the interface is chosen on Linux")


@linux
def test_processes_of_one_machine_speak_over_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "as-set")
    network.choose_interface()
    assert os.environ["GLOO_SOCKET_IFNAME"] == "as-set"
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    network.choose_interface()
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"


@linux
def test_a_name_that_is_a_loopback_address_leads_to_the_default_route(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"node1": "127.0.1.1", network.ELSEWHERE: "10.1.2.3", "node2": "10.1.2.4"}
    monkeypatch.setattr(network, "_own_address", addresses.get)
    monkeypatch.setattr(network, "_interface_of", lambda address: f"with {address}")
    assert network.interface_towards("node1") == "with 10.1.2.3"
    assert network.interface_towards("node2") == "with 10.1.2.4"
    addresses[network.ELSEWHERE] = "127.0.0.1"
    assert network.interface_towards("node1") is None


@linux
def test_the_system_tells_which_interface_has_an_address() -> None:
    assert network._own_address("127.0.0.1") == "127.0.0.1"
    assert network._interface_of("127.0.0.1") == "lo"
    assert network._interface_of("192.0.2.77") is None


def test_a_call_that_does_not_return_is_given_up() -> None:
    ends = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.1 s"):
        within(0.1, ends.wait)
    ends.set()
    assert within(20.0, lambda: 7) == 7
    with pytest.raises(KeyError):
        within(20.0, lambda: {}["missing"])

import socket

import pytest

from heedful.server.channel import Channel, frame


def test_messages_arrive_whole_and_in_order_however_they_are_cut():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(theirs)
        assert channel.receive(wait=False) == []
        data = frame([1, "two"]) + frame([b"x" * 100_003])
        ours.sendall(data[:7])
        assert channel.receive(wait=False) == []
        ours.sendall(data[7:41])
        assert channel.receive(wait=True) == [1, "two"]
        ours.sendall(data[41:])
        assert channel.receive(wait=True) == [b"x" * 100_003]
        channel.send([])
        channel.send([{"a": 1}])
        assert Channel(ours).receive(wait=True) == [{"a": 1}]


def test_the_end_of_the_other_side_is_noticed():
    ours, theirs = socket.socketpair()
    with theirs:
        ours.close()
        with pytest.raises(EOFError):
            Channel(theirs).receive(wait=True)


def test_files_may_have_any_number():
    fcntl, resource = pytest.importorskip("fcntl"), pytest.importorskip("resource")
    soft, hard = before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("files have no such numbers here")
    ours, theirs = socket.socketpair()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    try:
        with ours, theirs, socket.socket(fileno=fcntl.fcntl(theirs, fcntl.F_DUPFD, 1030)) as high:
            ours.sendall(frame(["a"]))
            assert Channel(high).receive(wait=True) == ["a"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

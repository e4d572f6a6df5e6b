"""A taken port is refused by name before anything starts."""

import os
import socket

import pytest

from domain.errors import AddressTaken, ConfigError
from serving.address import RAY_WORKER_PORTS, check_free, free_port, free_range, owner_of


def test_a_taken_port_is_named_with_its_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(AddressTaken, match=rf"Port {port} on 127\.0\.0\.1 is taken by .*pid {os.getpid()}"):
            check_free("127.0.0.1", port)
        assert str(os.getpid()) in owner_of(port)
    check_free("127.0.0.1", port)
    assert owner_of(port) == ""


def test_a_port_shared_by_reuse_is_taken_too() -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(AddressTaken):
            check_free("127.0.0.1", listener.getsockname()[1])


def test_a_listener_on_all_interfaces_takes_the_port_on_each() -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener, pytest.raises(AddressTaken):
        check_free("127.0.0.1", listener.getsockname()[1])


def test_a_host_that_is_no_address_here_is_a_setting_to_mend() -> None:
    with pytest.raises(ConfigError, match="is not an address"):
        check_free("no.such.host.invalid", 8000)


def test_a_free_port_is_free_and_outside_of_rays_range() -> None:
    port = free_port()
    check_free("127.0.0.1", port)
    assert not RAY_WORKER_PORTS[0] <= port <= RAY_WORKER_PORTS[1]


def test_a_free_range_steps_over_a_taken_port() -> None:
    first = free_range(30_000, 10)
    with socket.create_server(("127.0.0.1", first + 5)):
        assert free_range(first, 10, stop=first + 1000) > first

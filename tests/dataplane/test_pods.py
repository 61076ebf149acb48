"""An agent as it runs in a pod: it begins from a seed, tells when it is ready, leaves without a
request lost, and writes to its output only. Real Envoy, no cluster."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from amphitrite.dataplane.envoy.xds.certificate_files import CertificateFiles
from amphitrite.dataplane.machine import processes
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.seed import encode_seed

from ..certificate import write_certificate
from .agents import BEARER, INFER, RunningAgent, cluster, eventually, serves, table
from .conftest import MakeAgent
from .test_changes import HELD, load
from .upstream import Upstream

pytestmark = pytest.mark.serving


def served(agent: RunningAgent) -> str:
    """The deployment that answers now."""
    return str(agent.client.post(INFER, headers=BEARER, json={}).headers.get("azureml-model-deployment"))


def plant(agent: RunningAgent, seed: RoutingTable | bytes) -> None:
    path = agent.state.parent / "routing-table.json.gz"
    path.write_bytes(seed if isinstance(seed, bytes) else encode_seed(seed))
    agent.options = ("--seed", str(path))


def test_a_new_proxy_serves_from_its_seed_without_a_control_plane(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.control_plane.stop()
    with Upstream("blue") as blue, Upstream("green") as green:
        clusters = [cluster("blue", [blue]), cluster("green", [green])]
        plant(agent, table(7, clusters, [("blue", 100)]))
        agent.start()
        eventually(lambda: agent.health() == 200)
        eventually(lambda: served(agent) == "blue")
        # The control plane has moved on in the meantime.
        agent.control_plane.start()
        agent.put_in_force(table(9, clusters, [("green", 100)]))
        assert served(agent) == "green"
        # Its own table is newer than the seed from now on.
        agent.control_plane.stop()
        agent.terminate()
        agent.start()
        eventually(lambda: agent.health() == 200)
        eventually(lambda: served(agent) == "green")


def test_a_seed_that_is_newer_than_the_saved_table(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue, Upstream("green") as green:
        clusters = [cluster("blue", [blue]), cluster("green", [green])]
        agent.put_in_force(table(1, clusters, [("blue", 100)]))
        agent.control_plane.stop()
        agent.terminate()
        plant(agent, table(2, clusters, [("green", 100)]))
        agent.start()
        eventually(lambda: agent.health() == 200)
        eventually(lambda: served(agent) == "green")


def test_a_torn_seed_is_told_and_the_proxy_waits_for_a_table(make_agent: MakeAgent) -> None:
    agent = make_agent()
    with Upstream("blue") as blue:
        some = table(3, [cluster("blue", [blue])], [("blue", 100)])
        plant(agent, encode_seed(some)[:-10])
        agent.start()
        eventually(lambda: "starting without the seed" in agent.log())
        eventually(lambda: "started envoy" in agent.log())
        assert agent.health() is None
        agent.put_in_force(some)
        eventually(lambda: agent.health() == 200)


def test_a_proxy_whose_first_table_is_refused_is_not_ready(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue:
        good = table(1, [cluster("blue", [blue])], [("blue", 100)])
        check = replace(good.clusters[0].health_check, interval_s=0.0)
        agent.control_plane.publish(replace(good, clusters=(replace(good.clusters[0], health_check=check),)))
        agent.control_plane.wait_for(rejected_version=1)
        assert agent.health() in (None, 503)
        agent.put_in_force(replace(good, version=2))
        eventually(lambda: agent.health() == 200)


def test_a_control_plane_that_lags_undoes_nothing(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue, Upstream("green") as green:
        clusters = [cluster("blue", [blue]), cluster("green", [green])]
        agent.put_in_force(table(5, clusters, [("green", 100)]))
        # Another replica answers, which has not seen version 5 yet; and the agent starts anew
        # meanwhile.
        agent.control_plane.publish(table(4, clusters, [("blue", 100)]))
        agent.kill()
        agent.control_plane.reports.clear()
        agent.start()
        agent.control_plane.wait_for(acknowledged_version=5)
        assert served(agent) == "green"
        agent.put_in_force(table(6, clusters, [("blue", 100)]))
        assert served(agent) == "blue"


def test_another_history_with_the_same_version_counts(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue, Upstream("green") as green:
        clusters = [cluster("blue", [blue]), cluster("green", [green])]
        agent.put_in_force(table(5, clusters, [("green", 100)]))
        agent.control_plane.stop()
        agent.control_plane.publish(table(5, clusters, [("blue", 100)]))
        agent.control_plane.start()
        eventually(lambda: served(agent) == "blue")


def test_leaving_fails_health_ends_connections_and_loses_nothing(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.options = ("--linger-s", "2", "--grace-s", "20")
    process = agent.start()
    with Upstream("blue") as blue, ThreadPoolExecutor(1) as pool:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        assert agent.health() == 200
        assert "connection" not in agent.client.post(INFER, headers=BEARER).headers
        held = pool.submit(agent.client.post, HELD, headers=BEARER)
        assert blue.arrived.acquire(timeout=60)
        with load(agent) as seen:
            process.send_signal(signal.SIGTERM)
            eventually(lambda: agent.health() == 503)
            before = seen[200]
            eventually(lambda: seen[200] > before + 20)
            assert agent.client.post(INFER, headers=BEARER).headers["connection"] == "close"
            # The listener closes when the time to linger is over; what is in flight goes on.
            eventually(lambda: agent.health() is None)
        blue.release()
        assert held.result().status_code == 200
        assert process.wait(30) == 0
        # Refused connections are the closed listener's; nothing was lost that had been accepted.
        assert set(seen) <= {200, "ConnectError"}
    assert agent.control_plane.gone == ["test"]


def test_a_proxy_that_was_leaving_is_replaced_by_the_next_agent(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.options = ("--linger-s", "60")
    process = agent.start()
    with Upstream("blue") as blue:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        before = agent.envoy()
        process.send_signal(signal.SIGTERM)
        eventually(lambda: agent.health() == 503)
        agent.kill()
        agent.start()
        eventually(lambda: agent.health() == 200)
        eventually(lambda: serves(agent))
        assert agent.envoy() != before


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_all_addresses_are_listened_on(host: str, make_agent: MakeAgent) -> None:
    if host == "[::]" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    agent = make_agent()
    agent.host = host
    agent.start()
    with Upstream("blue") as blue:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        assert serves(agent)


def test_a_control_plane_that_is_away_does_not_keep_a_leaving_agent(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("blue") as blue:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        agent.control_plane.stop()
        assert agent.terminate() == 0
    assert "could not deregister from the control plane" in agent.log()


def test_an_instance_dies_while_the_control_plane_is_away(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("one") as one:
        two = Upstream("two").__enter__()
        agent.put_in_force(table(1, [cluster("c", [one, two])], [("c", 100)], retry_lost=True))
        agent.control_plane.stop()
        with load(agent) as seen:
            eventually(lambda: bool(one.scored()) and bool(two.scored()))
            two.stop()
            before = seen[200]
            eventually(lambda: seen[200] >= before + 500)
        assert set(seen) == {200}


def test_an_address_that_left_the_table_gets_nothing_new(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.start()
    with Upstream("old") as old, Upstream("new") as new:
        agent.put_in_force(table(1, [cluster("c", [old])], [("c", 100)]))
        with load(agent) as seen:
            eventually(lambda: seen[200] > 50)
            agent.put_in_force(table(2, [cluster("c", [new])], [("c", 100)]))
            agent.control_plane.wait_for(drained_version=2)
            gone = len(old.scored())
            before = seen[200]
            eventually(lambda: seen[200] > before + 200)
        assert (len(old.scored()), set(seen)) == (gone, {200})


def test_everything_is_a_line_of_json_on_the_output(make_agent: MakeAgent) -> None:
    agent = make_agent()
    out, err = agent.state.parent / "out", agent.state.parent / "err"
    agent.options = ("--logs", "-", "--concurrency", "1")
    with open(out, "wb") as stdout, open(err, "wb") as stderr:
        agent.start(stdout, stderr)
    with Upstream("blue") as blue:
        agent.put_in_force(table(1, [cluster("blue", [blue])], [("blue", 100)]))
        assert agent.health() == 200
        wanted = agent.client.post(INFER, headers=BEARER).headers["x-request-id"]
        eventually(lambda: wanted in out.read_text())
        first = agent.envoy()
        processes.send_signal(first, signal.SIGKILL)
        eventually(lambda: agent.envoy() != first)
        eventually(lambda: serves(agent))
        assert agent.terminate() == 0
    requests = [json.loads(line) for line in out.read_text().splitlines()]
    # Probes of the proxy are nobody's requests.
    assert {line["path"] for line in requests} == {INFER}
    lines = [json.loads(line) for line in err.read_text().splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    assert any(line.get("logger", "").startswith("envoy.") for line in lines)
    assert any(line["message"] == "envoy ended" and line["level"] == "error" for line in lines)
    assert not agent.logs.exists()


def test_a_mounted_secret_is_swapped_whole(tmp_path: Path) -> None:
    """As the kubelet does it: files are links through ``..data``, which is itself a link to a
    directory of one time."""

    def content(name: str) -> None:
        directory = tmp_path / name
        directory.mkdir()
        write_certificate(directory)

    content("..1")
    data = tmp_path / "..data"
    data.symlink_to("..1")
    for name in ("server.pem", "server.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    files = CertificateFiles(tmp_path / "server.pem", tmp_path / "server.key")
    first = files.changed()
    assert first is not None and files.changed() is None
    content("..2")
    assert files.changed() is None
    (tmp_path / "..data_tmp").symlink_to("..2")
    (tmp_path / "..data_tmp").replace(data)
    second = files.changed()
    assert second is not None and second != first
    assert files.changed() is None


REAP = """
import ctypes, os, subprocess
from amphitrite.dataplane.machine.processes import reap_orphans
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans become ours, as those of a container do
stays, goes = os.pipe()
told, tell = os.pipe()
parent = os.fork()
if parent == 0:
    if os.fork() == 0:
        os.close(goes)
        os.write(tell, str(os.getpid()).encode())
        os.read(stays, 1)  # Until its parent has ended, and we let it.
    os._exit(0)
os.waitpid(parent, 0)
orphan = int(os.read(told, 20))
own = subprocess.Popen(["true"])
os.close(goes)
for pid in (orphan, own.pid):
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
reaped = reap_orphans([own.pid])
code = own.wait()
print(reaped + reap_orphans([]), code)
"""


def test_orphans_are_reaped_and_own_children_are_not() -> None:
    done = subprocess.run([sys.executable, "-c", REAP], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("1 0\n", "")

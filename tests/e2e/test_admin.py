# SPDX-License-Identifier: Apache-2.0
"""The admin process: HTTP that only shows, tokens, hosts; the control socket and who may change what."""

import http.client
import json
import re
import socket
import subprocess

import pytest

from daemon import AS_ROOT, wait_for
from ports import free_port
from wire import addresses

TOKEN = "3f7c-not-guessed"


@pytest.fixture
def site(baleen_own, upstream):
    port = free_port()
    daemon = baleen_own(start=False, upstream=upstream, lists={"ours": "ads.test\n"}, config={
        "admin": {"listen": f"127.0.0.1:{port}", "token-file": "admin.token"}})
    daemon.write("admin.token", TOKEN + "\n")
    daemon.admin = port
    return daemon.start()


def http_get(daemon, path, method="GET", token=TOKEN, host=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.admin, timeout=5)
    headers = {"Host": host or f"127.0.0.1:{daemon.admin}"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, path, body=body, headers=headers)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


def test_metrics_add_up(site):
    for i in range(5):
        assert addresses(site.ask(f"n{i}.test")) == ["192.0.2.1"]
    site.ask("ads.test", tcp=True)
    status, text = http_get(site, "/metrics")
    assert status == 200
    assert 'baleen_queries_total{transport="udp"} 5' in text
    assert 'baleen_queries_total{transport="tcp"} 1' in text
    assert 'baleen_verdicts_total{verdict="block"} 1' in text
    assert 'baleen_feed_hits_total{feed="ours"} 1' in text
    # One HELP and one TYPE a name, every sample under its own.
    families = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
    assert len({name for name, _ in families}) == len(families)
    current = None
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            current = line.split()[2]
        elif not line.startswith("#"):
            assert re.fullmatch(r'[a-z_:]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?\d+', line), line
            assert re.split(r"[ {]", line)[0] == current


def test_counters_survive_reloads(site):
    site.ask("ads.test")
    for _ in range(4):
        site.reload()
    assert 'baleen_verdicts_total{verdict="block"} 1' in http_get(site, "/metrics")[1]


@pytest.mark.parametrize("path", ["/", "/ready", "/metrics", "//metrics", "/./metrics", "/metrics/", "/metrics;x",
                                  "/%6detrics", "/health/../metrics", "/metrics?x=/health", "/nosuch"])
def test_nothing_but_health_without_the_token(site, path):
    for token in (None, "wrong", TOKEN + "x", TOKEN[:-1]):
        for method in ("GET", "HEAD"):
            assert http_get(site, path, method, token)[0] in (401, 429), (path, token)


def test_pages(site):
    assert http_get(site, "/health", token=None) == (200, "ok\n")
    assert http_get(site, "/ready")[0] == 200
    assert http_get(site, "/nosuch")[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        assert http_get(site, "/metrics", method, body="{}")[0] in (405, 501), method


@pytest.mark.parametrize("host,served", [("evil.test", False), ("evil.test:80", False), ("localhost.evil.test", False),
                                         ("localhost", True), ("127.0.0.1", True), ("[::1]:9153", True)])
def test_a_name_that_points_here_is_turned_away(site, host, served):
    assert (http_get(site, "/health", host=host)[0] == 200) == served


def test_admin_answers_through_reloads(site):
    for _ in range(6):
        site.reload()
        assert http_get(site, "/health", token=None)[0] == 200
    site.config["admin"]["listen"] = f"127.0.0.1:{free_port()}"
    old, site.admin = site.admin, int(site.config["admin"]["listen"].split(":")[1])
    site.save()
    site.reload()
    assert http_get(site, "/ready")[0] == 200
    site.admin = old

    def gone():
        try:
            http_get(site, "/health")
        except OSError:
            return True
    assert wait_for(gone)


def test_many_idle_connections_do_no_harm(site):
    held = [socket.create_connection(("127.0.0.1", site.admin)) for _ in range(100)]
    assert http_get(site, "/health", token=None)[0] == 200
    for connection in held:
        connection.close()


def control(daemon, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        s.connect(str(daemon.state / "control.sock"))
        s.sendall(line)
        return s.makefile().readline()


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"[]\n", b"nonsense\n", b'{"command":7}\n', b'{"command":"nosuch"}\n',
                                  b'{"command":"feeds","action":"drop"}\n', b'{"command":"feeds","action":"rollback"}\n',
                                  b'{"command":"cache","action":"flush","name":"..."}\n',
                                  b'{"command":"explain"}\n', b'{"command":"explain","name":"x","answers":5}\n'])
def test_control_refuses_what_it_does_not_know(site, line):
    reply = json.loads(control(site, line))
    assert reply["ok"] is False and reply["error"]
    assert json.loads(control(site, b'{"command":"status"}\n'))["ok"] is True


def test_control_is_bounded(site):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(site.state / "control.sock"))
        with pytest.raises(OSError):
            for _ in range(100):
                s.sendall(b"x" * 65536)
    assert json.loads(control(site, b'{"command":"status"}\n'))["ok"] is True


@pytest.mark.skipif(not AS_ROOT, reason="other users are needed")
def test_others_may_look_but_not_change(site):
    """The socket is its group's to look through; changes are root's and the daemon's user's."""
    for folder in (site.folder, *list(site.folder.parents)[:3]):
        folder.chmod(0o755)
    site.state.chmod(0o755)
    ask = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); " \
          "s.sendall(sys.argv[2].encode()+b'\\n'); print(s.makefile().readline())"

    def as_user(user, group, command):
        return subprocess.run(["setpriv", "--reuid", user, "--regid", group, "--clear-groups", "/usr/bin/python3", "-c",
                               ask, str(site.state / "control.sock"), json.dumps(command)],
                              capture_output=True, text=True)
    assert json.loads(as_user("daemon", "nogroup", {"command": "status"}).stdout)["ok"] is True
    for command in ({"command": "reload"}, {"command": "cache", "action": "flush"},
                    {"command": "feeds", "action": "refresh"}):
        assert "may look" in json.loads(as_user("daemon", "nogroup", command).stdout)["error"]
    assert json.loads(as_user("nobody", "nogroup", {"command": "reload"}).stdout)["ok"] is True
    assert as_user("daemon", "daemon", {"command": "status"}).returncode != 0


def test_program_reports_a_change_that_needs_a_restart(site):
    site.config["workers"] = 1
    site.save()
    done = site.run("reload", code=1)
    assert "workers" in done.stderr and "restart" in done.stderr
    assert len(site.workers()) == 2

# SPDX-License-Identifier: Apache-2.0
"""A web server for feeds that behaves as told, over http or over https with a CA of its own."""

import http.server
import ssl
import subprocess
import threading

from ports import free_port


def make_ca(folder):
    """A private CA and a certificate for localhost; gives (ca file, certificate and key)."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Test CA")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", "server.crt", "-days", "2", "-extfile", "names")
    (folder / "server.pem").write_bytes((folder / "server.crt").read_bytes() +
                                        (folder / "server.key").read_bytes())
    return folder / "ca.pem", folder / "server.pem"


class FeedServer:
    """`bodies[path]`: octets, or a function of the request handler."""

    def __init__(self, certificate=None, host="127.0.0.1"):
        self.bodies, self.requests = {}, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                body = outer.bodies.get(self.path)
                if body is None:
                    self.send_error(404)
                elif callable(body):
                    body(self)
                else:
                    self.reply(body)

            def reply(self, body, code=200, length=None, **headers):
                self.send_response(code)
                headers.setdefault("Content_Type", "text/plain")
                for key, value in headers.items():
                    self.send_header(key.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.host, self.port = host, free_port()
        self.server = http.server.ThreadingHTTPServer((host, self.port), Handler)
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"{self.scheme}://{self.host}:{self.port}{path}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

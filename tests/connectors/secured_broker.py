"""A Kafka broker that asks for a login or a client certificate over TLS, with certificates of its own making."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import subprocess
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from deadlines import patient
from token_server import AUDIENCE, TokenServer

from leatstream.dev.jars import broker_jars
from leatstream.dev.java import find_java

USER = "ada"
PASSWORD = 'p"a\\ss; word='
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class SecuredBroker:
    """Listens over TLS; clients must trust ``certificate`` (PEM).

    Attributes:
        bootstrap: asks for SASL: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
        oauth: asks for a token of ``tokens``.
        mutual: asks for the client's certificate; it takes ``client_certificate`` with ``client_key``.
        open: plain text.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        ports = _free_ports(5)
        self.bootstrap, self.open, self.mutual, self.oauth = (f"127.0.0.1:{ports[at]}" for at in (0, 2, 3, 4))
        self._port = ports[0]
        self.certificate, key = certificate()
        (place / "key.pem").write_text(key + self.certificate)
        self.client_certificate, self.client_key = certificate()
        (place / "clients.pem").write_text(self.client_certificate)
        self.tokens = TokenServer(place, *certificate())
        bearer = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"
        quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{ports[1]}",
            "listeners": f"SECURE://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]},INNER://127.0.0.1:{ports[2]},MUTUAL://127.0.0.1:{ports[3]},OAUTH://127.0.0.1:{ports[4]}",
            "advertised.listeners": f"SECURE://127.0.0.1:{ports[0]},INNER://127.0.0.1:{ports[2]},MUTUAL://127.0.0.1:{ports[3]},OAUTH://127.0.0.1:{ports[4]}",
            "listener.security.protocol.map": "SECURE:SASL_SSL,CONTROLLER:PLAINTEXT,INNER:PLAINTEXT,MUTUAL:SSL,OAUTH:SASL_SSL",
            "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.oauth.oauthbearer.sasl.jaas.config": f"{bearer}LoginModule required;",
            "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": f"{bearer}ValidatorCallbackHandler",
            "listener.name.oauth.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self.tokens.jwks.as_uri(),
            # The default of 4.1 looks at no signature, and a listener's own setting is not heard.
            "sasl.oauthbearer.jwt.validator.class": f"{bearer.removesuffix('OAuthBearer')}BrokerJwtValidator",
            "listener.name.oauth.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            "listener.name.mutual.ssl.client.auth": "required",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(place / "clients.pem"),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INNER",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.secure.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
            "listener.name.secure.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
            "listener.name.secure.plain.sasl.jaas.config": f'{module} required user_{USER}="{quoted}";',
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(place / "key.pem"),
            "log.dirs": str(place / "topics"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "auto.create.topics.enable": "false",
            # Whatever is not denied is allowed.
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "super.users": "User:ANONYMOUS",
        }
        escaped = (f"{k}={v.replace(chr(92), chr(92) * 2)}\n" for k, v in properties.items())
        (place / "server.properties").write_text("".join(escaped))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Format and start; returns when the port is open."""
        java = find_java()
        assert java is not None
        command = [str(java.executable), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        allowed = "org.apache.kafka.sasl.oauthbearer.allowed"
        command += [f"-D{allowed}.urls={self.tokens.jwks.as_uri()}", f"-D{allowed}.files={self.tokens.jwks}"]
        command += ["-cp", os.pathsep.join(map(str, broker_jars()))]
        settings = str(self._place / "server.properties")
        with (self._place / "log").open("wb") as log:
            tool = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", settings]
            subprocess.run([*command, *tool], check=True, stdout=log, stderr=log)
            self._process = subprocess.Popen([*command, "kafka.Kafka", settings], stdout=log, stderr=log)
        end = time.monotonic() + patient(60)
        while not _listens(self._port):
            assert self._process.poll() is None, (self._place / "log").read_text()[-3000:]
            assert time.monotonic() < end
            time.sleep(0.1)

        self._add_user()

    def _add_user(self) -> None:
        """Give the user a password for both kinds of SCRAM."""
        from confluent_kafka.admin import (
            AdminClient,
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialUpsertion,
        )

        admin = AdminClient({"bootstrap.servers": self.open, "log_level": 0})
        # The broker takes one change of a user in a request.
        for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion(USER, ScramCredentialInfo(kind, 4096), PASSWORD.encode())
            for outcome in admin.alter_user_scram_credentials([change]).values():
                outcome.result(30)

    def deny(self, topic: str, what: str) -> None:
        """Deny the user one operation, ``READ`` or ``WRITE``, on one topic."""
        from confluent_kafka.admin import (
            AclBinding,
            AclOperation,
            AclPermissionType,
            AdminClient,
            ResourcePatternType,
            ResourceType,
        )

        pattern = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)
        rules = [
            AclBinding(*pattern, f"User:{USER}", "*", AclOperation[what], AclPermissionType.DENY),
            # The first rule of a topic ends what is allowed by having none.
            AclBinding(*pattern, "User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW),
        ]
        admin = AdminClient({"bootstrap.servers": self.open, "log_level": 0})
        for outcome in admin.create_acls(rules).values():
            outcome.result(30)

    def stop(self) -> None:
        """End it."""
        self.tokens.stop()
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def certificate(host: str = "localhost", address: str | None = "127.0.0.1") -> tuple[str, str]:
    """A self-signed certificate for a name and an address, and its key, both PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(host)]
    if address is not None:
        names.append(x509.IPAddress(ipaddress.ip_address(address)))
    addresses = x509.SubjectAlternativeName(names)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(addresses, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM).decode(), private.decode()

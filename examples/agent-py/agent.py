"""An agent from the documents alone: docs/agent-protocol.md, "An agent in outline", line by line. It relays RAW TCP (relay.py) and
rejects the rest. README.md shows how to run it."""

import asyncio
import base64
import hmac
import os
import random
import signal
import sys
import time

import grpc
from noise.connection import Keypair, NoiseConnection

from svc.control.v1 import command_pb2, config_pb2, heartbeat_pb2, metrics_pb2, secure_agent_service_pb2_grpc
from svc.control.v1 import session_pb2 as pb
from relay import apply, table, totals

NODE_ID = os.environ["SVC_AGENT_ID"]
TARGET = os.environ["SVC_CONTROL_ENDPOINT"].removeprefix("http://")
HALVES = base64.urlsafe_b64decode(os.environ["SVC_CONTROL_PSK"].removeprefix("svcpsk1_") + "==")
VERSION = "example-py/1"
PROCESS_ID = os.urandom(16)
OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", 66 * 1024),
]


def derive(info):
    key = hmac.digest(b"svc-control-v1", HALVES[:32], "sha256")  # HKDF, extract
    return hmac.digest(key, info + b"\x01", "sha256")  # and expand to 32 bytes


class Agent:
    def __init__(self):
        self.offset = 0  # service time - own time, in milliseconds
        self.applied = None  # in memory only
        self.last_report = None
        self.failures = 0  # connections in a row without an answer
        self.stopping = asyncio.Event()
        self.revoked = False

    def backoff(self):
        seconds = min(30, 2 ** min(self.failures, 6)) * (0.5 + random.random() / 2)
        self.failures += 1
        return seconds

    async def open_session(self, stub, may_retry=True):
        """Opens a session; if it is refused for clock skew, tries once more at once."""
        noise = NoiseConnection.from_name(b"Noise_KKpsk0_25519_ChaChaPoly_SHA256")
        noise.set_as_initiator()
        noise.set_prologue(b"svc-control-v1\0" + NODE_ID.encode())
        noise.set_psks(derive(b"noise-psk"))
        noise.set_keypair_from_private_bytes(Keypair.STATIC, derive(b"node-static"))
        noise.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, HALVES[32:])
        noise.start_handshake()
        now = max(0, int(time.time() * 1000 + self.offset))
        offer = pb.SessionOffer(timestamp_ms=now, nonce=os.urandom(16), agent_version=VERSION)
        message_1 = bytes(noise.write_message(offer.SerializeToString()))
        request = pb.OpenSessionRequest(node_id=NODE_ID, protocol_version=1, handshake=message_1)
        try:
            answer = await stub.OpenSession(request, timeout=10)
        except grpc.aio.AioRpcError as error:
            server_time = dict(error.trailing_metadata() or ()).get("server-time-ms")
            if server_time is None or not may_retry:
                raise
            self.offset = int(server_time) - time.time() * 1000
            return await self.open_session(stub, False)
        grant = pb.SessionGrant.FromString(bytes(noise.read_message(answer.handshake)))
        if answer.session_id != noise.get_handshake_hash()[:16]:
            raise ValueError("the session id is not that of the handshake")
        return Session(self, stub, noise, answer.session_id, grant)

    async def run(self):
        while not self.stopping.is_set():
            end = pb.SessionClose(reason=pb.SESSION_CLOSE_REASON_REVOKED if self.revoked else 0)
            async with grpc.aio.insecure_channel(TARGET, options=OPTIONS) as channel:
                stub = secure_agent_service_pb2_grpc.SecureAgentServiceStub(channel)
                try:
                    session = await self.open_session(stub)
                    self.revoked = False
                    while session is not None:
                        session, end = await session.run()
                    self.revoked = end.reason == pb.SESSION_CLOSE_REASON_REVOKED
                except Exception as error:  # whatever it is, the next attempt may succeed
                    print(repr(error), file=sys.stderr)
            await self.pause(max(self.backoff(), wait_after(end)))

    async def pause(self, seconds):
        await asyncio.wait([asyncio.ensure_future(self.stopping.wait())], timeout=seconds)


def wait_after(end):
    fixed = {
        pb.SESSION_CLOSE_REASON_SUPERSEDED: 60,
        pb.SESSION_CLOSE_REASON_PROTOCOL_ERROR: 30,
        pb.SESSION_CLOSE_REASON_REVOKED: 300,
    }
    return fixed.get(end.reason, end.retry_after_ms / 1000)


class Session:
    def __init__(self, agent, stub, noise, session_id, grant):
        self.agent, self.stub, self.noise, self.session_id, self.grant = agent, stub, noise, session_id, grant
        self.heartbeat, self.metrics = grant.heartbeat_interval_secs, grant.metrics_interval_secs
        self.sent = self.received = self.unanswered = self.number = 0
        self.end = pb.SessionClose()
        self.outbox, self.snapshots = asyncio.Queue(), asyncio.Queue()

    def send(self, **payload):
        data = pb.AgentPayload(**payload).SerializeToString()
        for at in range(0, max(1, len(data)), 65_000):
            more = at + 65_000 < len(data)
            ciphertext = bytes(self.noise.encrypt(bytes([more]) + data[at : at + 65_000]))
            frame = pb.SecureFrame(sequence=self.sent, ciphertext=ciphertext)
            if self.sent == 0:
                frame.session_id = self.session_id
            self.sent += 1
            self.outbox.put_nowait(frame)

    def request(self, held):
        version, checksum = held or (0, b"")
        self.send(config_request=config_pb2.ConfigRequest(node_id=NODE_ID, config_version=version, checksum=checksum))

    async def frames(self):
        while (frame := await self.outbox.get()) is not None:
            yield frame

    async def read(self, call):
        parts, size = [], 0
        async for frame in call:
            plaintext = bytes(self.noise.decrypt(frame.ciphertext))
            if frame.sequence != self.received or plaintext[:1] not in (b"\0", b"\1") or size > 2**24:
                raise ValueError("a frame out of order")
            self.received += 1
            parts.append(plaintext[1:])
            size += len(plaintext) - 1
            if plaintext[0] == 0:
                self.take(pb.ServicePayload.FromString(b"".join(parts)))
                parts, size = [], 0

    def take(self, payload):
        self.agent.failures = 0
        kind = payload.WhichOneof("payload")
        if kind == "close":
            self.end = payload.close
        if kind == "config_update" and payload.config_update.WhichOneof("update") == "snapshot":
            self.snapshots.put_nowait(payload.config_update.snapshot)
        if kind == "heartbeat_response":
            response, self.unanswered = payload.heartbeat_response, 0
            self.heartbeat, self.metrics = response.heartbeat_interval_secs, response.metrics_interval_secs
            if command_pb2.RELOAD_CONFIG in response.commands:
                self.request(None)

    async def apply(self):
        while True:
            snapshot, agent = await self.snapshots.get(), self.agent
            if agent.applied and snapshot.generation < agent.applied[0]:
                continue
            errors = (await apply(snapshot))[:1000]
            if not errors:
                agent.applied = (snapshot.generation, snapshot.checksum)
            status = config_pb2.CONFIG_APPLY_STATUS_REJECTED if errors else config_pb2.CONFIG_APPLY_STATUS_APPLIED
            agent.last_report = config_pb2.ConfigApplyReport(
                generation=snapshot.generation, checksum=snapshot.checksum, status=status, errors=errors
            )
            self.send(apply_report=agent.last_report)

    async def beat(self):
        while True:
            await asyncio.sleep(self.heartbeat)
            if self.unanswered >= 3:
                raise TimeoutError("three heartbeats without an answer")
            self.unanswered, self.number = self.unanswered + 1, self.number + 1
            self.send(
                heartbeat=heartbeat_pb2.HeartbeatRequest(
                    node_id=NODE_ID, sequence=self.number, runtime_listeners=table()
                )
            )

    async def measure(self):
        while True:
            await asyncio.sleep(self.metrics)
            bandwidth = {"bytes_in": totals["bytes_in"], "bytes_out": totals["bytes_out"]}
            self.send(metrics=metrics_pb2.MetricsReport(connections={"accepted": totals["sessions"]}, bandwidth=bandwidth))

    async def replace(self):
        """Ends when another session is open, or the agent stops."""
        await self.agent.pause((self.grant.rekey_after_secs or 21_600) * (0.9 + random.random() / 5))
        failures = 0
        while not self.agent.stopping.is_set():
            try:
                return await self.agent.open_session(self.stub)
            except Exception:  # keep the old session, try again
                await self.agent.pause(min(30, 2**failures) * (0.5 + random.random() / 2))
                failures += 1

    async def run(self):
        """Runs the session to its end. Returns the one that replaces it, or None, and how it ended."""
        call = self.stub.Control(self.frames())
        self.send(hello=pb.AgentHello(node_id=NODE_ID, agent_version=VERSION, process_id=PROCESS_ID))
        if self.agent.last_report:
            self.send(apply_report=self.agent.last_report)
        self.request(self.agent.applied)
        reading, replacing = asyncio.ensure_future(self.read(call)), asyncio.ensure_future(self.replace())
        others = [asyncio.ensure_future(work()) for work in (self.apply, self.beat, self.measure)]
        await asyncio.wait([reading, replacing, *others], return_when=asyncio.FIRST_COMPLETED)
        following = None
        if replacing.done() and not reading.done():
            following = replacing.result()
            reason = pb.SESSION_CLOSE_REASON_REKEY if following else pb.SESSION_CLOSE_REASON_NORMAL
            self.send(close=pb.SessionClose(reason=reason))
            self.outbox.put_nowait(None)
            await asyncio.wait([reading], timeout=2)
        for task in (reading, replacing, *others):
            task.cancel()
        await asyncio.gather(reading, replacing, *others, return_exceptions=True)
        call.cancel()
        return following, self.end


async def main():
    agent = Agent()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, agent.stopping.set)
    await agent.run()


asyncio.run(main())

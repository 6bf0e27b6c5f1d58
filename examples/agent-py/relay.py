"""The data plane of the example: RAW TCP rules, whose next hop is an endpoint. Everything else is rejected with the field that asks
for it: docs/agent-protocol.md, "Rules"."""

import asyncio
import socket
import struct

from svc.control.v1 import config_pb2, heartbeat_pb2, rules_pb2, transport_pb2


class Listener:
    def __init__(self, rule):
        self.rule, self.server = rule, None
        self.bytes_in = self.bytes_out = self.sessions = 0


running = {}
totals = {"bytes_in": 0, "bytes_out": 0, "sessions": 0}


def count(listener, name, amount):
    setattr(listener, name, getattr(listener, name) + amount)
    totals[name] += amount


def error_of(rule, field, message):
    origin = rule.origin
    fixed = {"l3_network": "tunnels", "route": "backend"}
    path = fixed.get(origin.resource_type, f"hops[{origin.hop_index}].{field}")
    return config_pb2.ConfigApplyError(
        resource_type=origin.resource_type, resource_id=origin.resource_id, path=path, message=message
    )


def objections(snapshot):
    gateway = snapshot.gateway
    rules = [*gateway.http_proxy_rules, *gateway.quic_rules, *gateway.udp_rules, *snapshot.l3.rules]
    for rule in gateway.tcp_proxy_rules:
        raw = rule.mode == rules_pb2.TCP_PROXY_MODE_RAW and not rule.server_names
        plain = rule.outbound.transport_profile.security == transport_pb2.SECURITY_LAYER_RAW
        if not raw or not plain or rule.outbound.WhichOneof("next") != "endpoint":
            rules.append(rule)
    errors = [error_of(rule, "security", "this agent runs RAW TCP to an endpoint only") for rule in rules]
    if snapshot.node.multiplex:
        multiplex = {"resource_type": "connectivity", "resource_id": "connectivity", "path": "multiplex"}
        errors.append(config_pb2.ConfigApplyError(**multiplex, message="this agent does not multiplex"))
    return errors


def reset(writer):
    """Ends a connection with a TCP reset, so that nobody takes a failure for a regular end."""
    if not writer.transport.is_closing():
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def pump(reader, writer, listener, name):
    try:
        while data := await reader.read(65536):
            count(listener, name, len(data))
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        reset(writer)


async def relay(listener, reader, writer):
    host, port = listener.rule.outbound.endpoint.rsplit(":", 1)
    count(listener, "sessions", 1)
    try:
        upstream = await asyncio.open_connection(host.strip("[]"), int(port))
        await asyncio.gather(
            pump(reader, upstream[1], listener, "bytes_in"), pump(upstream[0], writer, listener, "bytes_out")
        )
        upstream[1].close()
    except OSError:
        reset(writer)
    writer.close()


async def apply(snapshot):
    """Applies all of a snapshot, or nothing. Returns why not."""
    errors = objections(snapshot)
    if errors:
        return errors
    wanted = {(rule.listen_addr, rule.listen_port): rule for rule in snapshot.gateway.tcp_proxy_rules}
    opened = {}
    for key, rule in wanted.items():
        if key in running:
            continue
        listener = Listener(rule)
        try:
            listener.server = await asyncio.start_server(lambda r, w, of=listener: relay(of, r, w), *key)
            opened[key] = listener
        except OSError as error:
            errors.append(error_of(rule, "listen_port", str(error)))
    if errors:
        for listener in opened.values():
            listener.server.close()
        return errors
    running.update(opened)
    for key in list(running):
        if key in wanted:
            running[key].rule = wanted[key]
        else:
            running.pop(key).server.close()
    return []


def table():
    """The whole table, for heartbeats."""
    return [
        heartbeat_pb2.RuntimeListener(
            transport="tcp",
            listen_addr=address,
            listen_port=port,
            state="running",
            routes=[
                heartbeat_pb2.RuntimeRoute(
                    service=listener.rule.origin.resource_name,
                    payload="tcp",
                    outer="tcp",
                    security="raw",
                    match_kind="default",
                    next_hop=listener.rule.outbound.endpoint,
                )
            ],
            bytes_in=listener.bytes_in,
            bytes_out=listener.bytes_out,
            total_sessions=listener.sessions,
        )
        for (address, port), listener in running.items()
    ]

/**
 * A separate process with one authenticated agent that sends the dearest heartbeats of their size, at a fixed rate, and
 * as many as the service reads.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Metadata, credentials } from '@grpc/grpc-js';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { LightCredentials } from '../../scripts/simulate/light/fleet.js';
import { LinkMetric, RuntimeListener, RuntimeRoute } from '../../src/gen/svc/control/v1/heartbeat.js';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import {
  AgentPayload,
  OpenSessionRequest,
  OpenSessionResponse,
  SecureFrame,
  SessionOffer,
} from '../../src/gen/svc/control/v1/session.js';
import { limits } from '../../src/kernel/limits.js';
import { splitPayload } from '../../src/channel/noise/fragmenter.js';
import { controlPrologue, initiate, sessionIdOf } from '../../src/channel/noise/handshake.js';
import { agentKeysFrom } from '../../src/channel/noise/control-psk.js';
import { answerParent } from '../child.js';

export interface Flood extends LightCredentials {
  readonly target: string;
  readonly perSecond: number;
  readonly seconds: number;
}

export interface Flooded {
  readonly bytesPerHeartbeat: number;
  readonly entriesPerHeartbeat: number;
  /** Heartbeats that the service's flow control has taken. */
  readonly taken: number;
}

const underWayMax = 32;
const pass = (bytes: Buffer): Buffer => bytes;

/** As many empty links and routes as the limits allow: two bytes each on the wire, an object each once decoded. */
function heavyHeartbeat(): { readonly payload: Uint8Array; readonly entries: number } {
  const { linkMetrics, runtimeRoutes } = limits.agent;
  const routes = Array.from({ length: runtimeRoutes }, () => RuntimeRoute.fromPartial({}));
  const links = Array.from({ length: linkMetrics }, () => LinkMetric.fromPartial({}));
  const value = {
    nodeId: '',
    sequence: 1n,
    timestamp: undefined,
    cpuUsage: 0,
    memoryUsage: 0,
    uptimeSeconds: 0n,
    linkMetrics: links,
    runtimeListeners: [RuntimeListener.fromPartial({ routes })],
  };
  const payload = AgentPayload.encode({ payload: { $case: 'heartbeat', value } }).finish();
  return { payload, entries: linkMetrics + runtimeRoutes + 1 };
}

async function flood({ nodeId, controlPsk, target, perSecond, seconds }: Flood): Promise<Flooded> {
  const keys = agentKeysFrom(controlPsk);
  if (!keys.ok) throw new Error(keys.error);
  const client = new Client(target, credentials.createInsecure(), { 'grpc.max_send_message_length': -1 });
  const offer = SessionOffer.encode({
    timestampMs: BigInt(Date.now()),
    nonce: Buffer.alloc(limits.agent.nonceBytes),
    agentVersion: 'flooder',
  }).finish();
  const party = {
    prologue: controlPrologue(nodeId),
    psk: keys.value.psk,
    localStatic: keys.value.nodeStatic,
    remoteStatic: keys.value.servicePublic,
  };
  const initiated = initiate(party, offer);
  if (!initiated.ok) throw new Error(initiated.error);
  const handshake = Buffer.from(initiated.value.message);
  const request = OpenSessionRequest.encode({ nodeId, protocolVersion: 1, handshake }).finish();
  const answer = await new Promise<Buffer>((resolve, reject) => {
    const { path } = SecureAgentServiceService.openSession;
    client.makeUnaryRequest(path, pass, pass, Buffer.from(request), new Metadata(), (error, response) =>
      response === undefined ? reject(error ?? new Error('no answer')) : resolve(response),
    );
  });
  const finished = initiated.value.finish(OpenSessionResponse.decode(answer).handshake);
  if (!finished.ok) throw new Error(finished.error);
  const noise = finished.value;
  const call: ClientDuplexStream<Buffer, Buffer> = client.makeBidiStreamRequest(
    SecureAgentServiceService.control.path,
    pass,
    pass,
  );
  let ended: string | undefined;
  call.on('error', (error) => (ended = error.message));
  call.on('data', () => undefined);
  let named = false;
  /** Resolves when the service's window has taken the payload. */
  const send = async (payload: Uint8Array): Promise<void> => {
    const written: Promise<void>[] = [];
    for (const plaintext of splitPayload(payload)) {
      const sequence = noise.send.nextSequence;
      const encrypted = noise.send.encrypt(sequence, plaintext);
      if (!encrypted.ok) throw new Error(encrypted.error);
      const sessionId = named ? Buffer.alloc(0) : Buffer.from(sessionIdOf(noise.handshakeHash));
      named = true;
      const frame = { sessionId, sequence: BigInt(sequence), ciphertext: Buffer.from(encrypted.value) };
      const bytes = Buffer.from(SecureFrame.encode(frame).finish());
      written.push(new Promise((resolve) => void call.write(bytes, () => resolve())));
    }
    await Promise.all(written);
  };

  const hello = { nodeId: '', publicIpv4: '', publicIpv6: '', agentVersion: 'flooder', multiplex: false };
  const value = { ...hello, multiplexPort: 0, detectedAddresses: [], features: [], processId: Buffer.alloc(0) };
  await send(AgentPayload.encode({ payload: { $case: 'hello', value } }).finish());
  const { payload, entries } = heavyHeartbeat();
  const began = performance.now();
  let [taken, underWay] = [0, 0];
  for (let sent = 0; sent < perSecond * seconds; sent += 1) {
    await delay(Math.max(0, began + (sent * 1000) / perSecond - performance.now()));
    if (performance.now() - began > seconds * 1000) break;
    // What the service does not read stays here, within a bound.
    if (underWay >= underWayMax) continue;
    underWay += 1;
    void send(payload).then(() => {
      underWay -= 1;
      taken += 1;
    });
  }
  if (ended !== undefined) throw new Error(`the session ended: ${ended}`);
  call.cancel();
  client.close();
  return { bytesPerHeartbeat: payload.length, entriesPerHeartbeat: entries, taken };
}

answerParent({ flood });

/**
 * OpenSession per second over the wire, beside a bare grpc-js unary call of the same sizes; and the handshake alone on one
 * core, beside the key agreements that it cannot avoid. The callers' messages are prepared before the clock starts.
 */
import { randomBytes } from 'node:crypto';
import { SessionGrant, SessionOffer } from '../src/gen/svc/control/v1/session.js';
import { limits } from '../src/kernel/limits.js';
import { controlPrologue, initiate, respond } from '../src/channel/noise/handshake.js';
import { agreeX25519, generateX25519 } from '../src/kernel/crypto/crypto.js';
import { startChild, type Child } from './child.js';
import { alternately, beside, rounded, type Figure, type Report } from './figures.js';
import { createNodes } from './fleet-over-rest.js';
import type { BenchOptions } from './options.js';
import type { Calls } from './processes/callers.js';
import { withFolder, withService } from './stack.js';

/** A node may open 1 session per second, 10 at once: two calls per round stay within that. */
const callsPerNode = 2;

export async function handshakes({ quick }: BenchOptions): Promise<Report> {
  const nodes = quick ? 100 : 500;
  const rounds = quick ? 2 : 5;
  const figures: Record<string, Figure> = { per_core_alone: await alone(quick ? 300 : 2_000) };
  // The default share shows what the admission allows, a whole core what the code can do.
  for (const share of ['0.5', '1']) {
    figures[`handshake_cpu_share_${share}`] = await withFolder((folder) =>
      withService({ env: { SVC_HANDSHAKE_CPU_SHARE: share } }, async (service) => {
        const credentials = await createNodes(service, nodes);
        const [callers, server] = [startChild('processes/callers'), startChild('floors/bare-grpc', [folder])];
        try {
          const target = new URL(service.process.controlEndpoint).host;
          const bareTarget = `127.0.0.1:${await server.ask<number>('listen')}`;
          const calls = nodes * callsPerNode;
          const run = (what: string, to: string) => perSecond(callers, what, { target: to, calls, credentials });
          await run('bare', bareTarget);
          await run('handshakes', target);
          return {
            calls_per_round: calls,
            per_second: await alternately(
              rounds,
              () => run('handshakes', target),
              () => run('bare', bareTarget),
            ),
          };
        } finally {
          await Promise.all([callers.close(), server.close()]);
        }
      }),
    );
  }
  return { bench: 'handshakes', figures };
}

async function perSecond(callers: Child, what: string, calls: Calls): Promise<number> {
  return (calls.calls * 1000) / (await callers.ask<number>(what, calls, 120_000));
}

/** The service's side of the handshake without the wire, beside one key pair and four key agreements. */
async function alone(count: number): Promise<Figure> {
  const [agentStatic, serviceStatic] = [generateX25519(), generateX25519()];
  const common = { prologue: controlPrologue('a-node'), psk: randomBytes(32) };
  const offer = SessionOffer.encode({
    timestampMs: BigInt(Date.now()),
    nonce: randomBytes(16),
    agentVersion: '1',
  }).finish();
  const grant = SessionGrant.encode({
    rekeyAfterSecs: 21_600,
    heartbeatIntervalSecs: 10,
    metricsIntervalSecs: 60,
    serverTimeMs: BigInt(Date.now()),
  }).finish();
  const service: number[] = [];
  const floor: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const messages = Array.from({ length: count }, () => {
      const party = { ...common, localStatic: agentStatic, remoteStatic: serviceStatic.publicKey };
      const initiated = initiate(party, offer);
      if (!initiated.ok) throw new Error(initiated.error);
      return initiated.value.message;
    });
    floor.push(each(count, bareAgreement(serviceStatic.privateKey)));
    service.push(
      each(count, (index) => {
        const party = { ...common, localStatic: serviceStatic, remoteStatic: agentStatic.publicKey };
        const responded = respond(party, messages[index] ?? Buffer.alloc(limits.agent.handshakeBytes.min));
        if (!responded.ok || !responded.value.finish(grant).ok) throw new Error('a handshake failed');
      }),
    );
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { handshakes_per_second: beside(service, floor), microseconds: rounded(1e6 / beside(service, floor).service) };
}

/** The part of KKpsk0 that no responder can avoid: an ephemeral key pair, and es, ss, ee, se. */
function bareAgreement(privateKey: Uint8Array): () => void {
  const { publicKey } = generateX25519();
  return () => {
    const ephemeral = generateX25519().privateKey;
    for (const key of [privateKey, privateKey, ephemeral, ephemeral]) agreeX25519(key, publicKey);
  };
}

function each(count: number, run: (index: number) => void): number {
  const began = performance.now();
  for (let index = 0; index < count; index += 1) run(index);
  return (count * 1000) / (performance.now() - began);
}

/** A separate process that makes many unary calls over a few connections: OpenSession with prepared messages, or the bare call. */
import { Client, credentials as channel } from '@grpc/grpc-js';
import type { LightCredentials } from '../../scripts/simulate/light/fleet.js';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import type { OpenSessionRequest } from '../../src/gen/svc/control/v1/session.js';
import { agentKeysFrom } from '../../src/channel/noise/control-psk.js';
import { answerParent } from '../child.js';
import { bareService } from '../floors/bare-grpc.js';
import { openTimeoutMs } from '../../src/agent/control/client.js';
import { beginOpening } from '../../src/agent/control/opening.js';

export interface Calls {
  /** `host:port` */
  readonly target: string;
  readonly calls: number;
  readonly credentials: readonly LightCredentials[];
}

const connections = 8;
const callsAtOnce = 64;

type Call = (client: Client, done: (error: Error | null) => void) => void;

/** Milliseconds for all calls, with several in parallel. */
async function time(target: string, calls: readonly Call[]): Promise<number> {
  const options = { 'grpc.use_local_subchannel_pool': 1, 'grpc.enable_http_proxy': 0, 'grpc.enable_retries': 0 };
  const clients = Array.from({ length: connections }, () => new Client(target, channel.createInsecure(), options));
  const deadline = Date.now() + openTimeoutMs;
  await Promise.all(
    clients.map(
      (client) =>
        new Promise<void>((resolve, reject) =>
          client.waitForReady(deadline, (error) => (error ? reject(error) : resolve())),
        ),
    ),
  );
  let next = 0;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: callsAtOnce }, async (_, worker) => {
      const client = clients[worker % connections];
      for (let call = calls[next++]; call !== undefined && client !== undefined; call = calls[next++]) {
        const run = call;
        await new Promise<void>((resolve, reject) =>
          run(client, (error) => (error === null ? resolve() : reject(error))),
        );
      }
    }),
  );
  const ms = performance.now() - began;
  for (const client of clients) client.close();
  return ms;
}

/** Prepared before the clock starts: the agent's half is as much work as the service's. */
function requests({ calls, credentials }: Calls): OpenSessionRequest[] {
  const identities = credentials.map(({ nodeId, controlPsk }) => {
    const keys = agentKeysFrom(controlPsk);
    if (!keys.ok) throw new Error(keys.error);
    return { nodeId, keys: keys.value, agentVersion: 'bench' };
  });
  return Array.from({ length: calls }, (_, index) => {
    const identity = identities[index % identities.length];
    if (identity === undefined) throw new RangeError('there are no credentials');
    const opening = beginOpening(identity, Date.now());
    if (!opening.ok) throw new Error(opening.error.detail);
    opening.value.discard();
    return opening.value.request;
  });
}

answerParent({
  handshakes(calls: Calls) {
    const { path, requestSerialize, responseDeserialize } = SecureAgentServiceService.openSession;
    return time(
      calls.target,
      requests(calls).map((request): Call => (client, done) => {
        client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error) => done(error));
      }),
    );
  },
  bare(calls: Calls) {
    const { path, requestSerialize, responseDeserialize } = bareService.open;
    const request = Buffer.alloc(180, 5);
    return time(
      calls.target,
      Array.from({ length: calls.calls }, (): Call => (client, done) => {
        client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error) => done(error));
      }),
    );
  },
});

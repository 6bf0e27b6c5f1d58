/** How one session follows another (`src/agent/control/connection.ts`). */
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import type { ControlClient, OpenedSession } from '../../src/agent/control/client.js';
import { runConnection, type ConnectionParts } from '../../src/agent/control/connection.js';
import { agentKeysFrom, encodeControlPsk } from '../../src/channel/noise/control-psk.js';
import { withFirstOf } from '../../src/kernel/background.js';
import { GrpcStatus } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { err, ok } from '../../src/kernel/result.js';
import { eventually } from '../support/eventually.js';
import { valueOf } from '../support/noise-parties.js';

const keys = valueOf(agentKeysFrom(encodeControlPsk({ secret: randomBytes(32), servicePublic: randomBytes(32) })));

it('opens a session over a newer connection at once when that is needed, although a rekey was refused just now', async () => {
  const [stopped, renewal] = [new AbortController(), new AbortController()];
  const connections: ControlClient[] = [];
  const opened: number[] = [];
  let [pauses, attached] = [0, 0];
  const parts: ConnectionParts = {
    connect() {
      const client: ControlClient = { open: () => Promise.reject(new Error('not called')), close: () => undefined };
      connections.push(client);
      return client;
    },
    async open(client) {
      opened.push(connections.indexOf(client));
      // A rekey over the first connection is refused.
      if (opened.length > 1 && client === connections[0])
        return err({ status: GrpcStatus.RESOURCE_EXHAUSTED, detail: '' });
      return ok({ session: {} as OpenedSession, keys });
    },
    attach() {
      attached += 1;
      const renewed = attached === 1 ? renewal.signal : new AbortController().signal;
      const ended = new Promise<never>(() => undefined);
      return { session: { close: async () => undefined }, ended, rekeyMs: attached === 1 ? 0 : 60_000, renewed };
    },
    // As if its time never came.
    async pause(_ms, signals) {
      pauses += 1;
      await withFirstOf(signals, (first) => new Promise((resolve) => first.addEventListener('abort', resolve)));
    },
    onRekeyed: () => undefined,
    stopped: stopped.signal,
    logger: silentLogger,
    random: Math.random,
  };
  const done = runConnection(parts);
  await eventually(() => pauses).toBe(1);
  renewal.abort();
  await eventually(() => attached).toBe(2);
  stopped.abort();
  expect(await done).toEqual({ kind: 'lost', detail: 'stopped' });
  expect(opened).toEqual([0, 0, 1]);
});

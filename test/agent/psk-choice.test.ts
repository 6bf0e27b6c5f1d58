/** Which PSK the agent opens sessions under (`docs/contract/rollouts.md#guided-rotation`). */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ControlClient, OpenedSession } from '../../src/agent/control/client.js';
import { createPskChoice } from '../../src/agent/control/psk-choice.js';
import { agentKeysFrom, encodeControlPsk, type AgentKeys } from '../../src/channel/noise/control-psk.js';
import { GrpcStatus } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { err, ok } from '../../src/kernel/result.js';
import { valueOf } from '../support/noise-parties.js';

const keys = (): AgentKeys =>
  valueOf(agentKeysFrom(encodeControlPsk({ secret: randomBytes(32), servicePublic: randomBytes(32) })));
const [old, next, former] = [keys(), keys(), keys()];
const names = new Map([
  [old.fingerprint, 'old'],
  [next.fingerprint, 'next'],
  [former.fingerprint, 'former'],
]);
const signal = new AbortController().signal;

function choice(file: readonly AgentKeys[], taken: readonly AgentKeys[], status: number = GrpcStatus.UNAUTHENTICATED) {
  const tried: (string | undefined)[] = [];
  const client: ControlClient = {
    async open(_signal, under = old) {
      tried.push(names.get(under.fingerprint));
      return taken.includes(under) ? ok({} as OpenedSession) : err({ status, detail: 'session refused' });
    },
    close: () => undefined,
  };
  const made = createPskChoice(old, async () => file, silentLogger);
  const open = async () => {
    const opened = await made.open(client, signal);
    return opened.ok ? names.get(opened.value.keys.fingerprint) : opened.error.status;
  };
  return { ...made, open, tried };
}

describe('the agent opens a session', () => {
  test('under its only PSK, without a file or with the same in it', async () => {
    for (const file of [[], [old]]) {
      const { open, tried, hasAnother } = choice(file, [old]);
      expect([await open(), tried, await hasAnother()]).toEqual(['old', ['old'], false]);
    }
  });

  test('under the PSK of the file, which is good once the service has answered under it', async () => {
    const { open, tried, hasAnother, answered, isGood } = choice([next, old], [next, old]);
    expect([await hasAnother(), await open(), isGood(next)]).toEqual([true, 'next', false]);
    answered(next);
    expect([isGood(next), isGood(old), await hasAnother()]).toEqual([true, false, false]);
    expect([await open(), tried]).toEqual(['next', ['next', 'next']]);
  });

  test('under the one before while the service refuses that of the file, and asks again each time', async () => {
    const { open, tried } = choice([next], [old]);
    expect([await open(), await open(), tried]).toEqual(['old', 'old', ['next', 'old', 'next', 'old']]);
  });

  test('under the former one of the file, last of all', async () => {
    const { open, tried } = choice([next, former], [former]);
    expect([await open(), tried]).toEqual(['former', ['next', 'old', 'former']]);
  });

  test('under no other when the refusal is not about the PSK, or when all are refused', async () => {
    const busy = choice([next], [], GrpcStatus.RESOURCE_EXHAUSTED);
    expect([await busy.open(), busy.tried]).toEqual([GrpcStatus.RESOURCE_EXHAUSTED, ['next']]);
    const none = choice([next], []);
    expect([await none.open(), none.tried]).toEqual([GrpcStatus.UNAUTHENTICATED, ['next', 'old']]);
  });
});

/** The overlap of a certificate key ends by itself (`docs/contract/domain.md#l4-chain`), and certificates are counted. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { watchCredentials } from '../../src/app/credentials.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { createCommandFixture, type CommandFixture, type FleetGateway } from '../support/command-fixture.js';
import { eventually } from '../support/eventually.js';
import { createTlsCert, createX25519, credentialId, rotatedTo, updateCredential } from '../support/fleet.js';

let fixture: CommandFixture;
beforeEach(async () => {
  fixture = await createCommandFixture();
});
afterEach(() => fixture.close());

/** An instance with a gateway of its own; `looks` counts how often it has looked. */
function instance(gateway: FleetGateway, readOnly: () => string | undefined = () => undefined) {
  let looks = 0;
  const watch = watchCredentials({
    fleet: {
      credentials() {
        looks += 1;
        return gateway.fleet.tables.credential.values();
      },
    },
    gateway,
    logger: silentLogger,
    now: fixture.clock.now,
    readOnly,
    everyMs: 1,
  });
  return { ...watch, looks: () => looks };
}

async function looksAgain(...instances: readonly { looks(): number }[]): Promise<void> {
  for (const { looks } of instances) {
    const before = looks();
    await eventually(looks).toBeGreaterThan(before + 2);
  }
}

const ended = async () => (await fixture.log()).filter(({ type }) => type === 'CredentialOverlapEnded');

it('an overlap is ended once when it is due, whichever of two instances looks first', async () => {
  const [gateway, other] = [await fixture.gateway(), await fixture.other()];
  await gateway.run(createTlsCert('cert'));
  await gateway.run(updateCredential('cert', rotatedTo('new')));
  // The other instance has folded the same.
  await other.run(createX25519('keys'));
  const instances = [instance(gateway), instance(other)];
  try {
    fixture.clock.advance(limits.fleet.pinOverlapMs - 1);
    await looksAgain(...instances);
    expect(await ended()).toEqual([]);
    fixture.clock.advance(1);
    await looksAgain(...instances);
    const [event, ...more] = await ended();
    expect(more).toEqual([]);
    expect(event?.data['credential_id']).toBe(credentialId('cert'));
    expect(event?.metadata.actor).toEqual({ type: 'system', id: 'service', name: 'service' });
    expect((await fixture.fold()).tables.credential.get(credentialId('cert'))?.overlap).toBeNull();
  } finally {
    for (const one of instances) await one.close();
  }
});

it('an instance that may not write ends none', async () => {
  const gateway = await fixture.gateway();
  await gateway.run(createTlsCert('cert'));
  await gateway.run(updateCredential('cert', rotatedTo('new')));
  fixture.clock.advance(limits.fleet.pinOverlapMs);
  let asked = 0;
  const watch = instance(gateway, () => ((asked += 1), 'an older release'));
  await eventually(() => asked).toBeGreaterThan(3);
  await watch.close();
  expect(await ended()).toEqual([]);
});

it('counts all credentials, those that end within 30 days and those that have ended', async () => {
  const gateway = await fixture.gateway();
  const day = 24 * 3600 * 1000;
  const ending = (days: number) => ({
    ...rotatedTo(`in ${days}`, { not_after: new Date(fixture.clock.now() + days * day).toISOString() }),
  });
  await gateway.run(createX25519('keys'));
  for (const days of [-400, 0, 1, 30, 31]) await gateway.run(createTlsCert(`in ${days}`, ending(days)));
  const watch = instance(gateway);
  const [counts] = watch.metrics();
  expect(counts?.name).toBe('svc_credentials');
  expect(counts?.read()).toEqual(
    new Map([
      ['total', 6],
      ['expiring_30d', 2],
      ['expired', 2],
    ]),
  );
  await watch.close();
});

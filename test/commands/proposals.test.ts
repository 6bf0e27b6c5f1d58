/** Decided commands as events: metadata, links and bounds of what is appended, and the two streams that are decided. */
import { runSync } from '../../src/kernel/pieces.js';
import { describe, expect, it } from 'vitest';
import { accountsAggregate, fleetAggregate } from '../../src/commands/aggregate.js';
import type { CommandContext } from '../../src/commands/port.js';
import { asRecorded, propose } from '../../src/commands/proposal.js';
import { emptyAccounts } from '../../src/domain/accounts/accounts.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import { schemaVersions } from '../../src/domain/log/upcast.js';
import { streams, type CommandLink, type ProposedEvent } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import { wholeEventBytes } from '../../src/storage/event-json.js';
import * as f from '../support/fleet.js';
import { createManualClock } from '../support/manual-clock.js';

const clock = createManualClock();
const context: CommandContext = { actor: { type: 'user', id: 'u', name: 'u' }, requestId: 'r' };
const ids = () => {
  let count = 0;
  return { next: () => `id-${(count += 1)}` };
};
const decided = (...types: string[]) => types.map((type) => ({ type, data: {} }));
const metadataOf = (events: readonly ProposedEvent[]) => events.map(({ metadata }) => metadata);

describe('a proposal', () => {
  it('has the events of one command, each with its place and the version of its type', () => {
    const { commandId, events, bytes } = propose(decided('NodeDeleted', 'Unversioned'), context, clock, ids());
    expect(events.map(({ id, type }) => [id, type])).toEqual([
      ['id-2', 'NodeDeleted'],
      ['id-3', 'Unversioned'],
    ]);
    const shared = { actor: context.actor, request_id: 'r', occurred_at: new Date(clock.now()).toISOString() };
    // No further fields: what is absent is not in the log either.
    expect(metadataOf(events)).toStrictEqual([
      { ...shared, command: { id: commandId, index: 0, count: 2 }, schema_version: schemaVersions.NodeDeleted },
      { ...shared, command: { id: commandId, index: 1, count: 2 }, schema_version: 1 },
    ]);
    expect(bytes).toBe(events.reduce((sum, event) => sum + wholeEventBytes(event), 0));
  });

  it('says in each event what it reverts, and the idempotency key', () => {
    const idempotency = { key_hash: 'k', body_hash: 'b' };
    const { events } = propose(decided('A', 'B'), { ...context, revertOf: 'entry', idempotency }, clock, ids());
    for (const metadata of metadataOf(events)) expect(metadata).toMatchObject({ revert_of: 'entry', idempotency });
  });

  it('carries its link in the last event, made from all of them', () => {
    const link = { key_id: 'k', mac: 'm' } as unknown as CommandLink;
    const seen: (readonly string[])[] = [];
    const { events } = propose(decided('A', 'B', 'C'), context, clock, ids(), (all) => {
      seen.push(all.map(({ type }) => type));
      return { link };
    });
    expect(seen).toEqual([['A', 'B', 'C']]);
    expect(metadataOf(events).map(({ link: own }) => own)).toEqual([undefined, undefined, link]);
    expect(events[2]).toMatchObject({ id: 'id-4', type: 'C', metadata: { request_id: 'r', schema_version: 1 } });
    expect(propose([], context, clock, ids(), () => ({ link })).events).toEqual([]);
  });

  it('may be as large as a command, all events together, and not a byte larger', () => {
    const filled = (bytes: number) => {
      const half = (size: number) => ({ type: 'A', data: { filler: 'x'.repeat(size) } });
      const empty = propose([half(0), half(0)], context, clock, ids()).bytes;
      const first = Math.floor((bytes - empty) / 2);
      return [half(first), half(bytes - empty - first)];
    };
    const largest = limits.events.commandBytes;
    expect(propose(filled(largest), context, clock, ids()).bytes).toBe(largest);
    expect(() => propose(filled(largest + 1), context, clock, ids())).toThrow(
      expect.objectContaining({ code: 'payload_too_large' }),
    );
  });

  it('stands behind a revision as it will in the log', () => {
    const proposal = propose(decided('A', 'B'), context, clock, ids());
    const { stream, events } = asRecorded('s', proposal, 6);
    expect([stream, events.map(({ revision, position }) => [revision, position])]).toEqual([
      's',
      [
        [7, 0],
        [8, 0],
      ],
    ]);
    expect(() => asRecorded('s', propose([], context, clock, ids()), 6)).toThrow(RangeError);
  });
});

describe('the streams of commands', () => {
  const heads = [{ stream: streams.service, revision: 3, mac: 'mac' }];
  const record = { type: 'RecordLogHeads', heads } as const;
  const recordedHeads = { ok: true, value: [{ type: 'LogHeadsRecorded', data: { heads } }] };

  it('both name the heads of other streams by a command, unless they name them already', () => {
    expect([fleetAggregate.stream, accountsAggregate.stream]).toEqual([streams.fleet, streams.accounts]);
    expect(runSync(fleetAggregate.decide(emptyFleet(), record))).toEqual(recordedHeads);
    expect(runSync(accountsAggregate.decide(emptyAccounts(), record))).toEqual(recordedHeads);
    const accounts = emptyAccounts();
    accounts.logChain.set({ mac: 'mac', named: heads });
    expect(runSync(accountsAggregate.decide(accounts, record))).toEqual({ ok: true, value: [] });
  });

  it('decide their own commands, and fold what was decided', () => {
    const accounts = emptyAccounts();
    const create = {
      type: 'CreateUser',
      id: 'u',
      username: 'ada',
      role: 'admin',
      display_name: null,
      email: null,
      password: f.sealed,
    } as const;
    const decision = runSync(accountsAggregate.decide(accounts, create as never));
    if (!decision.ok) throw new Error(decision.error.message);
    const proposal = propose(decision.value, context, clock, ids());
    expect(
      runSync(accountsAggregate.apply(accounts, asRecorded(streams.accounts, proposal, -1))).refusal,
    ).toBeUndefined();
    expect(runSync(accountsAggregate.decide(accounts, { ...create, id: 'other' } as never))).toMatchObject({
      ok: false,
      error: { code: 'conflict' },
    });
    expect(runSync(fleetAggregate.decide(emptyFleet(), f.createNode('a')))).toMatchObject({
      ok: true,
      value: [{ type: 'NodeCreated' }],
    });
  });
});

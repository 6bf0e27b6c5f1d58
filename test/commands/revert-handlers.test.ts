/** The handlers of reverts: what they read of the audit, when they try again, and whom a refusal names. No store. */
import { describe, expect, it } from 'vitest';
import { createRevertHandlers } from '../../src/commands/revert.js';
import { tuning } from '../../src/commands/tuning.js';
import { decideFleet } from '../../src/domain/fleet/decide.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { lastEvent, type Actor, type RecordedCommand } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import * as f from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { fleetInstallation } from '../support/fleet-installation.js';

const operator: Actor = { type: 'user', id: 'operator', name: 'operator' };
const context = { actor: operator, requestId: 'r' };
const idOf = ({ events: [first] }: RecordedCommand): string => first.metadata.command.id;
const removeNode = (name: string): FleetCommand => ({ type: 'DeleteNode', id: f.nodeId(name), ifMatch: undefined });
const removeUpstream = (name: string): FleetCommand => ({
  type: 'DeleteUpstream',
  id: f.upstreamId(name),
  ifMatch: undefined,
});
const override = (name: string, multiplex: boolean | null): FleetCommand =>
  f.settings({ nodes: [{ node_id: f.nodeId(name), multiplex, multiplex_port: multiplex === true ? 4443 : null }] });

function site(hooks: Parameters<typeof fleetInstallation>[0] = {}) {
  const made = fleetInstallation(hooks);
  const run = (command: FleetCommand): RecordedCommand => {
    const decision = decideFleet(made.fleet, command);
    if (!decision.ok || decision.value.length === 0) throw new Error(`${command.type} wrote nothing`);
    return made.write(decision.value, { actor: operator });
  };
  /** What a revert is refused with. */
  const refusal = async (entry: RecordedCommand): Promise<ServiceError> => {
    const before = dumpFleet(made.fleet);
    const error = await made.handlers.revert(context, entry).then(
      () => new Error('it was accepted'),
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ServiceError);
    expect(dumpFleet(made.fleet)).toBe(before);
    return error as ServiceError;
  };
  const revert = async (entry: RecordedCommand): Promise<RecordedCommand> => {
    await made.handlers.revert(context, entry);
    return made.log.at(-1)!;
  };
  return { ...made, run, refusal, revert };
}

describe('a revert', () => {
  it('is one command that says which entry it reverts, and answers the name of the resource', async () => {
    const { run, handlers, log } = site();
    run(f.createNode('a'));
    const renamed = run(f.updateNode('a', { name: 'other' }));
    expect(await handlers.revert(context, renamed)).toMatchObject({ kind: 'done', result: { name: 'a' } });
    expect(log.at(-1)?.events[0].metadata).toMatchObject({ revert_of: idOf(renamed), actor: operator });
    expect(log).toHaveLength(3);
  });

  it('of a create answers no name, because nothing is left', async () => {
    const { run, handlers } = site();
    const created = run(f.createUpstream('up'));
    expect(await handlers.revert(context, created)).toMatchObject({ result: { name: null } });
  });

  it('waits for the audit as long as an answer waits for read models, and is refused when that stays behind', async () => {
    const { run, refusal, asked, log } = site({ holds: () => false });
    const created = run(f.createUpstream('up'));
    run(f.createUpstream('another'));
    expect((await refusal(created)).code).toBe('unavailable');
    expect(asked).toEqual([[lastEvent(log.at(-1)!).position, limits.rest.projectionWaitMs]]);
  });

  it('is prepared again when its resource changed while the audit was read', async () => {
    const { run, revert, asked } = site({
      read: (count) => {
        if (count === 1) run(f.updateUpstream('up', { endpoint: 'later.example:1' }));
      },
    });
    run(f.createUpstream('up'));
    const switched = run(f.updateUpstream('up', { enabled: false }));
    const { events } = await revert(switched);
    expect(events[0].data).toMatchObject({ changes: { enabled: { from: false, to: true } } });
    expect(asked).toHaveLength(2);
  });

  it('gives up when its resource never stands still', async () => {
    let port = 1;
    const made = site({ read: () => void made.run(f.updateUpstream('up', { endpoint: `x.example:${(port += 1)}` })) });
    made.run(f.createUpstream('up'));
    const switched = made.run(f.updateUpstream('up', { enabled: false }));
    const error = await made.handlers.revert(context, switched).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'conflict', message: expect.stringContaining('while its history was read') });
    expect(made.asked).toHaveLength(tuning.revertAttempts);
  });

  it('is not prepared again when it is refused for what stands in the log', async () => {
    const { run, refusal, asked } = site();
    const created = run(f.createUpstream('up'));
    run(f.updateUpstream('up', { enabled: false }));
    expect((await refusal(created)).message).toContain('later work');
    expect(asked).toHaveLength(1);
  });

  it('is not tried again when the log cannot be written, whatever else changed', async () => {
    const { run, gateway, fleet } = site();
    const created = run(f.createUpstream('up'));
    let tries = 0;
    const { revert } = createRevertHandlers({
      plan: async () => undefined,
      gateway: {
        ...gateway,
        execute() {
          tries += 1;
          run(f.updateUpstream('up', { endpoint: `x.example:${tries}` }));
          return Promise.reject(new ServiceError('unavailable', 'away'));
        },
      },
      fleet: () => fleet,
      projections: { reached: async () => true },
      audit: { command: async () => undefined, async *about() {} },
    });
    await expect(revert(context, created)).rejects.toMatchObject({ code: 'unavailable' });
    expect(tries).toBe(1);
  });

  it('of a delete brings the resource back with its age and all its versions', async () => {
    const { run, revert, fleet } = site();
    const created = run(f.createUpstream('up'));
    run(f.updateUpstream('up', { enabled: false }));
    const deleted = run(removeUpstream('up'));
    await revert(deleted);
    expect(fleet.tables.l4_upstream.get(f.upstreamId('up'))).toMatchObject({
      version: 4,
      created_at: created.events[0].metadata.occurred_at,
    });
  });
});

describe('a refused revert names', () => {
  it('the newest entry that changed each field, and no other', async () => {
    const { run, refusal } = site();
    run(f.createUpstream('up'));
    const both = run(f.updateUpstream('up', { endpoint: 'b.example:2', health_check_interval_ms: 20_000 }));
    const older = run(f.updateUpstream('up', { endpoint: 'c.example:3' }));
    const newer = run(f.updateUpstream('up', { endpoint: 'd.example:4' }));
    const interval = run(f.updateUpstream('up', { health_check_interval_ms: 30_000 }));
    const other = run(f.updateUpstream('up', { enabled: false }));
    const { message } = await refusal(both);
    const named = [older, newer, interval, other].map((entry) => message.includes(idOf(entry)));
    expect([message, named]).toEqual([message, [false, true, true, false]]);
  });

  it('the delete of a node that took an override along, and the setting that is newer than its return', async () => {
    const { run, revert, refusal } = site();
    run(f.createNode('a'));
    run(f.createNode('b'));
    const set = run(override('a', true));
    run(removeNode('b'));
    const removed = run(removeNode('a'));
    expect((await refusal(set)).message).toContain(idOf(removed));
    const back = await revert(removed);
    const changed = run(override('a', false));
    const { message } = await refusal(set);
    expect([message.includes(idOf(changed)), message.includes(idOf(back))]).toEqual([true, false]);
  });

  it('the return of a node that brought an older policy along', async () => {
    const { run, revert, refusal } = site();
    run(f.createNode('a'));
    run(f.savePolicy('a', 443, ['tls']));
    const removed = run(removeNode('a'));
    const back = await revert(removed);
    const changed = run(f.savePolicy('a', 443, ['raw']));
    await revert(back);
    const again = await revert(removed);
    const { message } = await refusal(changed);
    expect([message.includes('changed since by'), message.includes(idOf(again))]).toEqual([true, true]);
  });

  it('what deleted the resource: its own delete', async () => {
    const { run, refusal } = site();
    const created = run(f.createUpstream('up'));
    run(f.createUpstream('another'));
    run(f.updateUpstream('up', { enabled: false }));
    run(removeUpstream('another'));
    const deleted = run(removeUpstream('up'));
    expect((await refusal(created)).message).toContain(idOf(deleted));
  });

  it('what deleted a policy: its node, or its own delete when that is newer', async () => {
    const { run, revert, refusal } = site();
    run(f.createNode('a'));
    const other = run(f.savePolicy('a', 80, ['raw']));
    const saved = run(f.savePolicy('a', 443, ['tls']));
    const alone = run(f.deletePolicy('a', 80));
    const withNode = run(removeNode('a'));
    expect((await refusal(saved)).message).toContain(idOf(withNode));
    // The node took only the policies that it still had.
    expect((await refusal(other)).message).toContain(idOf(alone));
    await revert(withNode);
    const own = run(f.deletePolicy('a', 443));
    const { message } = await refusal(saved);
    expect([message.includes(idOf(own)), message.includes(idOf(withNode))]).toEqual([true, false]);
  });
});

describe('the preview of a revert', () => {
  it('shows what would change and changes nothing', async () => {
    const { run, handlers, fleet, log } = site();
    run(f.createUpstream('up'));
    const switched = run(f.updateUpstream('up', { enabled: false }));
    const before = dumpFleet(fleet);
    expect(await handlers.preview(switched)).toEqual([
      {
        resource: { type: 'l4_upstream', id: f.upstreamId('up'), name: 'up' },
        path: 'enabled',
        before: false,
        after: true,
      },
    ]);
    expect([dumpFleet(fleet), log.length]).toEqual([before, 2]);
  });

  it('is refused as the revert is', async () => {
    const { run, handlers, refusal } = site();
    const created = run(f.createUpstream('up'));
    run(f.updateUpstream('up', { enabled: false }));
    const { code, message } = await refusal(created);
    await expect(handlers.preview(created)).rejects.toMatchObject({ code, message });
  });
});

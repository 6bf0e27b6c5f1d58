/** What a batch of commands does to the committed fleet, and what is told of it. No store. */
import { runSync } from '../../src/kernel/pieces.js';
import { describe, expect, it } from 'vitest';
import {
  applyToFold,
  emptyFoldBatch,
  foldedFleet,
  type MutableFoldBatch,
} from '../../src/projections/fleet/fold-batch.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { streams, type RecordedCommand } from '../../src/kernel/event.js';
import * as f from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { MissingEventsError } from '../../src/projections/log-follower.js';
import { chainedLog, testLogChain } from '../support/log-chain.js';

const logChain = testLogChain();
const verifier = (name: string) => ({ ...f.sealed, key_id: name });
const psk = (name: string) => ({ fingerprint: name, verifier: verifier(name) });
const id = f.nodeId('a');

/** The commands as the log of the fleet holds them. */
function logOf(...commands: readonly FleetCommand[]): readonly RecordedCommand[] {
  const fleet = emptyFleet();
  const written = commands.map((command) => {
    const performed = f.perform(fleet, command);
    if (performed.kind !== 'written') throw new Error(`${command.type} wrote nothing`);
    return performed.command;
  });
  return chainedLog(written);
}
function folded(log: readonly RecordedCommand[], fleet: Fleet = emptyFleet(), batch = emptyFoldBatch()) {
  runSync(applyToFold(foldedFleet(fleet), logChain, log, () => batch));
  return { fleet, batch };
}
const thrownBy = (run: () => unknown): unknown => {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
};

describe('a batch', () => {
  it('tells the nodes that its commands touched, deleted and raised', () => {
    const log = logOf(
      f.createNode('a'),
      f.createNode('b'),
      f.createUpstream('up'),
      { type: 'RaiseNodeGeneration', id, reported: 500 },
      { type: 'DeleteNode', id: f.nodeId('b'), ifMatch: undefined },
    );
    const { fleet, batch } = folded(log);
    expect([...batch.touched].sort()).toEqual([id, f.nodeId('b')].sort());
    expect([...batch.deleted]).toEqual([f.nodeId('b')]);
    expect([...batch.raised]).toEqual([[id, log[3]!.events[0].metadata.occurred_at]]);
    expect(dumpFleet(fleet)).toBe(dumpFleet(f.foldOf(log)));
  });

  it('tells each node whose PSK no longer counts', () => {
    const { batch } = folded(
      logOf(
        f.createNode('a'),
        f.createNode('b', { psk: psk('first of b') }),
        { type: 'IssueNodePsk', id, ...psk('first') },
        { type: 'IssueNodePsk', id, ...psk('second') },
        { type: 'DeleteNode', id: f.nodeId('b'), ifMatch: undefined },
      ),
    );
    expect(batch.revoked).toEqual([f.nodeId('b'), id, id, f.nodeId('b')]);
  });

  it('is added to what was told before', () => {
    const log = logOf(f.createNode('a'), f.createNode('b'));
    const { fleet, batch } = folded(log.slice(0, 1));
    folded(log.slice(1), fleet, batch);
    expect(batch.touched.size).toBe(2);
  });

  it('leaves out commands of other streams, and those that the fold holds', () => {
    const log = logOf(f.createNode('a'), f.createNode('b'));
    const { fleet } = folded(log);
    const before = dumpFleet(fleet);
    const other = { ...log[1]!, stream: streams.accounts };
    const { batch } = folded([...log, other], fleet);
    expect([dumpFleet(fleet), batch]).toEqual([before, emptyFoldBatch()]);
  });

  it('begins the chain of the log, and stands at its newest link', () => {
    const { fleet } = folded(logOf(f.createNode('a')));
    expect(fleet.logChain.value.mac).not.toBe(emptyFleet().logChain.value.mac);
  });
});

describe('a command that cannot be folded', () => {
  const log = logOf(f.createNode('a'), f.createNode('b'), f.updateNode('a', { name: 'c' }));
  const stopped = (commands: readonly RecordedCommand[]) => {
    const fleet = emptyFleet();
    const batch: MutableFoldBatch = emptyFoldBatch();
    const error = thrownBy(() => folded(commands, fleet, batch));
    return { fleet, batch, error };
  };

  it('stops the fold where events are missing, behind all commands before', () => {
    const { fleet, batch, error } = stopped([log[0]!, log[2]!]);
    expect(error).toBeInstanceOf(MissingEventsError);
    expect(dumpFleet(fleet)).toBe(dumpFleet(f.foldOf(log.slice(0, 1))));
    expect([...batch.touched]).toEqual([id]);
  });

  it('leaves nothing of it, not even of its first events', () => {
    const [first] = log[1]!.events;
    const broken = { ...first, type: 'NodeUpdated', data: { node_id: f.nodeId('a') }, revision: first.revision + 1 };
    const { fleet, batch, error } = stopped([log[0]!, { ...log[1]!, events: [first, broken] }]);
    expect(error).toBeInstanceOf(Error);
    expect(dumpFleet(fleet)).toBe(dumpFleet(f.foldOf(log.slice(0, 1))));
    expect([[...batch.touched], batch.revoked]).toEqual([[id], []]);
    // The fold goes on from there.
    folded(log.slice(1), fleet);
    expect(dumpFleet(fleet)).toBe(dumpFleet(f.foldOf(log)));
  });
});

/**
 * This release makes of a random log exactly what release 0.1 made of it: the fold's checkpoint, the nodes that each command
 * touches, snapshots, audit entries and the documents of the read models.
 */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { captureFleet, encodeFleet, restoreFleet } from '../../src/domain/fleet/checkpoint.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import { readCommand } from '../../src/domain/log/upcast.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import { streams } from '../../src/kernel/event.js';
import { audit } from '../../src/projections/models/audit.js';
import { nodeRecord, nodes } from '../../src/projections/models/nodes.js';
import { readModels } from '../../src/projections/read-models.js';
import type { Fields } from '../../src/storage/read-store.js';
import { dumpFleet } from '../support/fleet-dump.js';

interface Golden {
  readonly log: readonly RecordedCommand[];
  readonly checkpoint: string;
  /** Per command of the fleet, sorted. */
  readonly touched: readonly (readonly string[])[];
  readonly audit: readonly ({ readonly action: string } | null)[];
  /** Read model → id → fields. */
  readonly documents: { readonly [model: string]: { readonly [id: string]: unknown } };
  /** Of every node, sorted by id. */
  readonly snapshots: readonly unknown[];
}

const file = new URL('../golden/release-0.1-folder/log-and-what-it-means.json.gz', import.meta.url);
const golden = JSON.parse(gunzipSync(readFileSync(file)).toString('utf8')) as Golden;
const log = golden.log.map(readCommand);
const fleetLog = log.filter(({ stream }) => stream === streams.fleet);

/**
 * The marks of reverts in this log were made up: no release wrote any before there were reverts. Their entries are called
 * reverts since, and the fold remembers them.
 */
const marked = new Set(
  log.flatMap(({ events: [{ metadata }] }) => (metadata.revert_of === undefined ? [] : [metadata.command.id])),
);
const asRevert = <E extends { readonly action: string }>(entry: E): E => ({
  ...entry,
  action: entry.action.replace(/[^.]+$/, 'revert'),
});
const withoutReverts = (checkpoint: string): string => checkpoint.replaceAll(/^\["revert",.*\n/gm, '');

/** As JSON texts, so that the order of keys counts. */
const texts = (values: readonly unknown[]): readonly string[] => values.map((value) => JSON.stringify(value));

/** A node's document without the optional fields that later releases have added to it. */
function asReleased(fields: Fields): Fields {
  const { session: _, written_since: __, version_conflict: ___, applied, ...agent } = nodeRecord(fields as never).agent;
  if (applied === null) return { ...fields, agent: { ...agent, applied } as never };
  const { duration_ms: ____, ...stamp } = applied;
  return { ...fields, agent: { ...agent, applied: stamp } as never };
}

/** A value without what later releases have added to snapshots, which is empty for everything that release 0.1 knew. */
function withoutLaterParts(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, part: unknown) => {
    const added = laterParts.has(key);
    if (added) expect(['[]', 'null', '""']).toContain(JSON.stringify(part));
    return added ? undefined : part;
  });
}
const laterParts: ReadonlySet<string> = new Set([
  'http_proxy_rules',
  'tls_certificates',
  'quic_rules',
  'listener_policies',
  'l3_rules',
  'reality',
  'quic_reality',
  'noise_public_key',
  'tls_credential_id',
]);

describe('the log of release 0.1', () => {
  const fleet = emptyFleet();
  const touched = fleetLog.map((command) => [...applyCommand(fleet, command)].sort());
  fleet.journal.commit();

  it('touches the same nodes', () => {
    expect(touched).toEqual(golden.touched);
  });

  it('folds to the same checkpoint, from which the same fleet is restored', () => {
    const bytes = Buffer.concat([...encodeFleet(captureFleet(fleet))]);
    expect(withoutReverts(bytes.toString('utf8'))).toBe(golden.checkpoint);
    expect(dumpFleet(restoreFleet(bytes))).toBe(dumpFleet(fleet));
  });

  it('compiles to the same snapshots', () => {
    const snapshots = [...fleet.ids('node')].sort().map((id) => withoutLaterParts(compileNode(fleet, id)));
    expect(texts(snapshots)).toEqual(texts(golden.snapshots));
  });

  it('has the same audit entries', () => {
    const entries = golden.audit.map((entry, index) => {
      const isMarked = marked.has(log[index]?.events[0].metadata.command.id ?? '');
      return entry === null || !isMarked ? entry : asRevert(entry);
    });
    expect(log.map(describeCommand)).toEqual(entries);
  });

  it('projects to the same documents', () => {
    for (const model of readModels) {
      const documents = new Map<string, Fields>();
      for (const command of log) {
        for (const event of command.events) {
          for (const id of new Set(model.keys(event))) {
            const fields = model.evolve(documents.get(id), event, command, id);
            if (fields === undefined) documents.delete(id);
            else documents.set(id, fields);
          }
        }
      }
      const known = [...documents].map(([id, fields]) => [id, model === nodes ? asReleased(fields) : fields]);
      const expected = Object.entries(golden.documents[model.name] ?? {}).map(([id, fields]) =>
        model === audit && marked.has(id) ? [id, asRevert(fields as { action: string })] : [id, fields],
      );
      expect(Object.fromEntries(known), model.name).toEqual(Object.fromEntries(expected));
    }
  });
});

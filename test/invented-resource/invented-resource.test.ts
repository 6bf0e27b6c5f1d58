/**
 * A resource that does not exist is added to a copy of the service, which is compiled and run: what it takes is counted,
 * what is derived for it works, and what is forgotten does not compile.
 */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import type * as Apply from '../../src/domain/fleet/apply.js';
import type * as Checkpoint from '../../src/domain/fleet/checkpoint.js';
import type * as Fleet from '../../src/domain/fleet/fleet.js';
import { streams, type RecordedCommand } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import { createManualClock } from '../support/manual-clock.js';
import { wholeLog } from '../support/installations.js';
import { runMaintenanceProgram } from '../support/programs.js';
import { copyProject, type ProjectCopy } from '../support/project-copy.js';
import { projectRoot } from '../support/project-root.js';
import { edits } from './edits.js';

const added = join(dirname(fileURLToPath(import.meta.url)), 'src');
const newFiles = readdirSync(added, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));

interface Beacon {
  readonly id: string;
  readonly name: string;
  readonly node_id: string;
  readonly interval_secs: number;
  readonly colours: readonly string[];
  readonly version: number;
}

interface AuditEntry {
  readonly id: string;
  readonly action: string;
  readonly resource: { readonly type: string; readonly id: string; readonly name: string };
  readonly changes: readonly { readonly path: string; readonly before: unknown; readonly after: unknown }[];
}

let copy: ProjectCopy;
/** Of its compiled programs. */
let root: string;
beforeAll(async () => {
  copy = await copyProject('beacons', ['src', 'scripts']);
  cpSync(added, join(copy.root, 'src'), { recursive: true });
  for (const { path, from, to } of edits) await copy.replace(path, from, to);
  // Incremental: what a change does not concern is not checked again.
  const compilerOptions = { rootDir: '.', incremental: true, tsBuildInfoFile: './.tsbuildinfo' };
  const config = { extends: join(projectRoot, 'tsconfig.json'), compilerOptions, include: ['src'] };
  writeFileSync(join(copy.root, 'tsconfig.json'), JSON.stringify(config));
});
afterAll(() => copy.remove());

/** What the type checker says of the copy; nothing when it is content. */
function typeErrors(): string {
  const tsc = join(projectRoot, 'node_modules', '.bin', 'tsc');
  // One thread: several would check much of it twice.
  const args = ['-p', copy.root, '--noEmit', '--pretty', 'false', '--singleThreaded'];
  return spawnSync(tsc, args, { cwd: copy.root, encoding: 'utf8', timeout: 120_000 }).stdout;
}

interface Omission {
  readonly what: string;
  readonly path: string;
  readonly from: string | RegExp;
  readonly to: string;
  /** What the type checker then says, of this file unless `of` is another. */
  readonly error: string;
  readonly of?: string;
}

const declared = 'src/domain/beacon/beacon.ts';
const missing = (name: string): string => `Property '${name}' is missing in type`;

describe('a new resource', () => {
  const buildInfo = (): string => join(copy.root, '.tsbuildinfo');
  /** What the type checker knows of the whole copy: each omission starts from there. */
  const checked = (): string => join(copy.root, 'checked.tsbuildinfo');

  it('is two files and a line in each of two lists, and compiles', () => {
    const touched = new Set([...newFiles.map((path) => join('src', path)), ...edits.map(({ path }) => path)]);
    expect([...touched].sort()).toEqual([
      'src/domain/beacon/beacon.ts',
      'src/domain/fleet/resources.ts',
      'src/transport/rest/resources.ts',
      'src/transport/rest/resources/beacons.ts',
    ]);
    expect(typeErrors()).toBe('');
    copyFileSync(buildInfo(), checked());
  }, 120_000);

  // In one type check: omissions whose errors are in different places.
  const omissions: readonly (readonly Omission[])[] = [
    [
      {
        what: 'its line in the list of resources',
        path: 'src/domain/fleet/resources.ts',
        from: '{ beacon,',
        to: '{',
        error: "Property 'beacon' does not exist",
        of: 'src/transport/rest/resources/beacons.ts',
      },
      {
        what: 'what a field means',
        path: 'src/transport/rest/resources/beacons.ts',
        from: "about: 'Seconds', ",
        to: '',
        error: missing('about'),
      },
    ],
    [
      {
        what: 'its routes',
        path: 'src/transport/rest/resources.ts',
        from: '  beacon: beaconRoutes,\n',
        to: '',
        error: missing('beacon'),
      },
      {
        what: 'a field in the list of its fields',
        path: declared,
        from: ", 'colours']",
        to: ']',
        error: `Type '"name"' is not assignable to type '"colours"'`,
      },
      {
        what: 'a field over REST',
        path: 'src/transport/rest/resources/beacons.ts',
        from: /  interval_secs: .*\n/,
        to: '',
        error: missing('interval_secs'),
      },
    ],
    [
      {
        what: 'the type of a field over REST',
        path: 'src/transport/rest/resources/beacons.ts',
        from: 'integer(1, 3600)',
        to: 'text(1, 9)',
        error: "Type 'ZodString' is not assignable to type 'ZodType<number",
      },
      {
        what: 'what it refers to, what it adds to snapshots and whom it touches',
        path: declared,
        from: /  indexed: [^]*?\n  },\n|  compiled: null,\n|  touches: null,\n/g,
        to: '',
        error: ': touches, indexed, compiled',
      },
    ],
  ];
  it.each(omissions.map((together) => [together.map(({ what }) => what).join('; or '), together] as const))(
    'does not compile without %s',
    (_, together) => {
      const files = together.map(({ path }) => join(copy.root, path));
      const whole = files.map((file) => readFileSync(file, 'utf8'));
      copyFileSync(checked(), buildInfo());
      try {
        for (const [index, { from, to }] of together.entries()) {
          const without = whole[index]!.replace(from, to);
          expect(without).not.toBe(whole[index]);
          writeFileSync(files[index]!, without);
        }
        const errors = typeErrors().split('\n');
        for (const { path, error, of = path } of together) {
          expect(errors.filter((line) => line.startsWith(`${of}(`) && line.includes(error))).not.toEqual([]);
        }
      } finally {
        for (const [index, file] of files.entries()) writeFileSync(file, whole[index]!);
      }
    },
    120_000,
  );
});

describe('the service with a new resource', () => {
  const folder = mkdtempSync(join(tmpdir(), 'beacons-'));
  const dataDir = join(folder, 'data');
  const nobody = '00000000-0000-4000-8000-000000000000';
  let service: ServiceProcess;
  let admin: RestClient;
  let nodeId: string;
  let beacon: Beacon;
  beforeAll(async () => {
    mkdirSync(dataDir, { mode: 0o700 });
    root = await copy.compile('scripts/gateway-control');
    service = await prepareService({ dataDir });
    await service.start({ root });
    admin = await service.admin();
    nodeId = (await admin.call<{ id: string }>('POST', '/api/nodes', { name: 'tower' })).id;
    beacon = await admin.call<Beacon>('POST', '/api/beacons', { name: 'north', node_id: nodeId });
  });
  afterAll(async () => {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('creates, shows, lists, changes and deletes it over REST, with the refusals that every resource has', async () => {
    expect(beacon).toMatchObject({ name: 'north', node_id: nodeId, interval_secs: 30, colours: [], version: 1 });
    const path = `/api/beacons/${beacon.id}`;
    const got = await admin.send('GET', path);
    expect(got.headers.get('etag')).toBe('"1"');
    expect(got.body.data).toEqual(beacon);
    expect(await admin.call('GET', '/api/beacons?q=NOR')).toMatchObject({ items: [beacon], total: 1, page: 1 });
    for (const change of [{ interval_secs: 5 }, { colours: ['red', 'green'] }, { name: 'south' }]) {
      expect(await admin.call('PUT', path, change)).toMatchObject(change);
    }
    const refusals = [
      ['PUT', path, { name: 'north' }, { 'if-match': '"1"' }, 412],
      ['PUT', path, { interval_secs: 0 }, {}, 400],
      ['PUT', path, { node_id: nobody }, {}, 400],
      ['POST', '/api/beacons', { name: 'SOUTH', node_id: nodeId }, {}, 409],
      ['POST', '/api/beacons', { name: 'east' }, {}, 400],
      ['POST', '/api/beacons', { name: 'east', node_id: nodeId, height: 3 }, {}, 400],
      ['DELETE', `/api/nodes/${nodeId}`, undefined, {}, 409],
      ['GET', `/api/beacons/${nobody}`, undefined, {}, 404],
    ] as const;
    for (const [method, target, body, headers, status] of refusals) {
      const refused = await admin.send(method, target, body, headers);
      expect([method, target, refused.status, refused.body.data]).toEqual([method, target, status, null]);
    }
    const key = { 'idempotency-key': 'once' };
    const west = await admin.call<Beacon>('POST', '/api/beacons', { name: 'west', node_id: nodeId }, key);
    expect(await admin.call('POST', '/api/beacons', { name: 'west', node_id: nodeId }, key)).toEqual(west);
    expect(await admin.call('DELETE', `/api/beacons/${west.id}`)).toEqual({});
    expect(await admin.call('GET', '/api/beacons')).toMatchObject({ total: 1 });
  });

  it('names it in the sentence that refuses to delete what it refers to', async () => {
    const { body } = await admin.send('DELETE', `/api/nodes/${nodeId}`);
    expect(body.error).toContain(`beacon "south" (${beacon.id})`);
  });

  it('shows it in the audit, each entry with the name of its time', async () => {
    const { items } = await admin.call<{ items: readonly AuditEntry[] }>('GET', '/api/audit?resource_type=beacon');
    expect(items.map(({ action, resource }) => [action, resource.name])).toEqual([
      ['beacon.delete', 'west'],
      ['beacon.create', 'west'],
      ['beacon.update', 'south'],
      ['beacon.update', 'north'],
      ['beacon.update', 'north'],
      ['beacon.create', 'north'],
    ]);
    expect(items[2]?.changes).toEqual([{ path: 'name', before: 'north', after: 'south' }]);
  });

  it('takes its changes back', async () => {
    const { items } = await admin.call<{ items: readonly AuditEntry[] }>('GET', '/api/audit?resource_type=beacon');
    const [deletion] = items;
    const back = await admin.call<AuditEntry>('POST', `/api/audit/${deletion?.id}/revert`);
    expect(await admin.call('GET', `/api/beacons/${deletion?.resource.id}`)).toMatchObject({
      name: 'west',
      version: 3,
    });
    await admin.call('POST', `/api/audit/${back.id}/revert`);
    expect((await admin.send('GET', `/api/beacons/${deletion?.resource.id}`)).status).toBe(404);
  });

  it('has it in documents of the fleet', async () => {
    type Exported = { readonly documents: readonly { readonly document: string }[] };
    const { documents } = await admin.call<Exported>('GET', '/api/fleet/export?set=');
    const document = documents[0]?.document ?? '';
    expect(document).toContain('beacons:\n  south: {node: tower, interval_secs: 5, colours: [red, green]}\n');
    expect(await admin.call('POST', '/api/fleet/plan', { document })).toMatchObject({ steps: [], obstacles: [] });
    const changed = document.replace('interval_secs: 5', 'interval_secs: 6');
    expect(await admin.call('POST', '/api/fleet/apply', { document: changed })).toMatchObject({
      steps: [{ action: 'update', resource: { type: 'beacon', name: 'south' } }],
    });
    await admin.call('POST', '/api/fleet/apply', { document });
  });

  it('describes it in the OpenAPI document', async () => {
    const document = await (await fetch(`${service.url}/openapi.json`)).json();
    expect(document).toMatchObject({
      paths: { '/api/beacons': { get: {}, post: {} }, '/api/beacons/{id}': { get: {}, put: {}, delete: {} } },
      components: { schemas: { Beacon: { properties: { interval_secs: {} } } } },
    });
  });

  it('has it in the checkpoint of the fold, after a rebuild of the read models and after a restart', async () => {
    const before = await admin.call('GET', '/api/beacons');
    // The entry of a sign-in is written a little later, at the latest when the service stops.
    await service.admin();
    await service.stop();

    const log = await readLog(dataDir);
    const domain = 'src/domain/fleet';
    const { captureFleet, encodeFleet, restoreFleet } = await fromCopy<typeof Checkpoint>(`${domain}/checkpoint.ts`);
    const { applyCommand } = await fromCopy<typeof Apply>(`${domain}/apply.ts`);
    const { emptyFleet } = await fromCopy<typeof Fleet>(`${domain}/fleet.ts`);
    const fleet = emptyFleet();
    for (const command of log) applyCommand(fleet, command);
    const restored = restoreFleet(Buffer.concat([...encodeFleet(captureFleet(fleet))]));
    expect(restored.get({ type: 'beacon' }, beacon.id)).toMatchObject({ name: 'south', interval_secs: 5, version: 6 });
    expect(restored.idOfName('beacon', 'South')).toBe(beacon.id);
    expect([...restored.referrersOf('node', nodeId)]).toEqual([`beacon/${beacon.id}`]);

    const rebuilt = await runMaintenanceProgram('projections:rebuild', [], { SVC_DATA_DIR: dataDir }, '', root);
    expect(rebuilt).toMatchObject({ code: 0, out: expect.stringMatching(/^Rebuilt all read models from \d+/) });
    const compared = await runMaintenanceProgram(
      'projections:rebuild',
      ['--check'],
      { SVC_DATA_DIR: dataDir },
      '',
      root,
    );
    expect(compared).toMatchObject({ code: 0, out: expect.stringMatching(/: 0 different\.\n$/) });

    await service.start({ root });
    expect(await (await service.admin()).call('GET', '/api/beacons')).toEqual(before);
  });
});

/** A module of the copy. */
function fromCopy<M>(path: string): Promise<M> {
  return import(/* @vite-ignore */ join(copy.root, path)) as Promise<M>;
}

/** The commands of the fleet that a stopped service has left. */
async function readLog(dataDir: string): Promise<readonly RecordedCommand[]> {
  const stores = await openEmbedded({ dataDir, clock: createManualClock(), logger: silentLogger });
  try {
    return (await wholeLog(stores.eventStore)).filter(({ stream }) => stream === streams.fleet);
  } finally {
    await stores.close();
  }
}

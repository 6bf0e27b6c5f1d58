/**
 * Part of `npm run generate`: writes `examples/fixtures/`, which authors of agents test with: snapshots of every kind
 * of rule, and the bytes of handshakes and frames. `npm run generate:check` compares them with the committed files.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { fromBinary, toJson } from '@bufbuild/protobuf';
import { createCertificates } from '../src/agent/plan/certificates.js';
import { planTarget } from '../src/agent/plan/target.js';
import { RuntimeConfigSnapshot } from '../src/gen/svc/control/v1/config.js';
import { runSync } from '../src/kernel/pieces.js';
import { protoFiles } from './agent-fixtures/proto-files.js';
import { snapshotFixtures } from './agent-fixtures/snapshots.js';
import { frameVectors, handshakeVectors, vectorNode } from './agent-fixtures/vectors.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = 'examples/fixtures';
const json = (value: unknown): Buffer => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);

/** The files by their path from the repository's root. */
export function agentFixtures(): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>();
  const schema = protoFiles().getMessage('svc.control.v1.RuntimeConfigSnapshot');
  if (schema === undefined) throw new Error('proto/ has no RuntimeConfigSnapshot');
  const index = snapshotFixtures.map(({ name, about, snapshot: make }, position) => {
    const snapshot = make({ nodeId: vectorNode, generation: BigInt(position + 1), address: '0.0.0.0', port: 8443 });
    const bytes = Buffer.from(RuntimeConfigSnapshot.encode(snapshot).finish());
    files.set(`${folder}/snapshots/${name}.binpb`, bytes);
    files.set(`${folder}/snapshots/${name}.json`, json(toJson(schema, fromBinary(schema, bytes))));
    const contextOf = createCertificates()(snapshot.gateway?.tls?.certificates ?? []);
    const planned = runSync(planTarget(snapshot, { rejectUnsupported: true, contextOf }));
    const rejected = planned.ok ? [] : planned.error.map(({ resourceType, path }) => `${resourceType}: ${path}`);
    return { name, about, reference_agent: planned.ok ? 'applies' : 'rejects', rejected };
  });
  files.set(`${folder}/snapshots/index.json`, json(index));
  files.set(`${folder}/handshake.json`, json(handshakeVectors()));
  files.set(`${folder}/frames.json`, json(frameVectors()));
  return files;
}

function write(): void {
  for (const [path, content] of agentFixtures()) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) write();

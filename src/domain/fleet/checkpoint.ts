/**
 * The fleet as bytes and back, so that a start need not replay a million events. Only what events wrote is kept;
 * indexes are derived again. Implements `docs/contract/domain.md`, Fold checkpoint.
 */
import { canonicalJson } from '../../kernel/json.js';
import type { ChainState } from '../chain/chain.js';
import { nameKey } from '../resource/names.js';
import type { NodeState } from '../node/node.js';
import type { SettingsState } from '../settings/settings.js';
import type { UpstreamState } from '../upstream/upstream.js';
import { indexChain } from './apply.js';
import type { Fleet } from './fleet.js';
import { emptyFleet } from './fleet.js';
import type { AcceptedKey } from '../aggregate/idempotency.js';
import { putKey } from '../aggregate/idempotency.js';

/** Raised whenever the fold's state or meaning changes: an older checkpoint is then thrown away and the log replayed. */
export const foldVersion = 1;

type Line =
  | readonly [
      'head',
      {
        readonly revision: number;
        readonly position: number;
        readonly compiler: number;
        readonly settings: SettingsState;
      },
    ]
  | readonly ['node', string, NodeState]
  | readonly ['upstream', string, UpstreamState]
  | readonly ['chain', string, ChainState]
  | readonly ['touched', string, number]
  | readonly ['key', string, AcceptedKey];

/** The fold's values at one moment, by reference: values are immutable, so the fold may go on meanwhile. */
export interface FleetCapture {
  readonly revision: number;
  readonly position: number;
  readonly lines: readonly Line[];
}

const byId = (a: Line, b: Line): number => (String(a[1]) < String(b[1]) ? -1 : 1);

/** Takes the capture; cheap enough for the hot path. */
export function captureFleet(fleet: Fleet): FleetCapture {
  const revision = fleet.revision.value;
  const position = fleet.position.value;
  const head: Line = [
    'head',
    { revision, position, compiler: fleet.compilerVersion.value, settings: fleet.settings.value },
  ];
  const rows = <V, L extends Line>(table: Iterable<[string, V]>, line: (id: string, value: V) => L): L[] =>
    [...table].map(([id, value]) => line(id, value));
  return {
    revision,
    position,
    lines: [
      head,
      ...rows(fleet.nodes.entries(), (id, value) => ['node', id, value] as const).sort(byId),
      ...rows(fleet.upstreams.entries(), (id, value) => ['upstream', id, value] as const).sort(byId),
      ...rows(fleet.chains.entries(), (id, value) => ['chain', id, value] as const).sort(byId),
      ...rows(fleet.touched.entries(), (id, value) => ['touched', id, value] as const).sort(byId),
      ...rows(fleet.idempotency.keys.entries(), (id, value) => ['key', id, value] as const).sort(byId),
    ],
  };
}

const linesPerSlice = 500;

/** The bytes of a capture in slices of some hundred rows; equal fleets give equal bytes. */
export function* encodeFleet(capture: FleetCapture): Generator<Uint8Array> {
  const encoder = new TextEncoder();
  for (let from = 0; from < capture.lines.length; from += linesPerSlice) {
    const slice = capture.lines.slice(from, from + linesPerSlice);
    yield encoder.encode(slice.map((line) => `${canonicalJson(line)}\n`).join(''));
  }
}

/** The fleet of a checkpoint. @throws Error when the bytes are not a checkpoint of this fold version */
export function restoreFleet(bytes: Uint8Array): Fleet {
  return fleetOf({ lines: parseLines(bytes) });
}

/** A fleet with the values of a capture and tables of its own: it shares nothing that changes. */
export function fleetOf({ lines }: { readonly lines: Iterable<Line> }): Fleet {
  const fleet = emptyFleet();
  for (const line of lines) restoreLine(fleet, line);
  fleet.journal.commit();
  return fleet;
}

function* parseLines(bytes: Uint8Array): Generator<Line> {
  const text = new TextDecoder().decode(bytes);
  for (let from = 0; from < text.length;) {
    const end = text.indexOf('\n', from);
    yield JSON.parse(text.slice(from, end === -1 ? undefined : end)) as Line;
    from = end === -1 ? text.length : end + 1;
  }
}

function restoreLine(fleet: Fleet, line: Line): void {
  switch (line[0]) {
    case 'head':
      fleet.revision.set(line[1].revision);
      fleet.position.set(line[1].position);
      fleet.compilerVersion.set(line[1].compiler);
      fleet.settings.set(line[1].settings);
      return;
    case 'node':
      fleet.nodes.set(line[1], line[2]);
      fleet.names.set(`node/${nameKey(line[2].name)}`, line[1]);
      return;
    case 'upstream':
      fleet.upstreams.set(line[1], line[2]);
      fleet.names.set(`l4_upstream/${nameKey(line[2].name)}`, line[1]);
      return;
    case 'chain':
      fleet.chains.set(line[1], line[2]);
      fleet.names.set(`l4_chain/${nameKey(line[2].name)}`, line[1]);
      indexChain(fleet, line[2]);
      return;
    case 'touched':
      fleet.touched.set(line[1], line[2]);
      return;
    case 'key':
      putKey(fleet.idempotency, line[1], line[2]);
      return;
    default: {
      const never: never = line;
      throw new Error(`unknown line in a fold checkpoint: ${JSON.stringify(never)}`);
    }
  }
}

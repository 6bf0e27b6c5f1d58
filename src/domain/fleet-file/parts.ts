/**
 * The commands of an apply: rotations first, in one of their own, since they cannot be taken back; the rest in one, unless
 * its events exceed what one command may hold. Then it is cut between groups: steps that are valid only together stay
 * together, with their deletions, and what is left to delete comes last. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, "Split".
 */
import { applyInPieces } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import { resourceOfType } from '../fleet/resources.js';
import type { AnyState } from '../fleet/resources.js';
import { policyKey, nodeOfPolicy } from '../listener-policy/policy.js';
import { ownerOf } from '../references/references.js';
import { nameIndexKey } from '../resource/meta.js';
import { forEach } from '../../kernel/pieces.js';
import { ok } from '../../kernel/result.js';
import type { CarriedOut, Step } from './carry-out.js';
import { obstaclesOf } from './carry-out.js';
import { triedTogether } from './together.js';

export interface Parts {
  /** One for each command. */
  readonly parts: readonly (readonly Step[])[];
  /** Sentences about groups that no command can hold. */
  readonly obstacles: readonly string[];
}

/** So many steps are looked at, at a time. */
const perPiece = 250;

/** Yields between two pieces. @param mostBytes of the events of one command @param fleet before all steps */
export function* partsOf(
  fleet: Fleet,
  { steps, after }: Pick<CarriedOut, 'steps' | 'after'>,
  mostBytes: number,
): Generator<void, Parts> {
  const rotations = steps.filter(({ final }) => final);
  const rest = steps.filter(({ final }) => !final);
  const obstacles: string[] = [];
  const parts: (readonly Step[])[] = [];
  for (const some of [rotations, rest]) {
    if (some.length === 0) continue;
    let all = 0;
    yield* forEach(some, perPiece, (step) => {
      all += bytesOf(step);
    });
    if (all <= mostBytes) {
      parts.push(some);
      continue;
    }
    const packed: Step[][] = [];
    let room = 0;
    yield* forEach(yield* groupsOf(fleet, after, some), perPiece, (group) => {
      const bytes = group.reduce((sum, step) => sum + bytesOf(step), 0);
      if (bytes > mostBytes) obstacles.push(tooLarge(group, bytes, mostBytes));
      if (packed.length === 0 || bytes > room) {
        packed.push([]);
        room = mostBytes;
      }
      packed.at(-1)?.push(...group);
      room -= bytes;
    });
    parts.push(...packed);
  }
  return { parts, obstacles };
}

/** Sentences about commands that would be refused although all steps hold together. Yields between two pieces. */
export function* heldInTurn(fleet: Fleet, parts: Parts['parts']): Generator<void, readonly string[]> {
  const { state } = draftFleet(fleet);
  for (const steps of parts) {
    const { held, refused } = yield* triedTogether(
      state,
      steps.map(({ wish }) => wish),
      ({ command }) => ok(command),
    );
    if (refused.length > 0) return obstaclesOf(refused);
    const events = held.flatMap((one) => one.events);
    if (events.length > 0) yield* applyInPieces(state, hypothetical(state, events));
  }
  return [];
}

/** Bytes of an event besides its type and data, at most: who gave the command, by which token, with which key. */
const metadataBytes = 768;

const bytesOf = ({ events }: Step): number =>
  events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)) + metadataBytes, 0);

function tooLarge(group: readonly Step[], bytes: number, mostBytes: number): string {
  const names = [...new Set(group.map(({ wish: { resource } }) => `the ${resource.type} "${resource.name}"`))];
  const shown = names.length > 5 ? [...names.slice(0, 5), `${names.length - 5} more`] : names;
  return `${shown.join(', ')} can only be changed together, which makes events of ${bytes} bytes; expected at most ${mostBytes} for one command`;
}

/** Groups of steps, each by itself valid behind those before it. A step stays before what was behind it where it can. */
function* groupsOf(fleet: Fleet, after: Fleet, steps: readonly Step[]): Generator<void, readonly (readonly Step[])[]> {
  const sets = unions(steps.length);
  /** The first step on each. */
  const byResource = new Map<string, number>();
  for (const [index, { wish }] of steps.entries()) {
    const { type, id } = wish.resource;
    const first = byResource.get(ownerOf(type, id));
    if (first === undefined) byResource.set(ownerOf(type, id), index);
    else sets.unite(first, index);
  }
  const givers = new Map<string, number[]>();
  yield* forEach(steps, perPiece, (step, index) => {
    for (const key of givenUpBy(fleet, step)) add(givers, key, index);
  });
  yield* forEach(steps, perPiece, (step, index) => {
    if (!step.tentative) return;
    for (const key of neededBy(after, step)) for (const giver of givers.get(key) ?? []) sets.unite(index, giver);
  });
  // A step that moves forward with its group takes along what it refers to.
  const byId = new Map<string, number[]>();
  for (const [index, { wish }] of steps.entries()) {
    add(byId, wish.resource.id, index);
  }
  for (let united = true; united;) {
    united = false;
    yield* forEach(steps, perPiece, ({ wish }, index) => {
      const first = sets.firstOf(index);
      if (first === index) return;
      for (const id of idsIn(JSON.stringify(wish.command))) {
        for (const other of byId.get(id) ?? []) {
          if (other > first && other < index && sets.unite(first, other)) united = true;
        }
      }
    });
  }
  const groups = new Map<number, Step[]>();
  for (const [index, step] of steps.entries()) {
    const first = sets.firstOf(index);
    const group = groups.get(first);
    if (group === undefined) groups.set(first, [step]);
    else group.push(step);
  }
  return [...groups.values()];
}

/** Thousands of steps may share a key, so the list grows in place. */
function add(lists: Map<string, number[]>, key: string, index: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [index]);
  else list.push(index);
}

const idsIn = (text: string): Iterable<string> =>
  new Set(text.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? []);

/** What only one resource may have, and a step may take away: names, listeners, references, places for policies. */
function* givenUpBy(fleet: Fleet, step: Step): Generator<string> {
  const { type, id } = step.wish.resource;
  const state = fleet.get<AnyState>({ type }, id);
  if (state !== undefined) {
    yield nameIndexKey(type, state.name);
    yield* resourceOfType(type)?.indexed?.references(state) ?? [];
  }
  yield* listeners(fleet, ownerOf(type, id));
  if (type === policyKey.type) yield `policies of ${nodeOfPolicy(id)}`;
  if (movesMultiplex(step)) yield multiplex;
}

/** What a step takes, that another may have to give up before. */
function* neededBy(after: Fleet, step: Step): Generator<string> {
  const { type, id } = step.wish.resource;
  const state = after.get<AnyState>({ type }, id);
  if (state !== undefined) yield nameIndexKey(type, state.name);
  // An edit that others object to, or a deletion of what they use.
  yield ownerOf(type, id);
  const taken = [...listeners(after, ownerOf(type, id))];
  yield* taken;
  if (taken.length > 0) yield multiplex;
  if (type === policyKey.type) yield `policies of ${nodeOfPolicy(id)}`;
  if (movesMultiplex(step)) yield anyListener;
}

const movesMultiplex = ({ events }: Step): boolean =>
  events.some(
    (event) =>
      event.type === 'ConnectivityUpdated' &&
      Object.keys(event.data.changes).some((field) => /^(multiplex|nodes)/.test(field)),
  );

const multiplex = 'multiplex';
const anyListener = 'listener';

function* listeners(fleet: Fleet, owner: string): Generator<string> {
  const claims = fleet.claimsOf.get(owner) ?? [];
  for (const { nodeId, transport, port } of claims) yield `${nodeId}/${transport}/${port}`;
  if (claims.length > 0) yield anyListener;
}

interface Unions {
  /** The first member of the set that a number is in. */
  firstOf(index: number): number;
  /** @returns false when they were in one set already */
  unite(a: number, b: number): boolean;
}

function unions(count: number): Unions {
  const parents = Array.from({ length: count }, (_, index) => index);
  const firstOf = (index: number): number => {
    let at = index;
    for (let parent = parents[at] ?? at; parent !== at; parent = parents[at] ?? at) {
      parents[at] = parents[parent] ?? parent;
      at = parent;
    }
    return at;
  };
  return {
    firstOf,
    unite(a, b) {
      const [first, second] = [firstOf(a), firstOf(b)].sort((one, other) => one - other);
      if (first === undefined || second === undefined || first === second) return false;
      parents[second] = first;
      return true;
    },
  };
}

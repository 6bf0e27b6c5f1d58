/**
 * The commands of an apply: rotations first, in one of their own, since they cannot be taken back; the rest in one, unless
 * its events exceed what one command may hold. Then it is cut by size, in its order, with the steps on one resource together.
 * A step that does not hold in its command, because one behind it has to make room, waits for the next. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, "Split".
 */
import { applyInPieces } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import type { Owner } from '../references/references.js';
import { ownerOf } from '../references/references.js';
import { forEach } from '../../kernel/pieces.js';
import { ok } from '../../kernel/result.js';
import type { Step } from './carry-out.js';
import { obstaclesOf } from './carry-out.js';
import type { Attempt, TriedTogether } from './together.js';
import { triedTogether } from './together.js';

export interface Parts {
  /** One for each command. */
  readonly parts: readonly (readonly Step[])[];
  /** Sentences about steps that no command can hold. */
  readonly obstacles: readonly string[];
}

/** So many steps are measured, or carried out, at a time. */
const perPiece = { measured: 250, carriedOut: 25 };

/** How often the rest of a command is tried again, without the steps that did not hold. */
const tries = 4;

interface Sized {
  readonly step: Step;
  readonly bytes: number;
}

/** Yields between two pieces. @param mostBytes of the events of one command @param fleet before all steps */
export function* partsOf(fleet: Fleet, steps: readonly Step[], mostBytes: number): Generator<void, Parts> {
  const sized: Sized[] = [];
  yield* forEach(steps, perPiece.measured, (step) => void sized.push({ step, bytes: bytesOf(step) }));
  const kinds = [true, false]
    .map((final) => sized.filter(({ step }) => step.final === final))
    .filter((some) => some.length > 0);
  const obstacles = sized
    .filter(({ bytes }) => bytes > mostBytes)
    .map(
      ({ step, bytes }) =>
        `the ${step.wish.resource.type} "${step.wish.resource.name}" makes events of ${bytes} bytes; expected at most ${mostBytes} for one command`,
    );
  if (obstacles.length > 0 || (kinds.length <= 1 && sizeOf(sized) <= mostBytes)) {
    return { parts: kinds.map((some) => some.map(({ step }) => step)), obstacles };
  }
  const { state } = draftFleet(fleet);
  const parts: (readonly Step[])[] = [];
  for (const some of kinds) {
    const torn = yield* cut(state, sizeOf(some) <= mostBytes ? some : byResource(some), mostBytes, parts);
    for (const sentence of obstaclesOf(torn)) {
      obstacles.push(`${sentence}; what holds only together falls into two commands: apply just that first`);
    }
  }
  return { parts, obstacles };
}

type Refused = TriedTogether<Attempt & { readonly step: Step }>['refused'];

/**
 * Carries out the steps on the state, as commands that are added to the parts.
 * @returns why steps wait for others when there is no room for both, or nothing comes any more
 */
function* cut(
  state: Fleet,
  steps: readonly Sized[],
  mostBytes: number,
  parts: (readonly Step[])[],
): Generator<void, Refused> {
  let waiting: readonly Sized[] = [];
  let torn: Refused = [];
  let next = 0;
  while (next < steps.length) {
    const begin = next;
    let room = mostBytes - sizeOf(waiting);
    // With less, ever fewer steps would be carried out at a time.
    if (room < mostBytes / 2) break;
    for (let one = steps[next]; one !== undefined && one.bytes <= room; one = steps[next]) {
      room -= one.bytes;
      next += 1;
    }
    if (next === begin) break;
    const part: readonly Sized[] = [...waiting, ...steps.slice(begin, next)];
    const { held, refused } = yield* heldOf(
      state,
      part.map(({ step }) => step),
    );
    if (held.size > 0) parts.push([...held]);
    waiting = part.filter(({ step }) => !held.has(step));
    torn = refused;
  }
  if (waiting.length > 0) parts.push([...waiting, ...steps.slice(next)].map(({ step }) => step));
  return torn;
}

/** In the same order, but each resource's steps behind its first one: a listener is given up by a deploy. */
function byResource(steps: readonly Sized[]): readonly Sized[] {
  const groups = new Map<Owner, Sized[]>();
  for (const one of steps) {
    const owner = ownerIn(one.step);
    const group = groups.get(owner);
    if (group === undefined) groups.set(owner, [one]);
    else group.push(one);
  }
  return [...groups.values()].flat();
}

const sizeOf = (steps: readonly Sized[]): number => steps.reduce((sum, { bytes }) => sum + bytes, 0);

const ownerIn = ({ wish: { resource } }: Step): Owner => ownerOf(resource.type, resource.id);

/** Bytes of an event besides its type and data, at most: who gave the command, by which token, with which key. */
const metadataBytes = 768;

const bytesOf = ({ events }: Step): number =>
  events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)) + metadataBytes, 0);

/** The steps that hold as one command behind the state, which then has them. */
function* heldOf(
  state: Fleet,
  steps: readonly Step[],
): Generator<void, { readonly held: ReadonlySet<Step>; readonly refused: Refused }> {
  let some = steps;
  const refused: Refused[number][] = [];
  for (let round = 0; round < tries; round += 1) {
    const attempts = some.map((step) => ({ ...step.wish, step }));
    const tried = yield* triedTogether(state, attempts, ({ command }) => ok(command));
    refused.push(...tried.refused);
    const held = new Set(tried.held.map(({ attempt }) => attempt.step));
    for (const { attempt } of tried.refused) held.delete(attempt.step);
    if (held.size === some.length) {
      const events = tried.held.flatMap((one) => one.events);
      if (events.length > 0) yield* applyInPieces(state, hypothetical(state, events));
      return { held, refused };
    }
    const fails = new Set(some.filter((step) => !held.has(step)).map(ownerIn));
    some = some.filter((step) => !fails.has(ownerIn(step)));
  }
  return { held: new Set(), refused };
}

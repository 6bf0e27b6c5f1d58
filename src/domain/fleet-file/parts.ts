/**
 * The commands of an apply: rotations first, in one of their own, since they cannot be taken back; the rest in one, unless
 * its events exceed what one command may hold. Then it is cut by size, in its order. A step that does not hold in its
 * command, because one behind it has to make room, waits for the last. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, "Split".
 */
import { applyCommand } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import type { Owner } from '../references/references.js';
import { ownerOf } from '../references/references.js';
import { forEach } from '../../kernel/pieces.js';
import { ok } from '../../kernel/result.js';
import type { Step } from './carry-out.js';
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

/** Yields between two pieces. @param mostBytes of the events of one command @param fleet before all steps */
export function* partsOf(fleet: Fleet, steps: readonly Step[], mostBytes: number): Generator<void, Parts> {
  const obstacles: string[] = [];
  const cuts: (readonly (readonly Step[])[])[] = [];
  for (const final of [true, false]) {
    const some = steps.filter((step) => step.final === final);
    cuts.push(yield* bySize(some, mostBytes, obstacles));
  }
  if (cuts.flat().length <= 1) return { parts: cuts.flat(), obstacles };
  const { state } = draftFleet(fleet);
  const parts: (readonly Step[])[] = [];
  const torn: Step[] = [];
  /** Carries out what holds of a command, and lets the rest wait, with all that comes later about the same resources. */
  function* carriedOut(part: readonly Step[], waiting: Step[]): Generator<void> {
    const owners = new Set(waiting.map(ownerIn));
    const held = yield* heldOf(
      state,
      part.filter((step) => !owners.has(ownerIn(step))),
    );
    if (held.length > 0) parts.push(held);
    const done = new Set(held);
    waiting.push(...part.filter((step) => !done.has(step)));
  }
  for (const cut of cuts) {
    const waiting: Step[] = [];
    for (const part of cut.slice(0, -1)) yield* carriedOut(part, waiting);
    const last = yield* bySize([...waiting, ...(cut.at(-1) ?? [])], mostBytes, []);
    for (const part of last) yield* carriedOut(part, torn);
  }
  if (torn.length > 0) {
    parts.push(torn);
    obstacles.push(`${namesOf(torn)} can only be changed together, and fall into two commands; apply just these first`);
  }
  return { parts, obstacles };
}

const ownerIn = ({ wish: { resource } }: Step): Owner => ownerOf(resource.type, resource.id);

/** Bytes of an event besides its type and data, at most: who gave the command, by which token, with which key. */
const metadataBytes = 768;

const bytesOf = ({ events }: Step): number =>
  events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)) + metadataBytes, 0);

/** The steps in their order, cut into as few commands as they fit. @param obstacles gets a sentence for one that fits none */
function* bySize(
  steps: readonly Step[],
  mostBytes: number,
  obstacles: string[],
): Generator<void, readonly (readonly Step[])[]> {
  const parts: Step[][] = [];
  let room = 0;
  yield* forEach(steps, perPiece.measured, (step) => {
    const bytes = bytesOf(step);
    if (parts.length === 0 || bytes > room) {
      parts.push([]);
      room = mostBytes;
    }
    parts.at(-1)?.push(step);
    room -= bytes;
    if (bytes <= mostBytes) return;
    obstacles.push(`${namesOf([step])} makes events of ${bytes} bytes; expected at most ${mostBytes} for one command`);
  });
  return parts;
}

/** The steps that hold as one command behind the state, which then has them. */
function* heldOf(state: Fleet, steps: readonly Step[]): Generator<void, readonly Step[]> {
  let some = steps;
  for (let round = 0; round < tries; round += 1) {
    const attempts = some.map((step) => ({ ...step.wish, step }));
    const { held, refused } = yield* triedTogether(state, attempts, ({ command }) => ok(command));
    const holding = new Set(held.map(({ attempt }) => attempt.step));
    for (const { attempt } of refused) holding.delete(attempt.step);
    if (holding.size === some.length) {
      yield* forEach(held, perPiece.carriedOut, ({ events }) => {
        applyCommand(state, hypothetical(state, events));
      });
      return some;
    }
    const fails = new Set(some.filter((step) => !holding.has(step)).map(ownerIn));
    some = some.filter((step) => !fails.has(ownerIn(step)));
  }
  return [];
}

const namesOf = (steps: readonly Step[]): string => {
  const names = [...new Set(steps.map(({ wish: { resource } }) => `the ${resource.type} "${resource.name}"`))];
  return names.length > 5 ? `${names.slice(0, 5).join(', ')}, and ${names.length - 5} more` : names.join(', ');
};

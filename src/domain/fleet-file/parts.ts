/**
 * Splits an apply into commands: first the rotations, which cannot be reverted, then the rest as one command, or as several
 * when its events exceed the bound of one. The steps of one resource stay together. A step that needs a later step first
 * moves to the next command. Implements `docs/contract/automation.md#the-fleet-as-a-file`, "Split".
 */
import { applyInPieces } from '../fleet/apply.js';
import { draftFleet, type Fleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import { ownerOf, type Owner } from '../references/references.js';
import { mostBytesOf } from '../resource/event-bytes.js';
import { forEach } from '../../kernel/pieces.js';
import { ok } from '../../kernel/result.js';
import { obstaclesOf, type Step } from './carry-out.js';
import { dryRun, type Attempt, type DryRun } from './dry-run.js';
import { groupBy } from '../../kernel/maps.js';

export interface Parts {
  /** The steps of each command. */
  readonly parts: readonly (readonly Step[])[];
  /** Sentences about steps that no command can hold. */
  readonly obstacles: readonly string[];
}

const measuredPerPiece = 250;

/** How often a command is tried, each time without the steps that were refused. */
const tries = 4;

interface Sized {
  readonly step: Step;
  readonly bytes: number;
}

/** Yields between two pieces. @param fleet before all steps @param mostBytes bounds the events of one command */
export function* partsOf(fleet: Fleet, steps: readonly Step[], mostBytes: number): Generator<void, Parts> {
  const sized: Sized[] = [];
  yield* forEach(steps, measuredPerPiece, (step) => void sized.push({ step, bytes: mostBytesOf(step.events) }));
  const kinds = [true, false]
    .map((final) => sized.filter(({ step }) => step.final === final))
    .filter((some) => some.length > 0);
  const obstacles = sized
    .filter(({ bytes }) => bytes > mostBytes)
    .map(
      ({ step, bytes }) =>
        `the ${step.change.resource.type} "${step.change.resource.name}" makes events of ${bytes} bytes; expected at most ${mostBytes} for one command`,
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

type Refused = DryRun<Attempt & { readonly step: Step }>['refused'];

/**
 * Applies the steps to the state, command by command, and adds these to the parts. @returns why the last steps were refused
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
    // With less room, ever fewer steps would fit into a command.
    if (room < mostBytes / 2) break;
    for (let one = steps[next]; one !== undefined && one.bytes <= room; one = steps[next]) {
      room -= one.bytes;
      next += 1;
    }
    if (next === begin) break;
    const part: readonly Sized[] = [...waiting, ...steps.slice(begin, next)];
    const { accepted, refused } = yield* applyAccepted(
      state,
      part.map(({ step }) => step),
    );
    if (accepted.size > 0) parts.push([...accepted]);
    waiting = part.filter(({ step }) => !accepted.has(step));
    torn = refused;
  }
  if (waiting.length > 0) parts.push([...waiting, ...steps.slice(next)].map(({ step }) => step));
  return torn;
}

/** In the same order, but each resource's steps follow its first one: a chain may release a listener by a deploy. */
function byResource(steps: readonly Sized[]): readonly Sized[] {
  return [...groupBy(steps, ({ step }) => ownerIn(step)).values()].flat();
}

const sizeOf = (steps: readonly Sized[]): number => steps.reduce((sum, { bytes }) => sum + bytes, 0);

const ownerIn = ({ change: { resource } }: Step): Owner => ownerOf(resource.type, resource.id);

/** Applies to the state the steps that are accepted as one command. */
function* applyAccepted(
  state: Fleet,
  steps: readonly Step[],
): Generator<void, { readonly accepted: ReadonlySet<Step>; readonly refused: Refused }> {
  let some = steps;
  const refused: Refused[number][] = [];
  for (let round = 0; round < tries; round += 1) {
    const attempts = some.map((step) => ({ ...step.change, step }));
    const run = yield* dryRun(state, attempts, ({ command }) => ok(command));
    refused.push(...run.refused);
    const accepted = new Set(run.accepted.map(({ attempt }) => attempt.step));
    for (const { attempt } of run.refused) accepted.delete(attempt.step);
    if (accepted.size === some.length) {
      const events = run.accepted.flatMap((one) => one.events);
      if (events.length > 0) yield* applyInPieces(state, hypothetical(state, events));
      return { accepted, refused };
    }
    const fails = new Set(some.filter((step) => !accepted.has(step)).map(ownerIn));
    some = some.filter((step) => !fails.has(ownerIn(step)));
  }
  return { accepted: new Set(), refused };
}

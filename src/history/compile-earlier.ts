/**
 * The worker's part of a look into the past: folds the commands that the main thread sends, checks the log chain as any
 * fold does, and compiles one node. It keeps its last fold, from which a later job may go on. Secrets stay sealed: a worker
 * has no key to open them. Implements `docs/contract/rest.md#nodes`.
 */
import { earlierFold, mayBeginAt } from '../domain/compile/earlier.js';
import type { EarlierFold } from '../domain/compile/earlier.js';
import { emptyFleet } from '../domain/fleet/fleet.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { BrokenChainError } from '../domain/log-chain/links.js';
import { readCommand } from '../domain/log/upcast.js';
import { unreachable } from '../kernel/errors.js';
import type { RecordedCommand, RecordedEvent } from '../kernel/event.js';
import { macOfKeys } from '../security/log-chain/keys.js';
import { createLogChain } from '../security/log-chain/log-chain.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import { createCommandAssembler } from '../storage/follow.js';
import { isInLog, readFleet } from '../projections/fleet/fold-checkpoint.js';
import type { Job, JobPort } from '../workers/thread.js';
import type { FromJob, ToJob, Wanted } from './messages.js';

/** A job that remembers the fold of the one before. */
export function createCompileEarlier(): Job {
  let kept: Fleet | undefined;
  return async (port) => {
    const { nodeId, generation, macKeys } = (await port.receive()) as Wanted;
    const logChain = createLogChain({ current: macKeys.current, macOf: macOfKeys(macKeys), macKeys: () => macKeys });
    const usable = (fleet: Fleet | undefined): Fleet | undefined =>
      fleet !== undefined && mayBeginAt(fleet, nodeId, generation) ? fleet : undefined;
    let fleet = usable(kept) ?? emptyFleet();
    // Only one fold is held at a time, and none that a failure left behind.
    kept = undefined;
    const say = (message: FromJob): void => port.send(message);

    say({ kind: 'from', revision: fleet.revision.value });
    let first = (await port.receive()) as ToJob;
    if (first.kind === 'checkpoint') {
      const { stored, last } = first.checkpoint;
      const read = readFleet(stored, logChain);
      if (read.ok && isInLog(read.value, last)) fleet = usable(read.value) ?? fleet;
      say({ kind: 'from', revision: fleet.revision.value });
      first = (await port.receive()) as ToJob;
    }
    const fold = earlierFold(fleet, nodeId, generation);
    const broken = await foldAll(port, first, fleet, fold, logChain);
    if (broken === undefined) kept = fleet;
    say(broken ?? { kind: 'compiled', snapshot: fold.snapshot() });
  };
}

/** Folds what the main thread sends, until it ends or the fold needs no more. */
async function foldAll(
  port: JobPort,
  first: ToJob,
  fleet: Fleet,
  fold: EarlierFold,
  logChain: LogChain,
): Promise<Extract<FromJob, { readonly kind: 'broken' }> | undefined> {
  const assembler = createCommandAssembler();
  for (let part = first; ; part = (await port.receive()) as ToJob) {
    switch (part.kind) {
      case 'checkpoint':
        throw new Error('a checkpoint comes before the events');
      case 'events':
        try {
          for (const command of assembler.add(JSON.parse(part.text) as RecordedEvent[])) {
            if (!foldOne(command, fleet, fold, logChain)) return undefined;
          }
        } catch (error) {
          if (error instanceof BrokenChainError) return { kind: 'broken', at: error.at };
          throw error;
        }
        port.send({ kind: 'taken' } satisfies FromJob);
        break;
      case 'end':
        // A command that is not whole yet is past the wanted generation, or its end is not in the log.
        return undefined;
      default:
        return unreachable(part);
    }
  }
}

function foldOne(command: RecordedCommand, fleet: Fleet, fold: EarlierFold, logChain: LogChain): boolean {
  const expected = fleet.revision.value + 1;
  const { stream, revision } = command.events[0];
  if (revision !== expected) throw new Error(`${stream} continues at ${revision} instead of ${expected}`);
  const head = logChain.follow(fleet.logChain.value, command);
  if (!fold.fold(readCommand(command))) return false;
  fleet.logChain.set(head);
  return true;
}

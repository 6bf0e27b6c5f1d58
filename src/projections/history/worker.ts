/**
 * The program of the threads that answer questions about the past: folds the commands that the main thread sends, checks the
 * log chain as any fold does, and compiles one node. Secrets stay sealed, because the thread has no key to open them. The
 * rule where a fold may begin and where it ends is `domain/compile/earlier.ts`. Implements `docs/contract/rest.md#nodes`.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { earlierFold, mayBeginAt } from '../../domain/compile/earlier.js';
import { emptyFleet } from '../../domain/fleet/fleet.js';
import type { Fleet } from '../../domain/fleet/fleet.js';
import { BrokenChainError } from '../../domain/log-chain/links.js';
import { readCommand } from '../../domain/log/upcast.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { createLogChain } from '../../security/log-chain/log-chain.js';
import { createCommandAssembler } from '../../storage/follow.js';
import { isInLog, readFleet } from '../fleet/fold-checkpoint.js';
import type { Part, Question, Said } from './history.js';

if (parentPort === null) throw new Error('this program is started as a worker thread, not by itself');
const port = parentPort;
const { nodeId, generation, chainKey, checkpoint } = workerData as Question;
const logChain = createLogChain(chainKey);
const fleet = restored() ?? emptyFleet();
const fold = earlierFold(fleet, nodeId, generation);
const assembler = createCommandAssembler();
const say = (said: Said): void => port.postMessage(said);

// An error here ends the thread and fails its question.
port.on('message', (part: Part) => say(take(part)));
say({ kind: 'ready', revision: fleet.revision.value });

function restored(): Fleet | undefined {
  const read = checkpoint && readFleet(checkpoint.stored, logChain);
  if (!read?.ok || !isInLog(read.value, checkpoint?.last)) return undefined;
  return mayBeginAt(read.value, nodeId, generation) ? read.value : undefined;
}

function take(part: Part): Said {
  // A command that is not whole yet is past the wanted generation, or its end is not in the log.
  if (part === undefined) return { kind: 'compiled', snapshot: fold.snapshot() };
  try {
    for (const command of assembler.add(JSON.parse(part) as RecordedEvent[])) {
      if (!foldOne(command)) return { kind: 'compiled', snapshot: fold.snapshot() };
    }
  } catch (error) {
    if (error instanceof BrokenChainError) return { kind: 'broken', at: error.at };
    throw error;
  }
  return { kind: 'more' };
}

/** @returns false when the fold needs no more */
function foldOne(command: RecordedCommand): boolean {
  const expected = fleet.revision.value + 1;
  const { stream, revision } = command.events[0];
  if (revision !== expected) throw new Error(`${stream} continues at ${revision} instead of ${expected}`);
  const head = logChain.follow(fleet.logChain.value, command);
  if (!fold.fold(readCommand(command))) return false;
  fleet.logChain.set(head);
  return true;
}

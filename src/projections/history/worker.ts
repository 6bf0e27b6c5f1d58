/**
 * The program of the thread that compiles a node at an earlier generation: it folds the commands that the main thread sends and
 * checks the log chain. Secrets stay sealed: the thread has no keys. `domain/compile/earlier.ts` decides where the fold starts
 * and ends. Implements `docs/contract/rest.md#nodes`.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { earlierFold, mayBeginAt } from '../../domain/compile/earlier.js';
import { emptyFleet, type Fleet } from '../../domain/fleet/fleet.js';
import { BrokenChainError } from '../../domain/log-chain/links.js';
import { readCommand } from '../../domain/log/upcast.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import { createLogChain } from '../../security/log-chain/log-chain.js';
import { createCommandAssembler } from '../../storage/follow.js';
import { isInLog, readFleet } from '../fleet/fold-checkpoint.js';
import type { Part, Question, Message } from './history.js';

if (parentPort === null) throw new Error('this program is started as a worker thread, not by itself');
const port = parentPort;
const { nodeId, generation, chainKey, checkpoint } = workerData as Question;
const logChain = createLogChain(chainKey);
const fleet = restored() ?? emptyFleet();
const fold = earlierFold(fleet, nodeId, generation);
const assembler = createCommandAssembler();
const send = (message: Message): void => port.postMessage(message);

// An error here ends the thread and fails the request.
port.on('message', (part: Part) => send(take(part)));
send({ kind: 'ready', revision: fleet.revision.value });

function restored(): Fleet | undefined {
  const read = checkpoint && readFleet(checkpoint.stored, logChain);
  if (!read?.ok || !isInLog(read.value, checkpoint?.last)) return undefined;
  return mayBeginAt(read.value, nodeId, generation) ? read.value : undefined;
}

function take(part: Part): Message {
  // An incomplete command is past the wanted generation, or its end is not in the log.
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

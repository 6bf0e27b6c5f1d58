/** The log chain under the master key that other fixtures use, for tests of what reads and writes the log. */
import type { LogChainEvent } from '../../src/domain/log-chain/declaration.js';
import type { ChainHead } from '../../src/domain/log-chain/links.js';
import { emptyChain } from '../../src/domain/log-chain/links.js';
import type { ProposedEvent, RecordedCommand, RecordedEvent } from '../../src/kernel/event.js';
import { streams } from '../../src/kernel/event.js';
import { createLogChainKeys, sealLogChainKey } from '../../src/security/log-chain/keys.js';
import type { LogChainKeys } from '../../src/security/log-chain/keys.js';
import { createLogChain } from '../../src/security/log-chain/log-chain.js';
import type { LogChain } from '../../src/security/log-chain/log-chain.js';
import { createMasterKey } from '../../src/security/master-key.js';
import type { MasterKey } from '../../src/security/master-key.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { createCommandAssembler } from '../../src/storage/follow.js';
import { readAll } from '../storage/contract/appending.js';
import { planned, proposedEvents } from './read-side.js';

export const testMasterKey = (fill = 7): MasterKey => createMasterKey(new Uint8Array(32).fill(fill));
export const testChainKeys = (fill?: number): LogChainKeys => createLogChainKeys(testMasterKey(fill));
export const testLogChain = (fill?: number): LogChain => createLogChain(testChainKeys(fill));

/** Where the chain of a stream stands in a log. @throws BrokenChainError */
export async function headOf(eventStore: EventStore, stream: string, chain: LogChain): Promise<ChainHead> {
  const commands = createCommandAssembler().add(await readAll(eventStore, stream));
  return commands.reduce((head, command) => chain.follow(head, command), emptyChain);
}

/** The events of one command with its link in the last one. */
export function linked(
  events: readonly ProposedEvent[],
  head: ChainHead,
  stream: string,
  chain: LogChain,
): readonly ProposedEvent[] {
  const { link } = chain.link(head, stream, events);
  const last = events.at(-1);
  if (link === undefined || last === undefined) return events;
  return events.with(-1, { ...last, metadata: { ...last.metadata, link } });
}

/** The keys after the master key was replaced, those of the one before it included. */
export function rotatedKeys(from = 7, to = 8): LogChainKeys {
  const keys = testChainKeys(to);
  if (!keys.learn(sealLogChainKey(testMasterKey(from), testMasterKey(to))))
    throw new Error('the old key is not taken up');
  return keys;
}

export interface ChainedLog {
  readonly commands: readonly RecordedCommand[];
  /** Index of the command that begins the chain. */
  readonly start: number;
  /** They verify the whole log. */
  readonly keys: LogChainKeys;
}

/**
 * Commands of one stream as a log with a chain: it begins before the command with index `start`, and goes over to another
 * key before the one with index `rotate`, if that is not earlier. Events are as a store returns them.
 */
export function chainedLog(commands: readonly RecordedCommand[], start: number, rotate = Infinity): ChainedLog {
  const keys = rotatedKeys();
  const chain = createLogChain(keys);
  const [older, newer] = [testMasterKey(7).keyId, testMasterKey(8).keyId];
  const stream = commands[0]?.stream ?? streams.fleet;
  const logged: RecordedCommand[] = [];
  let head = emptyChain;
  let [revision, began] = [0, -1];
  const add = (events: readonly ProposedEvent[]): void => {
    const stored = linked(events, head, stream, chain).map((event, index): RecordedEvent => ({
      ...(JSON.parse(JSON.stringify(event)) as ProposedEvent),
      stream,
      revision: revision + index,
      position: 10 * (revision + index + 1),
    }));
    const [first, ...rest] = stored;
    if (first === undefined) return;
    const command = { stream, events: [first, ...rest] } as const;
    head = chain.follow(head, command);
    revision += stored.length;
    logged.push(command);
  };
  const own = (event: LogChainEvent): void => add(proposedEvents(planned(stream, [event])));
  for (const [index, { events }] of [...commands, undefined].map((command) => command ?? { events: [] }).entries()) {
    if (index === Math.min(start, commands.length)) {
      began = logged.length;
      own({ type: 'LogChainStarted', data: { key_id: older } });
    }
    if (index === rotate && began >= 0)
      own({ type: 'LogChainKeyChanged', data: { key_id: { from: older, to: newer } } });
    add(events.map(({ id, type, data, metadata }) => ({ id, type, data, metadata })));
  }
  return { commands: logged, start: began, keys };
}

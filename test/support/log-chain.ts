/** The log chain under the key that fixtures use, for tests of what reads and writes the log. */
import { createSecretKey } from 'node:crypto';
import { emptyChain, type ChainHead } from '../../src/domain/log-chain/links.js';
import { streams, type ProposedEvent, type RecordedCommand, type RecordedEvent } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { createLogChain, type LogChain } from '../../src/security/log-chain/log-chain.js';
import { createMasterKey, type MasterKey } from '../../src/security/master-key.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { createCommandAssembler } from '../../src/storage/follow.js';
import { readAll } from '../storage/contract/appending.js';

export const testMasterKey = (fill = 7): MasterKey => createMasterKey(new Uint8Array(32).fill(fill));
const testInstallationId = uuidFromName('installation');
export const testLogChain = (fill = 7, installationId = testInstallationId): LogChain =>
  createLogChain({ installationId, key: createSecretKey(new Uint8Array(32).fill(fill)) });

/** Takes every command as it is, for tests of other things whose commands have no links. */
export const trustingLogChain = (): LogChain => ({ ...testLogChain(), follow: (head) => head });

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
  if (last === undefined) return events;
  return events.with(-1, { ...last, metadata: { ...last.metadata, link } });
}

/** Commands of one stream as a log with a chain. Events are as a store returns them. */
export function chainedLog(
  commands: readonly RecordedCommand[],
  chain: LogChain = testLogChain(),
): readonly RecordedCommand[] {
  const stream = commands[0]?.stream ?? streams.fleet;
  let head = emptyChain;
  return commands.map(({ events }) => {
    const proposed = events.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }));
    const stored = linked(proposed, head, stream, chain).flatMap((event, index): RecordedEvent[] => {
      const recorded = events[index];
      return recorded === undefined ? [] : [{ ...recorded, ...(JSON.parse(JSON.stringify(event)) as ProposedEvent) }];
    });
    const [first, ...rest] = stored;
    if (first === undefined) throw new Error('a command has an event');
    const command = { stream, events: [first, ...rest] } as const;
    head = chain.follow(head, command);
    return command;
  });
}

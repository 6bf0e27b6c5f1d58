/**
 * The heads of the log chains, which the chained streams record of each other: a start checks those recorded last, and
 * every start and every day records the current ones. Implements `docs/log-chain.md`.
 */
import type { Gateway } from '../../commands/port.js';
import { systemContext } from '../../commands/system.js';
import { headText, namesAll, type LogHead, type RecordLogHeads } from '../../domain/log-chain/heads.js';
import { storedLink, type ChainHead } from '../../domain/log-chain/links.js';
import { startLoop, type Loop } from '../../kernel/background.js';
import { chainedStreams, isForeign, streams } from '../../kernel/event.js';
import { logsWarning, type Logger } from '../../kernel/logger.js';
import { firstFrom, type EventStore } from '../../storage/event-store.js';
import { writeService, type ServiceStreamOptions } from './service-stream.js';

/** The head of each stream's chain in memory; revision -1 for a stream without events. */
export type HeadOf = (stream: string) => { readonly revision: number; readonly chain: ChainHead };

/**
 * Looks in the log for the heads that each stream recorded last.
 * @returns what does not match, as a sentence without a full stop; undefined when everything matches
 * @throws ServiceError `unavailable`
 */
export async function missingHead(eventStore: EventStore, headOf: HeadOf): Promise<string | undefined> {
  for (const namedBy of chainedStreams) {
    for (const head of headOf(namedBy).chain.named) {
      const event = await firstFrom(eventStore, head.stream, head.revision);
      const link = event && !isForeign(event) ? storedLink({ stream: head.stream, events: [event] }) : undefined;
      if (event?.revision === head.revision && link?.mac === head.mac) continue;
      return `${head.stream} does not hold its head ${headText(head)}, which ${namedBy} names: it was rolled back, or rewritten`;
    }
  }
  return undefined;
}

export interface RecordHeadsOptions extends ServiceStreamOptions {
  readonly headOf: HeadOf;
  readonly fleet: Gateway<unknown, RecordLogHeads>;
  readonly accounts: Gateway<unknown, RecordLogHeads>;
  readonly logger: Logger;
}

/** Records in each stream the heads of the other two. @throws ServiceError `unavailable` */
export async function recordHeads(options: RecordHeadsOptions): Promise<void> {
  const { headOf, fleet, accounts, logger } = options;
  const heads = (): readonly LogHead[] =>
    chainedStreams.flatMap((stream) => {
      const { revision, chain } = headOf(stream);
      return revision < 0 ? [] : [{ stream, revision, mac: chain.mac }];
    });
  const others = (stream: string): readonly LogHead[] => heads().filter((head) => head.stream !== stream);
  // A head kept outside later proves that nothing before it was changed or cut off.
  logger.info({ heads: heads().map(headText) }, 'the log chains hold');
  const context = systemContext('log heads');
  for (const [stream, gateway] of [[streams.fleet, fleet] as const, [streams.accounts, accounts] as const]) {
    await gateway.execute({ type: 'RecordLogHeads', heads: others(stream) }, context, () => undefined);
  }
  const named = others(streams.service);
  await writeService(options, 'log heads', ({ logChain }) =>
    namesAll(logChain.named, named) ? undefined : { type: 'LogHeadsRecorded', data: { heads: named } },
  );
}

const lookEveryMs = 60_000;
const dayMs = 24 * 60 * 60 * 1_000;

/** Records the heads daily, and retries every minute while that is impossible. */
export function recordHeadsDaily(options: RecordHeadsOptions & { readOnly(): string | undefined }): Loop {
  const { clock, logger, readOnly } = options;
  let recordedAt = clock.monotonic();
  return startLoop(
    lookEveryMs,
    async () => {
      if (clock.monotonic() - recordedAt < dayMs || readOnly() !== undefined) return;
      await recordHeads(options);
      recordedAt = clock.monotonic();
    },
    logsWarning(logger, 'the heads of the log chains could not be recorded yet'),
  );
}

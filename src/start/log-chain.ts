/**
 * The log chain at the start of an instance: begins that of each stream of commands that has none yet, and takes one that
 * is under the key of an earlier master key over to the present one, which finishes a rotation of the master key. Of
 * several instances that start at once, one writes. Implements `docs/log-chain.md`.
 */
import type { Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';
import type { EnsureLogChain, ChainHead } from '../domain/log-chain/links.js';
import { asLogChainEvent } from '../domain/log-chain/declaration.js';
import { unreachable } from '../kernel/errors.js';
import type { RecordedEvent } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import { headText } from '../security/log-chain/log-chain.js';
import type { LogChain } from '../security/log-chain/log-chain.js';

interface ChainedState {
  readonly revision: { readonly value: number };
  readonly logChain: { readonly value: ChainHead };
}

/** @throws ServiceError `unavailable` */
export async function ensureLogChain<State extends ChainedState>(
  stream: string,
  gateway: Gateway<State, EnsureLogChain>,
  { keyId }: Pick<LogChain, 'keyId'>,
  logger: Logger,
): Promise<void> {
  const command: EnsureLogChain = { type: 'EnsureLogChain', keyId };
  const outcome = await gateway.execute(command, systemContext('start'), ({ revision, logChain }) => ({
    revision: revision.value,
    mac: logChain.value.mac,
  }));
  if (outcome.kind !== 'done') return;
  const [event] = outcome.events;
  // A head that is kept outside proves later that nothing before it was changed or cut off.
  const head = { stream, head: headText({ stream, ...outcome.result }) };
  if (event === undefined) logger.info(head, 'the log chain holds');
  else tell(event, head, logger);
}

function tell(recorded: RecordedEvent, head: { readonly stream: string; readonly head: string }, logger: Logger): void {
  const event = asLogChainEvent(recorded);
  const { revision } = recorded;
  switch (event?.type) {
    case 'LogChainStarted':
      if (revision === 0) return logger.info(head, 'the log chain begins');
      // Expected once, at the first start of a release that has it. Later it says that somebody removed the chain.
      return logger.warn({ ...head, revision }, 'the log chain begins: it covers what was written before from now on');
    case 'LogChainKeyChanged':
      return logger.info({ ...head, ...event.data.key_id }, 'the log chain goes on under the new master key');
    case undefined:
      throw new Error(`${recorded.type} is no event of the log chain`);
    default:
      return unreachable(event);
  }
}

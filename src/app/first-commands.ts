/**
 * The commands of a start: the compiler version of this release, and the log chain of each stream of commands. Written
 * at once, or as soon as the instance may write. The first admin is in `first-admin.ts`. Implements
 * `docs/contract/domain.md#generation` and `docs/log-chain.md`.
 */
import { startLoop } from '../kernel/background.js';
import { errorText, unreachable } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import type { Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';
import { compilerVersion } from '../domain/compile/version.js';
import type { FleetCommand } from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { EnsureLogChain, ChainHead } from '../domain/log-chain/links.js';
import { asLogChainEvent } from '../domain/log-chain/declaration.js';
import type { RecordedEvent } from '../kernel/event.js';
import { headText } from '../security/log-chain/log-chain.js';
import type { LogChain } from '../security/log-chain/log-chain.js';

const lookEveryMs = 1_000;

/**
 * Resolves when it has run, or when it waits.
 * @param reason why nothing may be written now, or undefined
 * @throws what `run` throws, when it runs at once; later it is logged and tried again
 */
export async function whenWritable(
  reason: () => string | undefined,
  run: () => Promise<void>,
  logger: Logger,
): Promise<{ close(): Promise<void> }> {
  const waitsFor = reason();
  if (waitsFor === undefined) {
    await run();
    return { close: async () => undefined };
  }
  logger.warn({ reason: waitsFor }, 'what this start would write waits until it may be written');
  const loop = startLoop(
    lookEveryMs,
    async () => {
      if (reason() !== undefined) return;
      await run();
      // Not awaited: it waits for this turn.
      void loop.close();
    },
    (error) => logger.error({ error: errorText(error) }, 'what this start would write could not be written yet'),
  );
  return loop;
}

/**
 * Raises the compiler number in the log to this release's. Never later: a running instance must not raise a number again that
 * an operator has lowered.
 * @throws ServiceError `unavailable`
 */
export async function raiseCompilerVersion(gateway: Gateway<Fleet, FleetCommand>, logger: Logger): Promise<void> {
  const command: FleetCommand = { type: 'RaiseCompilerVersion', version: compilerVersion };
  const outcome = await gateway.execute(command, systemContext('start'), () => undefined);
  if (outcome.kind === 'done' && outcome.events.length > 0) {
    logger.info({ compiler_version: compilerVersion }, 'the compiler version is raised: every node is touched');
  }
}

interface ChainedState {
  readonly revision: { readonly value: number };
  readonly logChain: { readonly value: ChainHead };
}

/**
 * Begins the log chain of a stream that has none yet, and takes one that is under the key of an earlier master key over
 * to the present one, which finishes a rotation of the master key. When several instances start at once, one of them
 * writes.
 * @throws ServiceError `unavailable`
 */
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

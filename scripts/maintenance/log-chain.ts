/** The master key and the log chain of the installation that a maintenance command works on. */
import { propose } from '../../src/commands/proposal.js';
import { systemContext } from '../../src/commands/system.js';
import type { LogChainKeySealed } from '../../src/domain/log-chain/declaration.js';
import { storedLink } from '../../src/domain/log-chain/links.js';
import { systemClock } from '../../src/kernel/clock.js';
import { streams } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { sealLogChainKey, openLogChainKeys } from '../../src/security/log-chain/keys.js';
import { createLogChain } from '../../src/security/log-chain/log-chain.js';
import type { LogChain } from '../../src/security/log-chain/log-chain.js';
import { loadMasterKey } from '../../src/security/master-key.js';
import type { LoadedMasterKey, MasterKey } from '../../src/security/master-key.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { lastRevision, newestEvent } from '../../src/storage/event-store.js';
import { CommandError } from './command-line.js';
import { chainedStreams } from './proof.js';
import type { Installation } from './installation.js';

/** @throws CommandError */
export async function masterKeyOf({ config }: Pick<Installation, 'config'>): Promise<LoadedMasterKey> {
  const loaded = await loadMasterKey({ ...config.masterKey, dataDir: config.dataDir, mayCreate: false });
  if (!loaded.ok) throw new CommandError(`The master key cannot be used: ${loaded.error}.`);
  return loaded.value;
}

/** For a command that writes to the log. @throws CommandError, ServiceError `unavailable` */
export async function openLogChain(installation: Installation): Promise<LogChain> {
  const { masterKey } = await masterKeyOf(installation);
  return createLogChain(await openLogChainKeys(installation.eventStore, masterKey));
}

/**
 * Keeps the log chain's key of a master key that is being replaced, sealed under the next one. Does nothing when an earlier
 * run has done it, or when there is no chain yet.
 * @returns whether the log has a chain @throws CommandError, ServiceError `unavailable`
 */
export async function keepLogChainKey(eventStore: EventStore, from: MasterKey, to: MasterKey): Promise<boolean> {
  const chained = await Promise.all(chainedStreams.map((stream) => hasChain(eventStore, stream)));
  if (!chained.includes(true)) return false;
  if ((await openLogChainKeys(eventStore, to)).ids().includes(from.keyId)) return true;
  const event: LogChainKeySealed = { type: 'LogChainKeySealed', data: sealLogChainKey(from, to) };
  const { events } = propose([event], systemContext('master key rotation'), systemClock, randomIds);
  const outcome = await eventStore.append(
    streams.logChain,
    (await lastRevision(eventStore, streams.logChain)) ?? 'no_stream',
    events,
  );
  if (outcome.kind === 'appended') return true;
  throw new CommandError('The event store did not take the key of the log chain: run the same command again.');
}

async function hasChain(eventStore: EventStore, stream: string): Promise<boolean> {
  const event = await newestEvent(eventStore, stream);
  return event !== undefined && storedLink({ stream, events: [event] }) !== undefined;
}

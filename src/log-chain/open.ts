/**
 * Opens the keys of the log chain of an installation: the present one from the master key, and those of earlier master
 * keys from the stream `svc-log-chain`, where each rotation has sealed the one that it replaced.
 * Implements `docs/operations.md#the-log-chain`.
 */
import type { LogChainKeySealed } from '../domain/log-chain/declaration.js';
import type { RecordedEvent } from '../kernel/event.js';
import { streams } from '../kernel/event.js';
import type { MasterKey } from '../security/master-key.js';
import type { EventStore } from '../storage/event-store.js';
import { wholeStream } from '../storage/event-store.js';
import { createLogChainKeys } from './keys.js';
import type { LogChainKeys } from './keys.js';

/** @throws ServiceError `unavailable` */
export async function openLogChainKeys(eventStore: EventStore, masterKey: MasterKey): Promise<LogChainKeys> {
  return keysOf(wholeStream(eventStore, streams.logChain), masterKey);
}

/** @param events those of `svc-log-chain`, in order */
export async function keysOf(
  events: Iterable<RecordedEvent> | AsyncIterable<RecordedEvent>,
  masterKey: MasterKey,
): Promise<LogChainKeys> {
  const keys = createLogChainKeys(masterKey);
  const sealed: LogChainKeySealed['data'][] = [];
  for await (const event of events) {
    if (isSealedKey(event)) sealed.push((event as unknown as LogChainKeySealed).data);
  }
  // The newest is sealed under the present key, and each older one under the key after it.
  for (const one of sealed.toReversed()) keys.learn(one);
  return keys;
}

/** True for the events that hold an earlier key. */
function isSealedKey(event: { readonly stream: string; readonly type: string }): boolean {
  const type: LogChainKeySealed['type'] = 'LogChainKeySealed';
  return event.stream === streams.logChain && event.type === type;
}
